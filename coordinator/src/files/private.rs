//! Files that only their owner may read (0600), replaced atomically. Used for keys, contexts and backups.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What went wrong with which file.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {}", path.display())]
pub struct FileError {
    /// What was tried.
    pub verb: &'static str,
    /// File.
    pub path: PathBuf,
    /// Cause.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// For `map_err`.
    pub fn new(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            verb,
            path: path.to_owned(),
            source,
        }
    }
}

/// Writes `bytes` to `path` with mode 0600: first a temporary file beside it, synced, then renamed over it, and the
/// directory synced, so that a crash leaves the old or the new content.
///
/// # Errors
/// When the directory is missing or not writable, or the disk is full.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    })();
    if written.is_err() {
        // Best effort: what is left behind holds nothing that counts.
        let _ = std::fs::remove_file(&temporary);
    }
    written.map_err(FileError::new("write", path))
}

/// Gives a file another name in the same directory, durably.
///
/// # Errors
/// As of the operating system.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    std::fs::rename(from, to)
        .and_then(|()| match to.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
            _ => Ok(()),
        })
        .map_err(FileError::new("rename", from))
}

/// Creates an empty file with mode 0600, whatever was there before.
///
/// # Errors
/// As of the operating system.
pub fn create(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Makes a directory and its parents, the last with mode 0700 if it is new.
///
/// # Errors
/// As of the operating system.
pub fn directory(path: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(FileError::new("create directory", path))
}

/// True when somebody other than the owner may read or write it.
///
/// # Errors
/// As of the operating system.
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_with_0600_and_leaves_nothing_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.key");
        std::fs::write(&path, "old, for everybody").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert!(!is_open_to_others(&path).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let missing = dir.path().join("no/such/file");
        let error = replace(&missing, b"x").unwrap_err();
        assert!(error.to_string().contains("no/such/file"), "{error}");
    }
}
