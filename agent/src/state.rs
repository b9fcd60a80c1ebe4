//! Files in the agent's state directory: mode 0600, replaced atomically, on disk before a call returns.
//!
//! Called by identity, order, drain and session. Knows no content.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A state file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file system said no.
    #[error("cannot {verb} {}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The content is not ours.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Another agent works here.
    #[error("another drover-agent uses {}", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
}

/// The agent's state directory.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

/// Held while an agent runs in a state directory; the kernel lets go of it with the process.
#[derive(Debug)]
pub struct StateLock(#[expect(dead_code, reason = "held, never read")] Flock<File>);

impl StateDir {
    /// Opens the directory, making it (mode 0700) when it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| StateError::Io {
                verb: "make",
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Where a file lies.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes this the only agent in the directory.
    ///
    /// # Errors
    /// [`StateError::Locked`] when another one runs here.
    pub fn lock(&self) -> Result<StateLock, StateError> {
        let path = self.path("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| StateError::Io {
                verb: "open",
                path,
                source,
            })?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(StateLock(lock)),
            Err(_) => Err(StateError::Locked {
                path: self.path.clone(),
            }),
        }
    }

    /// Content of a file, `None` when it is not there.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.path(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError::Io {
                verb: "read",
                path,
                source,
            }),
        }
    }

    /// Replaces a file: written beside it, synced, renamed, and the directory synced.
    ///
    /// # Errors
    /// Any of these failed; the old content is then still there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        let path = self.path(name);
        let beside = self.path(&format!("{name}.new"));
        let written = (|| {
            // One left by a crash may have another mode.
            match std::fs::remove_file(&beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new()
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)?;
            File::open(&self.path)?.sync_all()
        })();
        written.map_err(|source| StateError::Io {
            verb: "write",
            path,
            source,
        })
    }

    /// Removes a file; one that is not there is fine.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), StateError> {
        let path = self.path(name);
        let removed = std::fs::remove_file(&path).and_then(|()| File::open(&self.path)?.sync_all());
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::Io {
                verb: "remove",
                path,
                source: error,
            }),
            _ => Ok(()),
        }
    }

    /// Replaces a file with a value as JSON.
    ///
    /// # Errors
    /// As [`StateDir::write`].
    pub fn save<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(value).map_err(|source| StateError::Damaged {
            path: self.path(name),
            source,
        })?;
        self.write(name, &bytes)
    }

    /// A value from a file, `None` when it is not there.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn load<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StateError> {
        let Some(bytes) = self.read(name)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| StateError::Damaged {
                path: self.path(name),
                source,
            })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn replaces_files_with_mode_0600_even_after_a_crash_left_one() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("a/b")).unwrap();
        assert_eq!(state.read("x").unwrap(), None);
        std::fs::write(state.path("x.new"), "half").unwrap();
        std::fs::set_permissions(state.path("x.new"), PermissionsExt::from_mode(0o644)).unwrap();
        state.save("x", &[1, 2]).unwrap();
        assert_eq!(state.load::<Vec<u8>>("x").unwrap(), Some(vec![1, 2]));
        let mode = std::fs::metadata(state.path("x"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(state.path("x"), "{").unwrap();
        assert!(matches!(
            state.load::<Vec<u8>>("x"),
            Err(StateError::Damaged { .. })
        ));
        state.remove("x").unwrap();
        state.remove("x").unwrap();
        assert_eq!(state.read("x").unwrap(), None);
    }

    #[test]
    fn one_agent_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let held = state.lock().unwrap();
        assert!(matches!(state.lock(), Err(StateError::Locked { .. })));
        drop(held);
        assert!(state.lock().is_ok());
    }
}
