//! Pools and offerings as the planner sees them.

use super::anticipate::Anticipate;
use super::ids::{OfferingId, PoolId, ReservationId, SiteId};
use super::quantities::{MicroUsd, Millis, Resources, UnixMs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What drives a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// An EC2 Auto Scaling group.
    Asg,
    /// Named physical hosts.
    Static,
    /// The simulated cloud.
    Sim,
}

/// What Drover may do to a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Plan, record and explain; change nothing.
    #[default]
    Observe,
    /// Never remove.
    Grow,
    /// Everything.
    Full,
}

/// How a node is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Market {
    /// Physical, ours.
    Owned,
    /// Paid for anyway until it ends.
    Reserved,
    /// Spot.
    Spot,
    /// On demand.
    OnDemand,
}

/// What an ask can choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Steering {
    /// Group and zone (LaunchInstances, sim).
    Zone,
    /// Only the group (SetDesiredCapacity).
    #[default]
    Group,
    /// One named host each (static with power-on).
    Host,
}

/// One way to get nodes: instance type x zone x market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offering {
    /// `pool/type/zone/market`.
    pub id: OfferingId,
    /// EC2 type, or the host's description.
    pub instance_type: String,
    /// Zone; empty when the group chooses.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub zone: String,
    /// How it is paid.
    pub market: Market,
    /// USD per hour; zero for owned and reserved.
    pub price: MicroUsd,
    /// What a new node offers to workloads, daemon overhead already taken off; `None`: the type is unknown and
    /// nothing is asked of it.
    pub allocatable: Option<Resources>,
    /// GPU model; empty without GPUs.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub gpu_model: String,
    /// Learnt or stated time from asking to ready.
    pub boot: Millis,
    /// Most that can still be had (static hosts that are off); absent: only the pool's maximum limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<u32>,
    /// Reservations that its new nodes come out of, one node of one of them each; offerings of other pools may name the
    /// same. Empty: it comes out of none, and only `available` limits it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservedRoom>,
}

/// A reservation and its room, as an offering states it. Where several offerings name one reservation, the least room
/// that any of them states is what they share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservedRoom {
    /// Which.
    pub reservation: ReservationId,
    /// Nodes that it still takes.
    pub nodes: u32,
}

/// The most nodes of a pool that may be from draining to leaving at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quota {
    /// Percent of the pool, rounded up.
    Percent(u32),
    /// A number.
    Count(u32),
}

/// A disruption budget in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disruption {
    /// Most at once from draining to leaving.
    pub most: Quota,
    /// For these strategies of removal (faulty, expired, empty, surplus, replaceable); empty: for all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub strategies: BTreeSet<String>,
    /// When its window closes; absent: it always holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMs>,
    /// What people call it.
    pub name: String,
}

/// Why nothing is done to a pool now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Stop {
    /// A person froze it or the fleet, or the group's freeze tag says so: neither growth nor removal.
    Frozen {
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
    /// A person paused it: no growth.
    Paused {
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
    /// Launches of its template never joined, or never became ready: no growth until a person or a success clears it.
    NeverJoined {
        /// Misses in a row.
        misses: u32,
    },
    /// Config or permission failure: no growth.
    Failed {
        /// Which.
        failure: FailureKind,
        /// Text.
        why: String,
    },
    /// Its whole site is silent: no growth, no removal (I6).
    SiteSilent,
    /// Its provider could not be read, or what was read is too old to remove by (growth may go on for a bounded age).
    Stale {
        /// Growth may still go on.
        may_grow: bool,
        /// Why.
        why: String,
    },
    /// Removal holds: wall and monotonic clock drifted apart, or a source shrank.
    NoRemoval {
        /// Why.
        why: String,
    },
    /// Owned by nobody or somebody else (I5).
    NotOurs {
        /// Why.
        why: String,
    },
}

/// Kinds of failure of DESIGN 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No capacity there now.
    Shortage,
    /// An account limit.
    Quota,
    /// The spot price.
    Price,
    /// Template or group is broken.
    Config,
    /// Not allowed.
    Permission,
    /// Launch is suspended.
    Suspended,
    /// Too many calls. Never enters capacity memory.
    Throttle,
    /// Passing trouble.
    Transient,
    /// Asked for, never came.
    NeverJoined,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolInput {
    /// Name.
    pub id: PoolId,
    /// Kind.
    pub kind: PoolKind,
    /// Site.
    pub site: SiteId,
    /// What may be done.
    pub mode: Mode,
    /// Why nothing, or less, may be done; all that apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Stop>,
    /// Fewest nodes.
    pub min: u32,
    /// Nodes below which the provider lets none go (a group's own minimum). It fills them by itself: nothing is asked for
    /// them.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub floor: u32,
    /// Most nodes, coming ones included.
    pub max: u32,
    /// The maximum that the config or a person set, where the provider's own (a group's) is below it and so is `max`: what is
    /// beyond `max` waits for somebody to raise that one. Absent: `max` is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_max: Option<u32>,
    /// Idle nodes to keep as a standing target.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub spare: u32,
    /// How long a node is idle before it may go.
    pub idle_after: Millis,
    /// Keep idle nodes for likely demand; absent: no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anticipate: Option<Anticipate>,
    /// Nodes of this age are replaced once empty; absent: they grow as old as they like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<Millis>,
    /// Most at once from draining to leaving.
    pub quota: Quota,
    /// Further limits that hold now: calendar windows are expanded before the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disruption: Vec<Disruption>,
    /// Preference among pools of equal price: lower first (order in the config).
    pub rank: u32,
    /// Labels of its nodes.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub labels: BTreeMap<String, String>,
    /// Taints of its nodes.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub taints: BTreeMap<String, String>,
    /// What can be asked.
    pub offerings: Vec<Offering>,
    /// What an ask can choose.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub steering: Steering,
    /// Nodes can be removed (a static pool without a power-off command: no).
    pub removable: bool,
    /// Instances that the provider counts in this pool and that are in no `NodeInput` and no launch: they count against
    /// `max` and are never touched.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub unmanaged: u32,
    /// When the pool was last read.
    pub read_at: UnixMs,
}

impl PoolInput {
    /// Nodes below which none is let go.
    #[must_use]
    pub fn least(&self) -> u32 {
        self.min.max(self.floor)
    }

    /// Most nodes once the provider's own maximum is raised to what the config allows.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.config_max.map_or(self.max, |most| most.max(self.max))
    }
}
