//! Backup: one sealed file with a consistent copy of the store and the CA key; and its restoring into an empty state
//! directory, frozen. Called by the admin service and by `app` for `drover restore`.
//!
//! File: magic, PBKDF2 iterations (u32, big endian), salt (16 bytes), nonce (12 bytes), then AES-256-GCM over
//! [length of the key (u32), key PEM, store]; everything before it is authenticated. The key is PBKDF2-HMAC-SHA256 of the
//! passphrase (iterations by OWASP's Password Storage Cheat Sheet, 2023). The whole file passes through memory.

use super::ca::KEY_FILE;
use super::store::sqlite::{FILE_NAME, OpenError, SqliteStore};
use crate::files::private::{self, FileError};
use crate::ports::store::{CommitError, Op, ReadError, Store};
use crate::records::{AuditRecord, FreezeRecord, keys};
use drover_core::model::UnixMs;
use ring::{aead, pbkdf2};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Fewest characters of a passphrase.
pub const PASSPHRASE_CHARS: usize = 12;
/// Iterations, the work of a guess: a file with fewer is not ours.
const ITERATIONS: u32 = 600_000;
/// Nor is one with more: opening it must not take for ever.
const ITERATIONS_MOST: u32 = 10_000_000;
const MAGIC: &[u8; 16] = b"drover-backup-1\n";
const SALT: usize = 16;
const NONCE: usize = 12;
const HEADER: usize = MAGIC.len() + 4 + SALT + NONCE;
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

fn cipher(
    passphrase: &str,
    salt: &[u8],
    iterations: u32,
) -> Result<aead::LessSafeKey, BackupError> {
    let iterations = NonZeroU32::new(iterations).ok_or(BackupError::Crypto)?;
    let mut key = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, iterations, salt, passphrase.as_bytes(), &mut key);
    aead::UnboundKey::new(&aead::AES_256_GCM, &key)
        .map(aead::LessSafeKey::new)
        .map_err(|_| BackupError::Crypto)
}

fn seal(
    key: &[u8],
    store: &[u8],
    passphrase: &str,
    iterations: u32,
) -> Result<Vec<u8>, BackupError> {
    let salt = rand::random::<[u8; SALT]>();
    let nonce = rand::random::<[u8; NONCE]>();
    let header = [&MAGIC[..], &iterations.to_be_bytes(), &salt, &nonce].concat();
    let length = u32::try_from(key.len()).map_err(|_| BackupError::Crypto)?;
    let mut body = [&length.to_be_bytes()[..], key, store].concat();
    // Salt, and with it the key, is new for every file: the nonce is used once.
    cipher(passphrase, &salt, iterations)?
        .seal_in_place_append_tag(
            aead::Nonce::assume_unique_for_key(nonce),
            aead::Aad::from(&header),
            &mut body,
        )
        .map_err(|_| BackupError::Crypto)?;
    Ok([header, body].concat())
}

fn unseal(
    path: &Path,
    sealed: &[u8],
    passphrase: &str,
    least: u32,
) -> Result<(Vec<u8>, Vec<u8>), BackupError> {
    let foreign = || BackupError::NotABackup {
        path: path.to_owned(),
    };
    let broken = || BackupError::Sealed {
        path: path.to_owned(),
    };
    let (header, body) = sealed.split_at_checked(HEADER).ok_or_else(foreign)?;
    let rest = header.strip_prefix(&MAGIC[..]).ok_or_else(foreign)?;
    let (iterations, rest) = rest.split_first_chunk::<4>().ok_or_else(foreign)?;
    let (salt, nonce) = rest.split_at(SALT);
    let iterations = u32::from_be_bytes(*iterations);
    if !(least..=ITERATIONS_MOST).contains(&iterations) {
        return Err(foreign());
    }
    let nonce = aead::Nonce::try_assume_unique_for_key(nonce).map_err(|_| foreign())?;
    let mut body = body.to_vec();
    let plain = cipher(passphrase, salt, iterations)?
        .open_in_place(nonce, aead::Aad::from(header), &mut body)
        .map_err(|_| broken())?;
    let (length, rest) = plain.split_first_chunk::<4>().ok_or_else(broken)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| broken())?;
    let (key, store) = rest.split_at_checked(length).ok_or_else(broken)?;
    Ok((key.to_vec(), store.to_vec()))
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
mod tests {
    use super::super::ca::{Ca, CaError};
    use super::super::clock::ManualClock;
    use super::*;

    const NOW: UnixMs = UnixMs(1_800_000_000_000);
    const WORDS: &str = "twelve chars";
    /// Fewer iterations: the real ones take seconds in a debug build.
    const FAST: u32 = 1_000;

