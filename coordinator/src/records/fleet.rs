//! Launches, capacity memory, pool settings, freezes, approvals, idle times, audit and events.

use crate::ports::actuate::{Raise, Recipe, Way};
use drover_core::model::{
    Bytes, FailureKind, InstanceId, LaunchId, MemoryEntry, Mode, NodeId, Offering, OfferingId,
    PoolId, RequestName, UnixMs,
};
use serde::{Deserialize, Serialize};

/// How far a launch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchState {
    /// The intent is committed; the answer is not known.
    Intended,
    /// The provider has answered.
    Asked,
    /// The deadline passed: no longer coming, counted as a miss, kept until reaped or joined late.
    Missed,
}

/// Capacity that was asked for. Committed before the call, kept until every node joined, failed or was reaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// Id.
    pub id: LaunchId,
    /// Idempotency token.
    pub token: String,
    /// Pool.
    pub pool: PoolId,
    /// Offering.
    pub offering: OfferingId,
    /// Nodes asked for.
    pub count: u32,
    /// Nodes granted by the provider; absent while not known.
    #[serde(default)]
    pub granted: Option<u32>,
    /// How it was asked; absent while not known.
    #[serde(default)]
    pub way: Option<Way>,
    /// Nodes of which capacity memory knows that an instance was seen, where the way tells no ids.
    #[serde(default)]
    pub shown: u32,
    /// Instances granted, in order; where the way tells no ids, those that have appeared in the group since and can be
    /// nobody else's.
    #[serde(default)]
    pub instances: Vec<InstanceId>,
    /// Members that may be its own and may as well be somebody else's, where the way tells no ids: never in `instances`.
    #[serde(default)]
    pub appeared: u32,
    /// More came, or is wanted, than was asked for: nobody can tell any more which of them are its own.
    #[serde(default)]
    pub ambiguous: bool,
    /// The size that the provider was told for it, where it is asked so; lowered by what was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<Raise>,
    /// Young members that were there before the ask, by the last reading: they are not its own.
    #[serde(default)]
    pub before: Vec<InstanceId>,
    /// Of them (or of `granted`) joined: instance and node.
    #[serde(default)]
    pub joined: Vec<(InstanceId, NodeId)>,
    /// Hosts to power on.
    #[serde(default)]
    pub hosts: Vec<InstanceId>,
    /// State.
    pub state: LaunchState,
    /// When the intent was committed.
    pub asked: UnixMs,
    /// From then on it is no longer coming.
    pub deadline: UnixMs,
    /// Was a probe of a failed offering.
    #[serde(default)]
    pub probe: bool,
    /// Why, for people.
    pub reason: String,
    /// Fence of the store under which it was asked: after a restore nothing of an older one is reaped.
    pub fence: u64,
}

impl LaunchRecord {
    /// Its way names a size, and what comes of it is seen only once it is there.
    #[must_use]
    pub fn tells_no_ids(&self) -> bool {
        self.way == Some(Way::SetDesiredCapacity)
    }
}

/// What the fleet has learnt about an offering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// The entry.
    pub entry: MemoryEntry,
    /// Failures in a row.
    pub failures: u32,
}

/// Settings of a pool changed at run time, and its misses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRecord {
    /// Mode instead of the config's.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Limits instead of the config's.
    #[serde(default)]
    pub min: Option<u32>,
    /// Limits instead of the config's.
    #[serde(default)]
    pub max: Option<u32>,
    /// Limits instead of the config's.
    #[serde(default)]
    pub spare: Option<u32>,
    /// Paused: by whom, why, since when.
    #[serde(default)]
    pub paused: Option<(String, String, UnixMs)>,
    /// Launches in a row that never joined, or of which nothing was ready in its time.
    #[serde(default)]
    pub misses: u32,
    /// Stopped by a config or permission failure: kind, text, since when.
    #[serde(default)]
    pub failed: Option<(FailureKind, String, UnixMs)>,
    /// What nodes were made from when that failure stopped it.
    #[serde(default)]
    pub failed_with: Option<Recipe>,
    /// What nodes were made from at the miss that stopped it.
    #[serde(default)]
    pub missed_with: Option<Recipe>,
    /// Last provider failure taken, so that each counts once.
    #[serde(default)]
    pub failures_seen: Vec<String>,
    /// Learnt boot times, newest last, milliseconds, at most 20.
    #[serde(default)]
    pub boots_ms: Vec<u64>,
    /// What its nodes are not what their template promises, by instance type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<UnlikeRecord>,
}

/// Nodes of a pool that are not what its provider promises: it is planned with what they are until a node joins that is as
/// promised, the template or the promise is another one, or a person resumes the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlikeRecord {
    /// Type.
    pub instance_type: String,
    /// GPU model that was promised; empty: none was.
    pub promised: String,
    /// GPU model that a node has; empty: as promised.
    #[serde(default)]
    pub gpu_model: String,
    /// GPUs that a node has where a unit found too few.
    #[serde(default)]
    pub gpus: Option<u32>,
    /// Memory that a node has where a unit found too little.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// Name of the node that showed it.
    pub node: String,
    /// What it was made from, where that is known.
    #[serde(default)]
    pub recipe: Option<Recipe>,
}

impl UnlikeRecord {
    /// It is about this offering, as the offering is now.
    #[must_use]
    pub fn is_of(&self, offering: &Offering) -> bool {
        self.instance_type == offering.instance_type && self.promised == offering.gpu_model
    }

    /// Something is not as promised.
    #[must_use]
    pub fn differs(&self) -> bool {
        !self.gpu_model.is_empty() || self.gpus.is_some() || self.memory.is_some()
    }
}

/// A freeze of a pool or of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeRecord {
    /// Pool; absent: the fleet.
    pub pool: Option<PoolId>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: UnixMs,
}

/// An act that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// Id.
    pub id: String,
    /// Pool.
    pub pool: PoolId,
    /// Nodes it is about.
    pub nodes: Vec<NodeId>,
    /// What would be done.
    pub message: String,
    /// Why it is not done without a person.
    #[serde(default)]
    pub why: String,
    /// Since when.
    pub since: UnixMs,
    /// Approved: by whom, when. Valid for an hour.
    #[serde(default)]
    pub approved: Option<(String, UnixMs)>,
}

/// Destructive acts of the last hour, for the breaker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRecord {
    /// When and in which pool.
    pub acts: Vec<(UnixMs, PoolId)>,
}

/// Since when a node is idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleRecord {
    /// Since when.
    pub since: UnixMs,
}

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// Number.
    pub seq: u64,
    /// When.
    pub at: UnixMs,
    /// admin/NAME, node/ID or drover.
    pub actor: String,
    /// What (node.drain).
    pub verb: String,
    /// To what.
    pub subject: String,
    /// Details.
    pub detail: String,
}

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warning,
    /// Worth a person now.
    Alarm,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Number.
    pub seq: u64,
    /// When.
    pub at: UnixMs,
    /// node, pool, request, plan, fleet.
    pub kind: String,
    /// About what.
    pub subject: String,
    /// Machine-readable.
    pub what: String,
    /// For people.
    pub message: String,
    /// How serious.
    pub severity: Severity,
    /// The ask that it tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchId>,
    /// Of an ask: the requests that it is for; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<RequestName>>,
    /// What people call it beside its id: a node's host name and instance id, an adopted instance. A node that is gone is
    /// found by them for as long as its events are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}
