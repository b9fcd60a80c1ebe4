//! The embedded store: SQLite, one file, WAL, every commit synced to disk. Opened by `app`; used through the port.
//!
//! **Invariant (I10 fenced):** opening bumps the fence in the file, and every commit checks it in its own
//! transaction, so a coordinator that was superseded changes nothing.
//!
//! Two threads own a connection each: one commits (what waits together is synced together), one reads. Nothing here
//! blocks the async runtime.

mod engine;
mod schema;

use self::engine::{Job, Reader, Writer};
use super::check_limits;
use crate::ports::store::{CommitError, Entry, Fence, Guard, Op, ReadError, Revision, Store};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

pub use self::schema::OpenError;
pub(crate) use self::schema::write_copy;

/// Name of the store's file in the state directory.
pub const FILE_NAME: &str = "drover.db";

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    store_id: String,
    fence: Fence,
    writer: Writer,
    reader: Reader,
}

impl SqliteStore {
    /// Opens the file, makes it when there is none, and takes the leadership: whoever had it before is fenced.
    ///
    /// # Errors
    /// A file that is no store of ours, damaged, of a newer version, or not accessible: each names the file and the fix.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = schema::open(path)?;
        let reader = schema::connect(path)?;
        let failed = |source| OpenError::Thread { source };
        Ok(Self {
            path: path.to_owned(),
            store_id: opened.store_id,
            fence: opened.fence,
            writer: Writer::start(opened.connection).map_err(failed)?,
            reader: Reader::start(reader).map_err(failed)?,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The thread is gone: it panicked.
#[derive(Debug, thiserror::Error)]
#[error("the store's thread has ended")]
struct ThreadGone;

fn read_error(key: &str, source: impl std::error::Error + Send + Sync + 'static) -> ReadError {
    ReadError {
        key: key.to_owned(),
        source: Box::new(source),
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn fence(&self) -> Fence {
        self.fence
    }

    fn store_id(&self) -> &str {
        &self.store_id
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        let name = key.to_owned();
        let (reply, answer) = oneshot::channel();
        self.reader.send(Box::new(move |connection| {
            let _ = reply.send(engine::get(connection, &name));
        }));
        match answer.await {
            Ok(result) => result.map_err(|error| read_error(key, error)),
            Err(_) => Err(read_error(key, ThreadGone)),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ReadError> {
        let name = prefix.to_owned();
        let (reply, answer) = oneshot::channel();
        self.reader.send(Box::new(move |connection| {
            let _ = reply.send(engine::list(connection, &name));
        }));
        match answer.await {
            Ok(result) => result.map_err(|error| read_error(prefix, error)),
            Err(_) => Err(read_error(prefix, ThreadGone)),
        }
    }

    async fn commit(
        &self,
        fence: Fence,
        guards: &[Guard],
        ops: &[Op],
    ) -> Result<Revision, CommitError> {
        check_limits(guards, ops)?;
        let (reply, answer) = oneshot::channel();
        self.writer.send(Job {
            fence,
            guards: guards.to_vec(),
            ops: ops.to_vec(),
            reply,
        });
        answer
            .await
            .unwrap_or_else(|_| Err(CommitError::Backend(Box::new(ThreadGone))))
    }

    async fn backup(&self, to: &Path) -> Result<(), CommitError> {
        let from = self.path.clone();
        let to = to.to_owned();
        tokio::task::spawn_blocking(move || schema::backup(&from, &to))
            .await
            .map_err(|error| CommitError::Backend(Box::new(error)))?
            .map_err(|error| CommitError::Backend(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[tokio::test]
    async fn passes_the_table() {
        let dir = tempfile::tempdir().unwrap();
        table::every_engine(async |name: &str| SqliteStore::open(&dir.path().join(name)).unwrap())
            .await;
    }

    #[tokio::test]
    async fn i10_fenced() {
        let dir = tempfile::tempdir().unwrap();
        table::i10_fenced(async |name: &str| SqliteStore::open(&dir.path().join(name)).unwrap())
            .await;
    }

    #[tokio::test]
    async fn many_commits_at_once_all_count() {
        let dir = tempfile::tempdir().unwrap();
        let store = std::sync::Arc::new(SqliteStore::open(&dir.path().join(FILE_NAME)).unwrap());
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..200 {
            let store = store.clone();
            tasks.spawn(async move {
                // Every tenth one conflicts: it must not take its neighbours down with it.
                let guard = if n % 10 == 0 {
                    Guard::Unchanged("/none".into(), Revision(1))
                } else {
                    Guard::Absent(format!("/n/{n}"))
                };
                let op = Op::Put(format!("/n/{n}"), b"1".to_vec());
                store.commit(store.fence(), &[guard], &[op]).await.is_ok()
            });
        }
        let done = tasks.join_all().await.into_iter().filter(|ok| *ok).count();
        assert_eq!(done, 180);
        let entries = store.list("/n/").await.unwrap();
        assert_eq!(entries.len(), 180);
        let revisions: std::collections::BTreeSet<_> =
            entries.iter().map(|entry| entry.revision).collect();
        assert_eq!(
            revisions.len(),
            180,
            "each commit has a revision of its own"
        );
    }

    #[tokio::test]
    async fn what_is_committed_survives_a_copy_taken_without_closing() {
        // The files as a kill -9 leaves them: database and WAL, nothing checkpointed.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let store = SqliteStore::open(&path).unwrap();
        store
            .commit(store.fence(), &[], &[Op::Put("/a".into(), b"1".to_vec())])
            .await
            .unwrap();
        let crashed = dir.path().join("crashed.db");
        for suffix in ["", "-wal"] {
            std::fs::copy(
                format!("{}{suffix}", path.display()),
                format!("{}{suffix}", crashed.display()),
            )
            .unwrap();
        }
        let again = SqliteStore::open(&crashed).unwrap();
        assert_eq!(again.get("/a").await.unwrap().unwrap().value, b"1");
        assert_eq!(again.store_id(), store.store_id());
        assert!(again.fence() > store.fence());
    }

    #[tokio::test]
    async fn a_damaged_or_foreign_file_is_named_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("good.db");
        let store = SqliteStore::open(&path).unwrap();
        for n in 0..50 {
            let value = vec![b'x'; 20_000];
            let op = Op::Put(format!("/k/{n}"), value);
            store.commit(store.fence(), &[], &[op]).await.unwrap();
        }
        let copy = dir.path().join("copy.db");
        store.backup(&copy).await.unwrap();
        let whole = std::fs::read(&copy).unwrap();

        let cases: [(&str, Vec<u8>, &str); 5] = [
            ("half.db", whole[..whole.len() / 2].to_vec(), "damaged"),
            ("header.db", whole[..60].to_vec(), "damaged"),
            (
                "text.db",
                b"not a database at all, just some text".to_vec(),
                "not a store",
            ),
            ("other.db", Vec::new(), "not a store"),
            ("newer.db", whole.clone(), "newer release"),
        ];
        for (name, bytes, expect) in cases {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            match name {
                "other.db" => {
                    let other = rusqlite::Connection::open(&path).unwrap();
                    other
                        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)")
                        .unwrap();
                }
                "newer.db" => {
                    let other = rusqlite::Connection::open(&path).unwrap();
                    other.pragma_update(None, "user_version", 99).unwrap();
                }
                _ => {}
            }
            let before = std::fs::read(&path).unwrap();
            let error = SqliteStore::open(&path).unwrap_err().to_string();
            assert!(
                error.contains(expect) && error.contains(name),
                "{name}: {error}"
            );
            assert_eq!(std::fs::read(&path).unwrap(), before, "{name} was changed");
        }
    }

    #[tokio::test]
    async fn a_backup_is_a_consistent_store_that_others_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join(FILE_NAME)).unwrap();
        store
            .commit(store.fence(), &[], &[Op::Put("/a".into(), b"1".to_vec())])
            .await
            .unwrap();
        let to = dir.path().join("backup.db");
        store.backup(&to).await.unwrap();
        assert!(!crate::files::private::is_open_to_others(&to).unwrap());
        let copy = SqliteStore::open(&to).unwrap();
        assert_eq!(copy.store_id(), store.store_id());
        assert_eq!(copy.get("/a").await.unwrap().unwrap().value, b"1");
    }
}