    #[tokio::test]
    async fn a_backup_comes_back_frozen_and_only_with_its_passphrase() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        private::directory(&from).unwrap();
        let clock = ManualClock::at(NOW);
        let store = SqliteStore::open(&from.join(FILE_NAME)).unwrap();
        let ca = Ca::open(&from, &store, &clock).await.unwrap();
        let op = Op::Put("/request/job".into(), b"{}".to_vec());
        store.commit(store.fence(), &[], &[op]).await.unwrap();

        let short = create_with(&store, &from, "eleven char", FAST).await;
        assert!(matches!(short, Err(BackupError::Passphrase)));
        let sealed = create_with(&store, &from, WORDS, FAST).await.unwrap();
        let left: Vec<_> = std::fs::read_dir(&from)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("backup"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let key = std::fs::read(from.join(KEY_FILE)).unwrap();
        let visible = |needle: &[u8]| sealed.windows(needle.len()).any(|part| part == needle);
        assert!(!visible(&key) && !visible(b"PRIVATE") && !visible(b"/request/job"));
        let file = dir.path().join("backup");
        std::fs::write(&file, &sealed).unwrap();

        let to = dir.path().join("to");
        let wrong = restore_with(&file, &to, "other words!", NOW, FAST).await;
        assert!(
            matches!(wrong, Err(BackupError::Sealed { .. })),
            "{wrong:?}"
        );
        assert_eq!(
            std::fs::read_dir(&to).unwrap().count(),
            0,
            "nothing was written"
        );
        let full = restore_with(&file, &from, WORDS, NOW, FAST).await;
        assert!(matches!(full, Err(BackupError::NotEmpty { .. })));

        restore_with(&file, &to, WORDS, NOW, FAST).await.unwrap();
        let mut names: Vec<_> = std::fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [KEY_FILE, FILE_NAME]);
        let again = SqliteStore::open(&to.join(FILE_NAME)).unwrap();
        assert_eq!(again.store_id(), store.store_id());
        assert!(again.fence() > store.fence());
        assert!(again.get("/request/job").await.unwrap().is_some());
        let frozen = again.get("/freeze/*").await.unwrap().unwrap();
        let frozen: FreezeRecord = serde_json::from_slice(&frozen.value).unwrap();
        assert_eq!(
            (frozen.by.as_str(), frozen.pool, frozen.since),
            ("restore", None, NOW)
        );
        assert_eq!(again.list(keys::AUDIT).await.unwrap().len(), 1);
        let same = Ca::open(&to, &again, &clock).await.unwrap();
        assert_eq!(same.sha256(), ca.sha256());

        // The store of one coordinator with the key of another does not start.
        let other = dir.path().join("other");
        private::directory(&other).unwrap();
        let stranger = SqliteStore::open(&other.join(FILE_NAME)).unwrap();
        Ca::open(&other, &stranger, &clock).await.unwrap();
        std::fs::copy(other.join(KEY_FILE), to.join(KEY_FILE)).unwrap();
        let refused = Ca::open(&to, &again, &clock).await.unwrap_err();
        assert!(matches!(refused, CaError::KeyDiffers { .. }));
    }

    #[test]
    fn files_that_are_none_or_were_changed() {
        let path = Path::new("backup");
        let sealed = seal(b"key", b"store", WORDS, FAST).unwrap();
        assert_eq!(
            unseal(path, &sealed, WORDS, FAST).unwrap(),
            (b"key".to_vec(), b"store".to_vec())
        );
        let changed = |at: usize| {
            let mut bytes = sealed.clone();
            bytes[at] ^= 1;
            bytes
        };
        let cut = sealed[..sealed.len() - 1].to_vec();
        for (what, bytes, foreign) in [
            ("empty", Vec::new(), true),
            ("header only", sealed[..HEADER - 1].to_vec(), true),
            ("other file", vec![b'x'; 200], true),
            ("few iterations", changed(MAGIC.len() + 2), true),
            ("many iterations", changed(MAGIC.len()), true),
            ("salt", changed(MAGIC.len() + 5), false),
            ("body", changed(HEADER + 2), false),
            ("cut", cut, false),
        ] {
            let error = unseal(path, &bytes, WORDS, FAST).unwrap_err();
            let is_foreign = matches!(error, BackupError::NotABackup { .. });
            assert_eq!(is_foreign, foreign, "{what}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_sealed_with_less_work_is_refused() {
        let sealed = seal(b"key", b"store", WORDS, FAST).unwrap();
        let error = unseal(Path::new("backup"), &sealed, WORDS, ITERATIONS).unwrap_err();
        assert!(matches!(error, BackupError::NotABackup { .. }));
        const { assert!(ITERATIONS >= 600_000) }
    }
}
