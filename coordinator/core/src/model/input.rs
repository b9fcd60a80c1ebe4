//! The planner's one input: a serialisable value, so that every bug report is a file.

use super::demand::{Class, Constraints};
use super::ids::{LaunchId, OfferingId, PoolId, RequestName};
use super::learnt::Learnt;
use super::node::NodeInput;
use super::pool::{FailureKind, PoolInput};
use super::quantities::{MicroUsd, Millis, Resources, UnixMs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the planner and of plan files. A file of another version is refused by name.
pub const PLAN_VERSION: u32 = 2;

/// Everything a decision depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanInput {
    /// [`PLAN_VERSION`].
    pub version: u32,
    /// The moment of the decision.
    pub now: UnixMs,
    /// Seed of the planner's own small generator.
    pub seed: u64,
    /// Pools, by id.
    pub pools: Vec<PoolInput>,
    /// Nodes, by id. An instance is counted exactly once: in `nodes`, or in the `count` of a launch in flight (until its
    /// agent has joined), or in its pool's `unmanaged`.
    pub nodes: Vec<NodeInput>,
    /// What waits, in order of (priority, submitted, source). A request that has units reserved on a launch in flight is
    /// listed even with a `count` of 0: its unit says how much of the launch is taken.
    pub classes: Vec<Class>,
    /// Asked for and not yet a node, by id. Expired ones are not here.
    pub launches: Vec<LaunchInFlight>,
    /// What the fleet has learnt about offerings that failed, by offering.
    pub memory: Vec<MemoryEntry>,
    /// Limits and habits of the fleet.
    pub policy: Policy,
    /// What the fleet has learnt from its own work.
    #[serde(default, skip_serializing_if = "Learnt::is_empty")]
    pub learnt: Learnt,
}

/// Capacity that is coming: `count` nodes of one offering that are asked for or launched and have not joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchInFlight {
    /// Id.
    pub id: LaunchId,
    /// Pool.
    pub pool: PoolId,
    /// Offering.
    pub offering: OfferingId,
    /// Nodes still to come.
    pub count: u32,
    /// Of them those whose instance the provider has shown: what was asked for there was to be had.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub shown: u32,
    /// When asked.
    pub asked: UnixMs,
    /// From then on it is no longer coming.
    pub deadline: UnixMs,
    /// Units that requests already hold on it: (request, units).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<(RequestName, u32)>,
}

impl LaunchInFlight {
    /// Nodes of it that probe an offering that failed: asked for after the failure, with nothing to show for it yet. What
    /// was asked for before says nothing about the failure, and what is shown has ended the probe.
    #[must_use]
    pub fn probing(&self, entry: &MemoryEntry, now: UnixMs) -> u32 {
        if self.offering != entry.offering || self.asked <= entry.failed || self.deadline <= now {
            return 0;
        }
        self.count.saturating_sub(self.shown)
    }
}

/// An offering that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryEntry {
    /// Which.
    pub offering: OfferingId,
    /// How.
    pub kind: FailureKind,
    /// When last.
    pub failed: UnixMs,
    /// Not before this; from then on at most `ration` nodes.
    pub next_probe: UnixMs,
    /// Nodes that the next ask may want.
    pub ration: u32,
    /// Text of the provider.
    pub message: String,
}

/// Limits and habits of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Most USD per hour of all that is running and coming; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<MicroUsd>,
    /// Most GPUs of all that is running and coming; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gpus: Option<u32>,
    /// Growth after a fresh start waits for this long, so that agents can return first. Control applies it, as
    /// `Stop::Stale { may_grow: false }` on every pool: the planner knows no start.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub settle: Millis,
    /// Move running work that says it can be moved, for cost.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub consolidate: bool,
    /// Room to keep free at all times, in units of demand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headroom: Vec<Headroom>,
    /// Limits per team, beside the fleet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<String, Budget>,
}

/// A limit on what runs and comes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Most USD per hour; absent: no limit. A node that teams share is paid by share of what they use of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<MicroUsd>,
    /// Most GPUs; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gpus: Option<u32>,
}

/// Spare capacity in units of demand: so many units could start at once, anywhere that they may go. Ready and coming
/// nodes count; demand goes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headroom {
    /// What people call it.
    pub name: String,
    /// One unit.
    pub unit: Resources,
    /// Where it may be.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub constraints: Constraints,
    /// Units.
    pub count: u32,
}
