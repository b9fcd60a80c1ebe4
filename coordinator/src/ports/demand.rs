//! Demand: something waits for capacity.

use async_trait::async_trait;
use drover_core::model::{Class, NodeId, Running, UnixMs};
use std::collections::BTreeMap;

/// Who belongs to a class, ordered by (priority, submitted, id); all of one wave (`rules::waves`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(pub Vec<String>);

/// One reading of a source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DemandReading {
    /// Classes with their members, same index.
    pub classes: Vec<Class>,
    /// Members of the class with the same index.
    pub members: Vec<Members>,
    /// Objects that could not be understood: id to why. They cost themselves only.
    pub rejected: BTreeMap<String, String>,
    /// When it was read.
    pub at: UnixMs,
}

/// Why a source could not be read. A source that fails is not a source that is empty: nothing shrinks on it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("demand source {source_name} cannot be read: {message}")]
pub struct DemandError {
    /// Source.
    pub source_name: String,
    /// Why.
    pub message: String,
}

/// What a source knows of the work on one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occupied {
    /// Alike workloads together, each with what it uses or has asked for.
    pub workloads: Vec<Running>,
    /// Free thousandths of each GPU that shares use in part.
    pub gpu_shares: Vec<u32>,
}

/// Name of Drover's own source: capacity requests.
pub const REQUESTS: &str = "requests";

/// The port.
#[async_trait]
pub trait DemandSource: Send + Sync {
    /// Its name (requests, kubernetes/prod, slurm).
    fn name(&self) -> &str;
    /// Everything that waits now: full state, never a change.
    async fn read(&self, now: UnixMs) -> Result<DemandReading, DemandError>;
    /// Work that it has placed, by node, with amounts; asked after `read`. Nodes that are not there run nothing of it.
    /// Absent: it cannot tell, and the agents alone are asked.
    fn running(&self) -> Option<BTreeMap<NodeId, Occupied>> {
        None
    }
    /// Units that have left its queue for a known reason (started, withdrawn by their owner) since it began, as far as it
    /// can tell. What left so is not lost: a queue that empties because its work starts is no source that shrank.
    fn left(&self) -> u64 {
        0
    }
}
