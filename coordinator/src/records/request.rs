//! Capacity requests and their assignments: durable and sticky, since no scheduler stands behind them.

use drover_core::model::{
    LaunchId, Locality, Millis, NodeId, PoolId, Preferred, RequestName, Requirement, Resources,
    UnixMs,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked for. What came later than the first release stands beside what was there, so that the release before
/// still reads a record: it follows the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Units wanted.
    pub units: u32,
    /// One unit, without its share of a GPU: see [`RequestSpec::whole_unit`].
    pub unit: Resources,
    /// Thousandths of one GPU that a unit shares with others; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpu_milli: u32,
    /// One unit is a whole node.
    #[serde(default)]
    pub whole_nodes: bool,
    /// GPU model, empty: any.
    #[serde(default)]
    pub gpu_model: String,
    /// How long it is held once served; absent: until cancelled.
    #[serde(default)]
    pub duration: Option<Millis>,
    /// Gang: least useful number of units.
    #[serde(default)]
    pub gang_min: Option<u32>,
    /// How near.
    #[serde(default)]
    pub locality: Locality,
    /// Higher first.
    #[serde(default)]
    pub priority: i32,
    /// Only these; empty: any.
    #[serde(default)]
    pub pools: Vec<PoolId>,
    /// Labels that must match.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// How long a gang may hold partial capacity.
    #[serde(default)]
    pub hold: Option<Millis>,
    /// Further rules about labels; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Requirement>,
    /// Wishes about labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred: Vec<Preferred>,
    /// Taints that it accepts: key to values; an empty set accepts every value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tolerations: BTreeMap<String, BTreeSet<String>>,
    /// Even distribution of its own units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<SpreadWish>,
    /// Whose budget pays; empty: only the fleet's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub team: String,
    /// May wait so long for capacity in use before new nodes are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wait: Option<Millis>,
    /// Useless when it has not started by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UnixMs>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(amount: &u32) -> bool {
    *amount == 0
}

/// Even distribution of a request's units over the values of a node label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpreadWish {
    /// Label of the node.
    pub topology: String,
    /// In no domain more than so many above the least.
    pub max_skew: u32,
    /// Rather wait than break it.
    pub hard: bool,
}

impl RequestSpec {
    /// One unit, its share of a GPU included.
    #[must_use]
    pub fn whole_unit(&self) -> Resources {
        Resources {
            gpu_milli: self.gpu_milli,
            ..self.unit.clone()
        }
    }
}

/// Label of the work of a request, and of the units that it asks for.
pub const REQUEST_LABEL: &str = "drover.dev/request";

/// How a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Waits.
    Pending,
    /// All its units are on ready nodes.
    Served,
    /// Its time is over; its capacity is free again.
    Ended,
    /// Taken back.
    Cancelled,
}

/// Where units of a request are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentTarget {
    /// On a node.
    Node(NodeId),
    /// On the n-th node of a launch that has not joined; becomes `Node` when it does, is dropped when it misses.
    Launch(LaunchId, u32),
}

/// Units of a request on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentRecord {
    /// Where.
    pub target: AssignmentTarget,
    /// How many.
    pub units: u32,
    /// What they hold of the node in all (a whole node: its allocatable), without shares of GPUs: those follow from the
    /// units.
    pub amount: Resources,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Unique.
    pub name: RequestName,
    /// What.
    pub spec: RequestSpec,
    /// Whose.
    pub owner: String,
    /// When made.
    pub submitted: UnixMs,
    /// State.
    pub state: RequestState,
    /// When it was first fully served.
    #[serde(default)]
    pub served: Option<UnixMs>,
    /// When it ends; set when it is served and has a duration.
    #[serde(default)]
    pub ends: Option<UnixMs>,
    /// Who has what.
    #[serde(default)]
    pub assignments: Vec<AssignmentRecord>,
    /// Since when a gang holds partial capacity.
    #[serde(default)]
    pub holding_since: Option<UnixMs>,
    /// When it ended or was cancelled, and by whom or what.
    #[serde(default)]
    pub closed: Option<(UnixMs, String)>,
}
