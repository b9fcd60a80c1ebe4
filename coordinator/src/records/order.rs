//! Orders and drains. Written by `control`, committed before they are sent.

use drover_core::model::{DrainId, Millis, NodeId, UnixMs};
use serde::{Deserialize, Serialize};

/// What a node should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesiredState {
    /// Take work.
    Active,
    /// Take no new work.
    Cordoned,
    /// Be emptied.
    Draining,
}

/// How a drain treats workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainPolicy {
    /// Let them end.
    #[default]
    Wait,
    /// End them with grace.
    Evict,
    /// End them within the deadline.
    Force,
}

/// The order of one node. (epoch, generation) only ever grows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRecord {
    /// Exceeds every epoch the node has reported.
    pub epoch: u64,
    /// Grows with each change.
    pub generation: u64,
    /// What it should be.
    pub desired: DesiredState,
    /// Set exactly when draining.
    #[serde(default)]
    pub drain: Option<OrderedDrain>,
    /// By whom a cordon without a drain was set: admin/NAME or drover; empty when active.
    #[serde(default)]
    pub by: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// The part of a drain that the agent needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedDrain {
    /// Id.
    pub id: DrainId,
    /// Policy.
    pub policy: DrainPolicy,
    /// Until when.
    #[serde(default)]
    pub deadline: Option<UnixMs>,
    /// Between TERM and KILL.
    pub grace: Millis,
}

/// What follows a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// Terminate or power off.
    Leave,
    /// Stay cordoned.
    Cordoned,
    /// Back to ready.
    Return,
}

/// How far a drain is, as the coordinator knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainStep {
    /// Ordered; the agent has not confirmed.
    Requested,
    /// The agent is at it.
    Running,
    /// Confirmed empty.
    Drained,
    /// The termination or power-off was begun.
    Leaving,
}

/// A drain under way. Gone from the store when it ends, one way or the other (an event and the audit tell).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRecord {
    /// Id.
    pub id: DrainId,
    /// Node.
    pub node: NodeId,
    /// Policy.
    pub policy: DrainPolicy,
    /// Who: admin/NAME or drover.
    pub by: String,
    /// Why, for people.
    pub reason: String,
    /// Drover's own, for idleness.
    pub own_idle: bool,
    /// When ordered.
    pub since: UnixMs,
    /// Until when.
    #[serde(default)]
    pub deadline: Option<UnixMs>,
    /// Between TERM and KILL.
    pub grace: Millis,
    /// What follows.
    pub then: Then,
    /// How far.
    pub step: DrainStep,
    /// When work that says that it can move was told to: for a drain of Drover's own with policy evict, which waits
    /// until the node is cordoned and its work has been looked at again. The breaker counted it then.
    #[serde(default)]
    pub moving: Option<UnixMs>,
    /// The state before, restored on refusal, cancel or deadline: a person's cordon stays.
    #[serde(default)]
    pub before: Option<Box<OrderRecord>>,
}
