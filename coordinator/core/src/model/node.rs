//! Nodes as the planner sees them.

use super::ids::{DrainId, InstanceId, NodeId, OfferingId, PoolId, RequestName, SiteId};
use super::quantities::{MicroUsd, Resources, UnixMs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a node is in its life. Conditions (unreachable, faulty, foreign) and cordons stand beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Asked for.
    Requested,
    /// The provider has it.
    Launched,
    /// Its agent has enrolled.
    Joined,
    /// Takes work.
    Ready,
    /// Being emptied.
    Draining,
    /// Empty, confirmed.
    Drained,
    /// Termination or power-off under way.
    Leaving,
    /// No more.
    Gone,
    /// A physical node without power.
    Off,
}

/// Who keeps new work off a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Cordon {
    /// Drover, for a drain of its own or before one.
    Drover,
    /// A person, through Drover's CLI or behind its back: no supply, never undone by us (I7).
    Person {
        /// Who, as far as known.
        who: String,
        /// Why.
        why: String,
    },
}

/// What the witnesses say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Busy {
    /// Every witness that the pool names says fresh "no work".
    Idle {
        /// Since when, durably.
        since: UnixMs,
    },
    /// Something runs.
    Working {
        /// What, for people; at most a few.
        what: Vec<String>,
        /// Every workload says that it can move.
        #[serde(default)]
        movable: bool,
    },
    /// A witness is missing, stale or failing: counts as busy (I13).
    Unknown {
        /// Which, why.
        why: String,
    },
}

/// Capacity of a node that a request holds. Neither idle nor supply for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// By whom.
    pub request: RequestName,
    /// Units of that request.
    pub units: u32,
    /// How much in all.
    pub amount: Resources,
}

/// A drain under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainInfo {
    /// Id.
    pub id: DrainId,
    /// Drover's own, for idleness: may be taken back while before leaving, such nodes are the first supply.
    pub own_idle: bool,
    /// Since when.
    pub since: UnixMs,
    /// Why, for people.
    pub reason: String,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeInput {
    /// Id.
    pub id: NodeId,
    /// Host name, for people.
    pub name: String,
    /// Pool; absent: supply, never touched (foreign).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolId>,
    /// Site; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteId>,
    /// Zone; empty when unknown.
    #[serde(default)]
    pub zone: String,
    /// Provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// Offering it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offering: Option<OfferingId>,
    /// Where in its life.
    pub lifecycle: Lifecycle,
    /// Who keeps work off; absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<Cordon>,
    /// Its agent is silent.
    #[serde(default)]
    pub unreachable: bool,
    /// Why it must not get work; absent: fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faulty: Option<String>,
    /// What workloads may use in all, overhead taken off.
    pub allocatable: Resources,
    /// What workloads use or have asked for.
    pub used: Resources,
    /// What requests hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<Reserved>,
    /// GPU model; empty without GPUs.
    #[serde(default)]
    pub gpu_model: String,
    /// Labels, the pool's included.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default)]
    pub taints: BTreeMap<String, String>,
    /// What the witnesses say.
    pub busy: Busy,
    /// Drain under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainInfo>,
    /// USD per hour.
    pub price: MicroUsd,
}
