//! The record of a release of the GPUs: it holds over a restart of the agent until its time limit (AG-13), and ends
//! with the boot. Used by the collector's task.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

const FILE: &str = "gpu-release.json";

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    until_unix_ms: u64,
    boot_id: String,
}

/// The record, in memory and in the state directory.
#[derive(Debug)]
pub struct Release {
    folder: Option<PathBuf>,
    boot_id: String,
    until_unix_ms: Option<u64>,
}

impl Release {
    /// Reads what an agent before has left. A record that cannot be read is none.
    #[must_use]
    pub fn load(folder: Option<PathBuf>, boot_id: &str, now_unix_ms: u64) -> Self {
        let mut release = Self {
            folder,
            boot_id: boot_id.to_owned(),
            until_unix_ms: None,
        };
        let text = release.path().and_then(|path| fs::read(path).ok());
        if let Some(Ok(record)) = text.map(|text| serde_json::from_slice::<Record>(&text)) {
            let holds = record.boot_id == boot_id && record.until_unix_ms > now_unix_ms;
            release.until_unix_ms = holds.then_some(record.until_unix_ms);
        }
        release
    }

    /// Until when the GPUs are let go, `None` when they are not.
    #[must_use]
    pub fn until_unix_ms(&self) -> Option<u64> {
        self.until_unix_ms
    }

    /// Begins.
    ///
    /// # Errors
    /// When the record cannot be written; then nothing has begun.
    pub fn begin(&mut self, until_unix_ms: u64) -> io::Result<()> {
        if let Some(path) = self.path() {
            let record = Record {
                until_unix_ms,
                boot_id: self.boot_id.clone(),
            };
            let fresh = path.with_extension("json.new");
            let mut file = File::options()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&fresh)?;
            file.write_all(&serde_json::to_vec(&record)?)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
        }
        self.until_unix_ms = Some(until_unix_ms);
        Ok(())
    }

    /// Ends.
    ///
    /// # Errors
    /// When the record cannot be removed; it ends for this process all the same.
    pub fn end(&mut self) -> io::Result<()> {
        self.until_unix_ms = None;
        match self.path().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_outlives_the_agent_but_neither_its_limit_nor_the_boot() {
        let folder = tempfile::tempdir().unwrap();
        let load = |boot: &str, now| {
            Release::load(Some(folder.path().to_owned()), boot, now).until_unix_ms()
        };
        let mut release = Release::load(Some(folder.path().to_owned()), "a", 0);
        assert_eq!(release.until_unix_ms(), None);
        release.begin(1000).unwrap();
        assert_eq!(load("a", 999), Some(1000));
        assert_eq!(load("a", 1000), None);
        assert_eq!(load("b", 999), None);
        release.end().unwrap();
        release.end().unwrap();
        assert_eq!(load("a", 0), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_refuses() {
        let mut release = Release::load(Some(PathBuf::from("/nonexistent")), "a", 0);
        assert!(release.begin(1000).is_err());
        assert_eq!(release.until_unix_ms(), None);
    }
}
