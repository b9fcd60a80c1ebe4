//! A store in memory with the semantics of the durable ones. Used by the simulator and tests, which can "crash" and
//! open it again: the content lives in a [`Disk`] that outlives each opening.

use super::sqlite::write_copy;
use super::{check_limits, new_store_id};
use crate::ports::store::{CommitError, Entry, Fence, Guard, Op, ReadError, Revision, Store};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
struct Content {
    store_id: String,
    fence: u64,
    revision: u64,
    entries: BTreeMap<String, (Vec<u8>, u64)>,
}

/// What a file is for the durable engines.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<Content>>);

/// A backup of a [`Disk`].
#[derive(Debug, Clone)]
pub struct DiskCopy(BTreeMap<String, (Vec<u8>, u64)>);

impl Default for Disk {
    fn default() -> Self {
        Self::with_id(&new_store_id())
    }
}

impl Disk {
    /// An empty one with a fixed store id, for runs that must be alike.
    #[must_use]
    pub fn with_id(store_id: &str) -> Self {
        Self(Arc::new(Mutex::new(Content {
            store_id: store_id.to_owned(),
            fence: 0,
            revision: 0,
            entries: BTreeMap::new(),
        })))
    }

    /// A backup of what it holds.
    #[must_use]
    pub fn copy(&self) -> DiskCopy {
        DiskCopy(self.lock().entries.clone())
    }

    /// Writes one entry from outside, as `drover restore` does before a coordinator starts.
    pub fn write(&self, key: &str, value: Vec<u8>) {
        let mut content = self.lock();
        content.revision += 1;
        let revision = content.revision;
        content.entries.insert(key.to_owned(), (value, revision));
    }

    /// The content of a backup again. Whoever led before is fenced.
    pub fn put_back(&self, copy: &DiskCopy) {
        let mut content = self.lock();
        content.fence += 1;
        content.entries.clone_from(&copy.0);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Content> {
        // Nothing panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A leadership over a [`Disk`].
#[derive(Debug)]
pub struct MemoryStore {
    disk: Disk,
    store_id: String,
    fence: Fence,
}

impl MemoryStore {
    /// Takes the leadership: whoever had it before is fenced.
    #[must_use]
    pub fn open(disk: &Disk) -> Self {
        let mut content = disk.lock();
        content.fence += 1;
        let fence = Fence(content.fence);
        let store_id = content.store_id.clone();
        drop(content);
        Self {
            disk: disk.clone(),
            store_id,
            fence,
        }
    }
}

fn entry(key: &str, (value, revision): &(Vec<u8>, u64)) -> Entry {
    Entry {
        key: key.to_owned(),
        value: value.clone(),
        revision: Revision(*revision),
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn fence(&self) -> Fence {
        self.fence
    }

    fn store_id(&self) -> &str {
        &self.store_id
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        let content = self.disk.lock();
        Ok(content.entries.get(key).map(|value| entry(key, value)))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ReadError> {
        let content = self.disk.lock();
        Ok(content
            .entries
            .range(prefix.to_owned()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| entry(key, value))
            .collect())
    }

    async fn commit(
        &self,
        fence: Fence,
        guards: &[Guard],
        ops: &[Op],
    ) -> Result<Revision, CommitError> {
        check_limits(guards, ops)?;
        let mut content = self.disk.lock();
        if fence.0 != content.fence {
            return Err(CommitError::Fenced {
                mine: fence.0,
                current: content.fence,
            });
        }
        for guard in guards {
            let (key, expected) = match guard {
                Guard::Absent(key) => (key, None),
                Guard::Unchanged(key, revision) => (key, Some(revision.0)),
            };
            let found = content.entries.get(key).map(|(_, revision)| *revision);
            if found != expected {
                return Err(CommitError::Conflict { key: key.clone() });
            }
        }
        if ops.is_empty() {
            return Ok(Revision(content.revision));
        }
        content.revision += 1;
        let revision = content.revision;
        for op in ops {
            match op {
                Op::Put(key, value) => {
                    content
                        .entries
                        .insert(key.clone(), (value.clone(), revision));
                }
                Op::Delete(key) => {
                    content.entries.remove(key);
                }
            }
        }
        Ok(Revision(revision))
    }

    /// Writes a file that the SQLite engine opens.
    async fn backup(&self, to: &Path) -> Result<(), CommitError> {
        let (entries, fence, revision) = {
            let content = self.disk.lock();
            let entries: Vec<Entry> = content
                .entries
                .iter()
                .map(|(key, value)| entry(key, value))
                .collect();
            (entries, Fence(content.fence), content.revision)
        };
        let (to, store_id) = (to.to_owned(), self.store_id.clone());
        tokio::task::spawn_blocking(move || write_copy(&to, &store_id, fence, revision, &entries))
            .await
            .map_err(|error| CommitError::Backend(Box::new(error)))?
            .map_err(|error| CommitError::Backend(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sqlite::SqliteStore, table};
    use super::*;

    fn disks() -> impl AsyncFn(&str) -> MemoryStore {
        let disks = Mutex::new(BTreeMap::<String, Disk>::new());
        async move |name: &str| {
            let mut disks = disks.lock().unwrap();
            MemoryStore::open(disks.entry(name.to_owned()).or_default())
        }
    }

    #[tokio::test]
    async fn passes_the_table() {
        table::every_engine(disks()).await;
    }

    #[tokio::test]
    async fn i10_fenced() {
        table::i10_fenced(disks()).await;
    }

    #[tokio::test]
    async fn its_backup_opens_as_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy.db");
        let store = MemoryStore::open(&Disk::default());
        let op = Op::Put("/a".into(), b"1".to_vec());
        let revision = store.commit(store.fence(), &[], &[op]).await.unwrap();
        store.backup(&path).await.unwrap();
        let copy = SqliteStore::open(&path).unwrap();
        assert_eq!(copy.store_id(), store.store_id());
        assert!(copy.fence() > store.fence());
        let entry = copy.get("/a").await.unwrap().unwrap();
        assert_eq!((entry.value, entry.revision), (b"1".to_vec(), revision));
    }
}
