//! The planner's result: actions with reasons, the hypothesis of who goes where, and a report on all that was not done.

use super::demand::Source;
use super::ids::{LaunchId, NodeId, OfferingId, PoolId, RequestName};
use super::learnt::Demanded;
use super::quantities::MicroUsd;
use super::reason::Reason;
use serde::{Deserialize, Serialize};

/// What one decision gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// [`super::input::PLAN_VERSION`].
    pub version: u32,
    /// What to do.
    pub plan: Plan,
    /// Why, and why not.
    pub report: Report,
}

/// What to do, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Actions that passed the check. Those of pools in `observe` (or of removals in `grow`) are in `would`.
    pub actions: Vec<Action>,
    /// Actions that the pool's mode forbids: recorded and explained, not done.
    pub would: Vec<Action>,
    /// Who goes where: a hypothesis of this cycle; for requests it becomes an assignment.
    pub runs: Vec<Run>,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "act", deny_unknown_fields)]
pub enum Action {
    /// Take back our own cordon (and cancel our own idle drain).
    Uncordon {
        /// Which.
        node: NodeId,
        /// Why.
        reason: Reason,
    },
    /// Give up all assignments of a request whose gang cannot be completed where they are (I8): its units wait again
    /// as one whole, and the capacity is lent to others or leaves when idle.
    Release {
        /// Whose.
        request: RequestName,
        /// Why.
        reason: Reason,
    },
    /// Ask for nodes.
    Launch {
        /// Pool.
        pool: PoolId,
        /// Offering.
        offering: OfferingId,
        /// How many.
        count: u32,
        /// Of them for demand; the rest is for the minimum and the spare.
        for_demand: u32,
        /// Why.
        reason: Reason,
    },
    /// Begin to empty a node.
    Drain {
        /// Which.
        node: NodeId,
        /// Why.
        reason: Reason,
        /// What becomes of its work.
        #[serde(default, skip_serializing_if = "Emptying::waits")]
        how: Emptying,
    },
    /// Let a drained node leave (terminate or power off).
    Leave {
        /// Which.
        node: NodeId,
        /// Why.
        reason: Reason,
    },
}

/// What a drain does about work that still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Emptying {
    /// Lets it end.
    #[default]
    Wait,
    /// Makes it move: only for work that says that it can.
    Evict,
}

impl Emptying {
    fn waits(&self) -> bool {
        *self == Self::Wait
    }
}

/// Where units go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node that exists.
    Node(NodeId),
    /// The n-th node (from 0) of a launch in flight.
    Coming(LaunchId, u32),
    /// The n-th node (from 0) of the launch action with this index in `actions` or, when `would`, in `would`.
    New {
        /// Index of the action.
        action: u32,
        /// In `would` instead of `actions`.
        would: bool,
        /// Which of its nodes.
        node: u32,
    },
}

/// `count` units of a class on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Index of the class in the input.
    pub class: u32,
    /// Where.
    pub target: Target,
    /// Units.
    pub count: u32,
}

/// Why, and why not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Per class of the input, in its order.
    pub classes: Vec<ClassOutcome>,
    /// Per pool, in its order.
    pub pools: Vec<PoolOutcome>,
    /// Per node, in its order.
    pub nodes: Vec<NodeOutcome>,
    /// Actions that the check dropped, loudly.
    pub dropped: Vec<Dropped>,
    /// Cost per hour of what runs and comes, after this plan.
    pub cost: MicroUsd,
}

/// What became of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassOutcome {
    /// Where it waits.
    pub source: Source,
    /// Units on nodes that take work now.
    pub fitted: u32,
    /// Units on nodes that are coming.
    pub coming: u32,
    /// Units on nodes this plan asks for.
    pub grown: u32,
    /// Units that stay without.
    pub unplaced: u32,
    /// Why; never empty when `unplaced` is not 0.
    pub reasons: Vec<Reason>,
    /// No pool could ever serve one unit (for a gang: its minimum).
    pub impossible: bool,
    /// Units of a gang's partial capacity that are kept for it in this cycle. Control records since when
    /// (`Gang::holding_since`) and forgets that only when the gang is whole or gone.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub held: u32,
}

/// What is said of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolOutcome {
    /// Pool.
    pub pool: PoolId,
    /// Current reasons.
    pub reasons: Vec<Reason>,
    /// The latest demand that takes an idle or a new node of it in this plan, or waits for one: control learns it
    /// (`rules::lives`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demanded: Option<Demanded>,
}

/// What is said of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeOutcome {
    /// Node.
    pub node: NodeId,
    /// Current reason.
    pub reason: Reason,
}

/// An action that would have violated an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// What.
    pub action: Action,
    /// Name of the invariant (I3 never_beyond_limits).
    pub invariant: String,
    /// Why, for people.
    pub why: String,
}
