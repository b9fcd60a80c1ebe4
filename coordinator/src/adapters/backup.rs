//! Backup: one sealed file with a consistent copy of the store and the CA key; and its restoring into an empty state
//! directory, frozen. Called by the admin service and by `app` for `drover restore`.
//!
//! `sealed` describes the file. The whole of it passes through memory.

mod sealed;

use super::ca::KEY_FILE;
use super::store::sqlite::{FILE_NAME, OpenError, SqliteStore};
use crate::files::private::{self, FileError};
use crate::ports::store::{CommitError, Op, ReadError, Store};
use crate::records::{AuditRecord, FreezeRecord, keys};
use drover_core::model::UnixMs;
use sealed::{ITERATIONS, seal, unseal};
use std::path::{Path, PathBuf};

/// Fewest characters of a passphrase.
pub const PASSPHRASE_CHARS: usize = 12;
/// By whom a restored store is frozen.
pub const FROZEN_BY: &str = "restore";

/// Why a backup or a restore was not done.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Too short.
    #[error("the passphrase is too short: it needs at least {PASSPHRASE_CHARS} characters")]
    Passphrase,
    /// Not a backup.
    #[error("{} is not a backup of drover", path.display())]
    NotABackup {
        /// File.
        path: PathBuf,
    },
    /// Wrong passphrase, or changed.
    #[error("{} cannot be opened: the passphrase is wrong, or the file was cut off or changed", path.display())]
    Sealed {
        /// File.
        path: PathBuf,
    },
    /// Something is there.
    #[error("{} is not empty: restore into an empty state directory (move what is there away first)", path.display())]
    NotEmpty {
        /// Directory.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store in the backup cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The copy cannot be made, or the freeze not written.
    #[error("the store cannot be copied")]
    Commit(#[from] CommitError),
    /// The restored store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record cannot be written.
    #[error("cannot write the freeze")]
    Record(#[source] serde_json::Error),
    /// The library refused.
    #[error("cannot encrypt")]
    Crypto,
}

/// Makes the sealed bytes of a backup while the coordinator runs.
///
/// # Errors
/// A passphrase that is too short, or files that cannot be read or written.
pub async fn create(
    store: &dyn Store,
    state_dir: &Path,
    passphrase: &str,
) -> Result<Vec<u8>, BackupError> {
    create_with(store, state_dir, passphrase, ITERATIONS).await
}

async fn create_with(
    store: &dyn Store,
    state_dir: &Path,
    passphrase: &str,
    iterations: u32,
) -> Result<Vec<u8>, BackupError> {
    check(passphrase)?;
    let name = format!(".backup-{}.db", hex::encode(rand::random::<[u8; 6]>()));
    let copy = Remove(state_dir.join(name));
    store.backup(&copy.0).await?;
    let read = |path: &Path| std::fs::read(path).map_err(FileError::new("read", path));
    let content = read(&copy.0)?;
    let key = read(&state_dir.join(KEY_FILE))?;
    let passphrase = passphrase.to_owned();
    tokio::task::spawn_blocking(move || seal(&key, &content, &passphrase, iterations))
        .await
        .map_err(|_| BackupError::Crypto)?
}

/// Fills an empty or missing state directory from a backup. The store begins frozen, by [`FROZEN_BY`]: what has
/// happened since the backup was made is not known to it.
///
/// # Errors
/// See [`BackupError`]; nothing is written when the passphrase is wrong.
pub async fn restore(
    backup: &Path,
    state_dir: &Path,
    passphrase: &str,
    now: UnixMs,
) -> Result<(), BackupError> {
    restore_with(backup, state_dir, passphrase, now, ITERATIONS).await
}

async fn restore_with(
    backup: &Path,
    state_dir: &Path,
    passphrase: &str,
    now: UnixMs,
    least: u32,
) -> Result<(), BackupError> {
    check(passphrase)?;
    private::directory(state_dir)?;
    let mut inside = std::fs::read_dir(state_dir).map_err(FileError::new("read", state_dir))?;
    if inside.next().is_some() {
        return Err(BackupError::NotEmpty {
            path: state_dir.to_owned(),
        });
    }
    let sealed = std::fs::read(backup).map_err(FileError::new("read", backup))?;
    let (path, words) = (backup.to_owned(), passphrase.to_owned());
    let (key, content) = tokio::task::spawn_blocking(move || unseal(&path, &sealed, &words, least))
        .await
        .map_err(|_| BackupError::Crypto)??;
    // Frozen under another name first: no moment has an unfrozen store at the place where `serve` looks.
    let draft = Remove(state_dir.join("restoring.db"));
    private::replace(&draft.0, &content)?;
    let store = SqliteStore::open(&draft.0)?;
    freeze(&store, backup, now).await?;
    let ready = Remove(state_dir.join("restored.db"));
    store.backup(&ready.0).await?;
    drop(store);
    private::replace(&state_dir.join(KEY_FILE), &key)?;
    let place = state_dir.join(FILE_NAME);
    std::fs::rename(&ready.0, &place).map_err(FileError::new("write", &place))?;
    Ok(())
}

async fn freeze(store: &SqliteStore, backup: &Path, now: UnixMs) -> Result<(), BackupError> {
    let reason = format!(
        "restored from {}: look at plan and nodes, then `drover thaw`",
        backup.display()
    );
    let record = FreezeRecord {
        pool: None,
        by: FROZEN_BY.to_owned(),
        reason: reason.clone(),
        since: now,
    };
    let last = store.list(keys::AUDIT).await?.pop();
    let last = last.and_then(|entry| entry.key.strip_prefix(keys::AUDIT)?.parse::<u64>().ok());
    let audit = AuditRecord {
        seq: last.map_or(1, |seq| seq + 1),
        at: now,
        actor: "drover".to_owned(),
        verb: "store.restore".to_owned(),
        subject: store.store_id().to_owned(),
        detail: reason,
    };
    // Launches of before are never reaped: who has joined since is not known.
    let fence = serde_json::to_vec(&store.fence().0).map_err(BackupError::Record)?;
    let ops = [
        Op::Put(keys::RESTORED.to_owned(), fence),
        Op::Put(
            keys::named(keys::FREEZE, "*"),
            serde_json::to_vec(&record).map_err(BackupError::Record)?,
        ),
        Op::Put(
            keys::numbered(keys::AUDIT, audit.seq),
            serde_json::to_vec(&audit).map_err(BackupError::Record)?,
        ),
    ];
    store.commit(store.fence(), &[], &ops).await?;
    Ok(())
}

fn check(passphrase: &str) -> Result<(), BackupError> {
    if passphrase.chars().count() < PASSPHRASE_CHARS {
        return Err(BackupError::Passphrase);
    }
    Ok(())
}

/// A store file that goes when this does, with what SQLite leaves beside it.
struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            // Mostly there is none.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
