//! Durable state: keys to small values, changed by compare-and-set transactions under a fence.
//!
//! The same port serves SQLite (embedded) and later etcd: keys are paths, values are JSON of at most
//! [`VALUE_BYTES`], a commit has at most [`COMMIT_OPS`] operations. What is durable and what is rebuilt at start is
//! listed at the head of `records`.

use async_trait::async_trait;
use std::path::Path;

/// Largest value, bytes.
pub const VALUE_BYTES: usize = 256 * 1024;
/// Most operations in one commit.
pub const COMMIT_OPS: usize = 100;

/// Number of a leadership. A commit with an older one than the store's is refused: [`CommitError::Fenced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// The store's counter of commits. An entry's is that of its last change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A value as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path-like key, e.g. `/request/job-7`.
    pub key: String,
    /// JSON.
    pub value: Vec<u8>,
    /// When it last changed.
    pub revision: Revision,
}

/// What must hold for a commit to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The key does not exist.
    Absent(String),
    /// The key's last change is this one.
    Unchanged(String, Revision),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Set a key.
    Put(String, Vec<u8>),
    /// Remove a key; nothing happens when it does not exist.
    Delete(String),
}

/// Why a commit did not happen. Nothing of it did.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A guard does not hold: read again.
    #[error("{key} changed since it was read")]
    Conflict {
        /// Which key.
        key: String,
    },
    /// Somebody newer leads: stop acting.
    #[error("this coordinator no longer leads (fence {mine}, the store is at {current})")]
    Fenced {
        /// Ours.
        mine: u64,
        /// The store's.
        current: u64,
    },
    /// Too many operations, or a value beyond the limit.
    #[error("{0}")]
    TooLarge(String),
    /// The engine failed.
    #[error("the store failed")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {key} from the store")]
pub struct ReadError {
    /// Key or prefix.
    pub key: String,
    /// Cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The port.
#[async_trait]
pub trait Store: Send + Sync {
    /// Our leadership, taken when the store was opened.
    fn fence(&self) -> Fence;
    /// Random id made when the store was created: part of the owner tag, survives backups.
    fn store_id(&self) -> &str;
    /// One entry.
    async fn get(&self, key: &str) -> Result<Option<Entry>, ReadError>;
    /// All entries whose key begins with `prefix`, by key.
    async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ReadError>;
    /// All of `ops`, if all of `guards` hold and `fence` leads; else nothing.
    async fn commit(
        &self,
        fence: Fence,
        guards: &[Guard],
        ops: &[Op],
    ) -> Result<Revision, CommitError>;
    /// A consistent copy, while running.
    async fn backup(&self, to: &Path) -> Result<(), CommitError>;
}
