//! Whether the store is kept in the file that it was made in, or in a copy of it: a copy must not drive what the first one
//! drives.
//!
//! Called by `app::serve` at its start. A copy of a file is another file: its number in the file system and the time of its
//! birth differ, wherever it lies. What copies whole disks is not seen.

use crate::ports::store::{CommitError, Op, Store};
use crate::records::keys;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The file, by what a copy does not share; nothing when that cannot be read.
fn identity(file: &Path) -> Option<String> {
    let about = std::fs::metadata(file).ok()?;
    let born = about
        .created()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |at| at.as_nanos());
    Some(format!("{}/{born}", about.ino()))
}

/// The store says that it was kept in another file.
pub(super) async fn is_copied(store: &dyn Store, file: &Path) -> bool {
    // A store that cannot be read fails the start soon after, with its cause.
    let Ok(Some(entry)) = store.get(keys::HOME).await else {
        return false;
    };
    let here = identity(file).map(String::into_bytes);
    here.is_some_and(|here| here != entry.value)
}

/// From now on this file is its home.
///
/// # Errors
/// The store cannot be written.
pub(super) async fn settle(store: &dyn Store, file: &Path) -> Result<(), CommitError> {
    let Some(here) = identity(file) else {
        return Ok(());
    };
    let op = Op::Put(keys::HOME.to_owned(), here.into_bytes());
    store.commit(store.fence(), &[], &[op]).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::store::sqlite::{FILE_NAME, SqliteStore};

    #[tokio::test]
    async fn a_copy_is_known_and_a_moved_file_is_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(FILE_NAME);
        {
            let store = SqliteStore::open(&file).expect("opens");
            assert!(
                !is_copied(&store, &file).await,
                "a new store has no home yet"
            );
            settle(&store, &file).await.expect("writes");
            assert!(!is_copied(&store, &file).await);
        }
        let store = SqliteStore::open(&file).expect("opens again");
        assert!(!is_copied(&store, &file).await, "a restart");
        drop(store);
        let moved = dir.path().join("elsewhere.db");
        std::fs::rename(&file, &moved).expect("moves");
        let store = SqliteStore::open(&moved).expect("opens");
        assert!(!is_copied(&store, &moved).await, "moved");
        drop(store);
        let copy = dir.path().join("copy.db");
        std::fs::copy(&moved, &copy).expect("copies");
        let store = SqliteStore::open(&copy).expect("opens");
        assert!(is_copied(&store, &copy).await, "a copy");
    }
}
