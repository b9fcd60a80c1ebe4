//! Nodes as the planner sees them.

use super::ids::{DrainId, InstanceId, NodeId, OfferingId, PoolId, RequestName, SiteId};
use super::quantities::{MicroUsd, Millis, Resources, UnixMs};
use super::rules_of_place::{HostPort, Near};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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
        #[serde(default, skip_serializing_if = "super::is_default")]
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
    /// Whose budget pays; empty: only the fleet's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub team: String,
    /// When the request gives it back; absent when it has not said, or has not begun to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<UnixMs>,
}

/// Workloads of one node that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// How many.
    pub count: u32,
    /// What each uses or has asked for.
    pub unit: Resources,
    /// Their labels, for the selectors of others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Scope of selectors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Whose budget pays; empty: only the fleet's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub team: String,
    /// Ports of the host that each takes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub host_ports: BTreeSet<HostPort>,
    /// Whom they keep away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anti_affinity: Vec<Near>,
    /// When they started; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixMs>,
    /// When they say that they end; absent when they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<UnixMs>,
    /// They say that they can move.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub movable: bool,
}

/// A drain under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainInfo {
    /// Id.
    pub id: DrainId,
    /// Drover's own, for idleness: may be taken back while before leaving, such nodes are the first supply.
    pub own_idle: bool,
    /// Its work was told to move: no supply, or the work would come back to the node that is to be saved.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub moving: bool,
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
    #[serde(default, skip_serializing_if = "super::is_default")]
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
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub unreachable: bool,
    /// Why it must not get work; absent: fine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faulty: Option<String>,
    /// What workloads may use in all, overhead taken off.
    pub allocatable: Resources,
    /// What workloads use or have asked for. A GPU that shares use in part counts whole.
    pub used: Resources,
    /// Free thousandths of each GPU that shares use in part, smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_shares: Vec<u32>,
    /// What is known of what runs there, alike ones together; `used` has the amounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Running>,
    /// What requests hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<Reserved>,
    /// GPU model; empty without GPUs.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub gpu_model: String,
    /// Labels, the pool's included.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub taints: BTreeMap<String, String>,
    /// What the witnesses say.
    pub busy: Busy,
    /// Drain under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<DrainInfo>,
    /// USD per hour.
    pub price: MicroUsd,
    /// When it was launched; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<UnixMs>,
    /// How long the work ran that ended last here; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ran: Option<Millis>,
}
