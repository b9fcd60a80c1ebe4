//! Files in the agent's state directory: mode 0600, replaced atomically, on disk before a call returns.
//!
//! Called by identity, order, drain and session. Knows no content.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
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
    /// Others could read or change what is in the directory.
    #[error(
        "{} {why}: name another state_dir, or chown it to root and chmod 0700", path.display()
    )]
    Open {
        /// The directory.
        path: PathBuf,
        /// In which way.
        why: String,
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

/// Whether others may look into a state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Openness {
    /// They may not, or it is not there yet.
    Closed,
    /// They may; it is the agent's own, which closes it when it starts.
    Ours {
        /// Permission bits.
        mode: u32,
    },
    /// They may, and it is not the agent's to change; with the reason.
    Refused(String),
}

/// Looks at a state directory and changes nothing. One that holds other things than an agent's is not its own: closing
/// it could break what lives there.
#[must_use]
pub fn openness(path: &Path) -> Openness {
    let Ok(meta) = std::fs::metadata(path) else {
        return Openness::Closed;
    };
    if !meta.is_dir() {
        return Openness::Refused("is no directory".to_owned());
    }
    let me = nix::unistd::geteuid().as_raw();
    if meta.uid() != 0 && meta.uid() != me {
        let owner = meta.uid();
        return Openness::Refused(format!("belongs to another user (uid {owner})"));
    }
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Openness::Closed;
    }
    let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let used = || path.join("node.key").exists();
    if used() || empty() {
        Openness::Ours { mode }
    } else {
        Openness::Refused(format!(
            "is open to others (mode {mode:04o}) and holds other things than an agent's"
        ))
    }
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

    /// Sees to it that nobody else may look into it: makes an own one 0700, refuses another.
    ///
    /// # Errors
    /// [`StateError::Open`], or its mode cannot be set.
    pub fn close_to_others(&self) -> Result<(), StateError> {
        match openness(&self.path) {
            Openness::Closed => Ok(()),
            Openness::Refused(why) => Err(StateError::Open {
                path: self.path.clone(),
                why,
            }),
            Openness::Ours { mode } => {
                std::fs::set_permissions(&self.path, Permissions::from_mode(0o700)).map_err(
                    |source| StateError::Io {
                        verb: "close to others",
                        path: self.path.clone(),
                        source,
                    },
                )?;
                tracing::warn!(
                    state_dir = %self.path.display(),
                    mode = format!("{mode:04o}"),
                    "the state directory was open to others: made it 0700"
                );
                Ok(())
            }
        }
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
    fn an_open_directory_is_closed_when_ours_and_refused_when_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let open = || {
            std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
            state.close_to_others()
        };
        let mode = || std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777;
        open().unwrap();
        assert_eq!(mode(), 0o700, "an empty one");
        std::fs::write(state.path("theirs"), "").unwrap();
        assert!(matches!(open(), Err(StateError::Open { .. })));
        assert_eq!(mode(), 0o755, "left alone");
        state.write("node.key", b"").unwrap();
        open().unwrap();
        assert_eq!(mode(), 0o700, "one with a node's key");
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
