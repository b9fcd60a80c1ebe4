//! Capacity requests and their assignments: durable and sticky, since no scheduler stands behind them.

use drover_core::model::{
    LaunchId, Locality, Millis, NodeId, PoolId, RequestName, Resources, UnixMs,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Units wanted.
    pub units: u32,
    /// One unit.
    pub unit: Resources,
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
}

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
    /// What they hold of the node in all (a whole node: its allocatable).
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
