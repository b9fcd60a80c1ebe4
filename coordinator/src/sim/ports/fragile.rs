//! A store in memory whose owner can die right after a durable write: what was written stays, its answer never comes.
//!
//! Used by the engine, which then starts the coordinator anew on the same content.

use crate::adapters::store::memory::MemoryStore;
use crate::ports::store::{CommitError, Entry, Fence, Guard, Op, ReadError, Revision, Store};
use async_trait::async_trait;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;

/// When the coordinator dies.
#[derive(Default)]
pub(in crate::sim) struct Death {
    /// Durable writes until then; 0: it lives.
    writes: AtomicU32,
    came: Notify,
}

impl Death {
    /// It dies after so many further durable writes.
    pub(in crate::sim) fn after(&self, writes: u32) {
        self.writes.store(writes, Ordering::SeqCst);
    }

    /// It lives.
    pub(in crate::sim) fn never(&self) {
        self.writes.store(0, Ordering::SeqCst);
    }

    /// Something that the coordinator does, to its end; `None` when it dies at it. Whatever writes to the store goes
    /// through here: the write at which it dies never answers.
    pub(in crate::sim) async fn or<T>(&self, deed: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.came.notified() => None,
            done = deed => Some(done),
        }
    }

    async fn written(&self) {
        let left = self.writes.load(Ordering::SeqCst);
        if left == 0 {
            return;
        }
        self.writes.store(left - 1, Ordering::SeqCst);
        if left == 1 {
            self.came.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

/// The store.
pub(in crate::sim) struct Fragile {
    inner: MemoryStore,
    death: Arc<Death>,
}

impl Fragile {
    pub(in crate::sim) const fn new(inner: MemoryStore, death: Arc<Death>) -> Self {
        Self { inner, death }
    }
}

#[async_trait]
impl Store for Fragile {
    fn fence(&self) -> Fence {
        self.inner.fence()
    }

    fn store_id(&self) -> &str {
        self.inner.store_id()
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        self.inner.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ReadError> {
        self.inner.list(prefix).await
    }

    async fn commit(
        &self,
        fence: Fence,
        guards: &[Guard],
        ops: &[Op],
    ) -> Result<Revision, CommitError> {
        let result = self.inner.commit(fence, guards, ops).await;
        if result.is_ok() {
            self.death.written().await;
        }
        result
    }

    async fn backup(&self, to: &Path) -> Result<(), CommitError> {
        self.inner.backup(to).await
    }
}
