//! Demand as classes: units alike in everything the planner looks at, counted and not named. The members stay
//! with the source, ordered by (priority, submitted, id).

use super::ids::{PoolId, RequestName};
use super::quantities::{Millis, Resources, UnixMs};
use super::rules_of_place::{HostPort, Near, Preferred, PreferredNear, Requirement, Spread};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Where demand comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// One capacity request: its units are assigned by Drover, durably.
    Request(RequestName),
    /// A scheduler by the name of its source (kubernetes/prod, slurm).
    Scheduler(String),
}

/// Units that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Where its members wait.
    pub source: Source,
    /// One unit.
    pub unit: Resources,
    /// One unit takes a whole node, whatever its size.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole_node: bool,
    /// Units that wait (for a request: that have no assignment yet).
    pub count: u32,
    /// Where a unit may go.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub constraints: Constraints,
    /// All at once, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<Gang>,
    /// Higher goes first.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub priority: i32,
    /// When the oldest member was submitted. The others were in the same wave (`rules::waves`): who came later is another
    /// class.
    pub submitted: UnixMs,
    /// Labels of its units: what the selectors of others look at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Scope of selectors (a Kubernetes namespace, a Slurm account); empty: the one scope there is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Whose budget pays; empty: only the fleet's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub team: String,
    /// Stated run time of a unit (Slurm's time limit, `--for`, an annotation); absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_time: Option<Millis>,
    /// May wait so long since `submitted` for nodes whose work states an end before new nodes are asked for; absent: no
    /// patience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<Millis>,
    /// Useless when it has not started by then: nothing is asked for whose boot ends later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UnixMs>,
}

/// Where a unit may go.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraints {
    /// Part of the GPU model's name, compared without case, dashes, underscores and blanks ("titan-x" matches
    /// "NVIDIA TITAN X (Pascal)"). Empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_model: String,
    /// Only these pools; empty: any.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pools: BTreeSet<PoolId>,
    /// All must hold for the node's labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// Taints that the unit accepts: key to values; an empty set accepts every value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tolerations: BTreeMap<String, BTreeSet<String>>,
    /// Node affinity: all rules of at least one of these must hold for the node's labels; empty: no such rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Vec<Requirement>>,
    /// Preferred node affinity: places that fulfil more weight come first among those of equal cost; never a reason to
    /// stay without, never a reason to pay more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred: Vec<Preferred>,
    /// Ports of the host that a unit takes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub host_ports: BTreeSet<HostPort>,
    /// Each must have a fellow in the unit's domain (the unit itself counts where there is none at all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affinity: Vec<Near>,
    /// None may have a fellow in the unit's domain, now or later (the rule also keeps later ones away).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anti_affinity: Vec<Near>,
    /// Wishes of the same two kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_near: Vec<PreferredNear>,
    /// Topology spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<Spread>,
    /// At most so many units of this class on one node; 0: no limit.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub max_per_node: u32,
    /// Rules of the source that Drover cannot follow: the class is never grown for, the reason names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

/// How near each other a gang's units must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locality {
    /// One node.
    Node,
    /// One pool.
    Pool,
    /// One zone.
    Zone,
    /// One site.
    Site,
    /// Anywhere.
    #[default]
    Any,
}

/// Demand that is useful only all at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gang {
    /// Least useful number of units, counting those already assigned.
    pub min: u32,
    /// Units already assigned (requests), so that min - assigned must be placed now.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub assigned: u32,
    /// How near.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub locality: Locality,
    /// How long partial capacity may be held for it.
    pub hold: Millis,
    /// Since when partial capacity is held; absent when none ever was. It stays until the gang is whole: a gang whose
    /// hold time is over does not hold again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holding_since: Option<UnixMs>,
}
