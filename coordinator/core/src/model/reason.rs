//! Why, and why not: every reason that a plan gives. Data only; `planner/explain` is the one place that words them.

use super::away::Away;
use super::demand::{Class, Locality, Source};
use super::ids::{NodeId, OfferingId, PoolId};
use super::pool::{FailureKind, Stop};
use super::quantities::{MicroUsd, Millis, Resources, UnixMs};
use serde::{Deserialize, Serialize};

/// Every reason there is; rendered to text by `planner/explain` and nowhere else. Extend freely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum Reason {
    /// Capacity for demand of these sources (at most ten named) and for the standing targets.
    Demand {
        /// Who waits.
        sources: Vec<Source>,
        /// Units that it serves.
        units: u32,
        /// Nodes for the minimum.
        minimum: u32,
        /// Nodes for the spare.
        spare: u32,
        /// Units of headroom.
        #[serde(default, skip_serializing_if = "super::is_default")]
        headroom: u32,
    },
    /// A probe of an offering that failed before.
    Probe {
        /// How it failed.
        failure: FailureKind,
    },
    /// Idle for the pool's time.
    IdleSince {
        /// Since when.
        since: UnixMs,
    },
    /// Faulty: replaced.
    Faulty {
        /// What.
        what: String,
    },
    /// Drained and empty: may leave.
    DrainedEmpty,
    /// Takes work and has room.
    Free,
    /// Works.
    Working {
        /// What.
        what: Vec<String>,
    },
    /// Works, far below its size; batch mode never moves running work.
    UnderUsedOccupied {
        /// What.
        what: Vec<String>,
    },
    /// Witness missing: counts as busy.
    WitnessMissing {
        /// Which, why.
        why: String,
    },
    /// Held by requests.
    HeldBy {
        /// Whose.
        requests: Vec<String>,
    },
    /// Idle, not yet long enough.
    IdleUntil {
        /// When it may go.
        until: UnixMs,
    },
    /// Kept for demand that waits or will use it.
    KeptForDemand {
        /// Whose.
        source: Source,
    },
    /// Kept as spare or minimum.
    KeptAsSpare,
    /// At the pool's minimum.
    AtMinimum,
    /// The removal quota is used up in this cycle.
    QuotaUsed {
        /// At once at most.
        quota: u32,
    },
    /// Cordoned by a person: neither supply nor touched.
    CordonedByPerson {
        /// Who.
        who: String,
    },
    /// Its agent is silent: neither idle nor supply.
    Unreachable,
    /// In no pool: supply, never touched.
    Foreign,
    /// Draining, or drained.
    Draining {
        /// Why.
        reason: String,
        /// The person who wants it; absent: Drover itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        who: Option<String>,
        /// Drained.
        #[serde(default, skip_serializing_if = "super::is_default")]
        empty: bool,
    },
    /// On its way.
    Coming {
        /// Until when it must have joined.
        deadline: UnixMs,
    },
    /// Leaving, gone or off.
    NotThere,
    /// The pool's mode forbids it.
    ModeForbids {
        /// What would be done.
        mode: super::pool::Mode,
    },
    /// The pool is stopped.
    Stopped {
        /// By what.
        stop: Stop,
    },
    /// Physical: cannot be removed.
    NotRemovable,
    /// Pool is at its maximum.
    AtMaximum {
        /// Which pool.
        pool: PoolId,
        /// How many.
        max: u32,
        /// What the config allows, where the maximum is the provider's own and lower.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<u32>,
    },
    /// Fleet budget reached.
    OverBudget {
        /// "USD/h" or "GPUs".
        what: String,
    },
    /// Offering failed and is not due.
    OutOfCapacity {
        /// Which.
        offering: OfferingId,
        /// How.
        failure: FailureKind,
        /// When it is probed again.
        next_probe: UnixMs,
        /// Text of the provider.
        message: String,
    },
    /// The pool does not fit: which label, taint, model or size differs.
    PoolDiffers {
        /// Pool.
        pool: PoolId,
        /// What differs.
        what: String,
    },
    /// The pool's nodes are too small for one unit.
    PoolTooSmall {
        /// Pool.
        pool: PoolId,
        /// What is wanted, only where a node has less.
        wanted: Resources,
        /// What a node has of that.
        has: Resources,
    },
    /// The pool's instance type is not in the catalogue.
    UnknownType {
        /// Pool.
        pool: PoolId,
        /// Type.
        instance_type: String,
    },
    /// No pool could ever serve a unit.
    NoPoolOffers {
        /// One unit.
        unit: Resources,
        /// What else it asks.
        wants: String,
    },
    /// A gang got less than its minimum.
    GangShort {
        /// Least useful.
        min: u32,
        /// What could be had.
        could: u32,
        /// Where that was.
        place: String,
    },
    /// A gang's minimum can never be had: nothing is held for it.
    GangNever {
        /// Least useful.
        min: u32,
        /// Most that could ever be had.
        could: u32,
        /// Where that would be.
        place: String,
    },
    /// Another gang of this locality holds capacity first.
    GangWaitsForGang {
        /// Whose.
        source: Source,
    },
    /// A rule that Drover does not know.
    UnsupportedRule {
        /// Which.
        rule: String,
    },
    /// Pool below its target, and why not grown.
    BelowTarget {
        /// Missing nodes for the minimum.
        minimum: u32,
        /// Missing nodes for the spare.
        spare: u32,
    },
    /// Nothing to do.
    Settled,
    /// An item of the input that cannot be used: two of one id, a pool or offering that is not there.
    BadInput {
        /// What is wrong.
        what: String,
    },
    /// A pool that could serve is stopped.
    PoolStopped {
        /// Pool.
        pool: PoolId,
        /// By what.
        stop: Stop,
    },
    /// A pool that could serve may not be changed in its mode: see `would`.
    PoolMode {
        /// Pool.
        pool: PoolId,
        /// Its mode.
        mode: super::pool::Mode,
    },
    /// Units fit on nodes that take work now.
    FitsNow {
        /// Units.
        units: u32,
        /// Nodes.
        nodes: u32,
    },
    /// Units wait for nodes that are asked for, now or before.
    AskedFor {
        /// Pool.
        pool: PoolId,
        /// Nodes of it.
        nodes: u32,
        /// When the first is ready, as far as known.
        ready: UnixMs,
    },
    /// Partial capacity is held for the gang.
    GangHolds {
        /// Units held.
        units: u32,
        /// Until when at most.
        until: UnixMs,
    },
    /// The gang's hold time is over: its partial capacity is lent or leaves.
    HoldOver {
        /// Since when it was held.
        since: UnixMs,
    },
    /// The gang's partial capacity is given up because it can be whole elsewhere.
    WholeElsewhere {
        /// Where.
        place: String,
    },
    /// All of a gang is asked for in another place; what it has is kept until that has joined.
    AsksElsewhere {
        /// Whose.
        source: Source,
        /// Least useful number of units.
        units: u32,
        /// Where.
        place: String,
    },
    /// The provider has it, its agent has not enrolled.
    NotJoined,
    /// Joined, not ready (its GPUs are not all there yet).
    NotReady,
    /// The check dropped what would have served it.
    CheckDropped {
        /// Name of the invariant.
        invariant: String,
        /// Why.
        why: String,
    },
    /// The planner gave no reason: a fault of the planner, shown instead of hidden.
    Unexplained,
    /// More of the same kind, not listed.
    More {
        /// How many.
        count: u32,
    },
    /// The pool could serve a unit, but its nodes have no room left and no more can be had.
    NoRoom {
        /// Pool.
        pool: PoolId,
    },
    /// The pool has as many nodes as it needs: asked for in this plan.
    Growing {
        /// Nodes.
        nodes: u32,
    },
    /// Nodes of the pool begin to leave in this plan.
    Shrinking {
        /// Nodes.
        nodes: u32,
    },
    /// Room that is held for a gang, at most until a moment.
    KeptForGang {
        /// Whose.
        source: Source,
        /// Until when at most.
        until: UnixMs,
    },
    /// Nodes of a pool that would do, were they not out of service.
    NodesAway {
        /// Pool.
        pool: PoolId,
        /// How many.
        nodes: u32,
        /// Why they serve nobody.
        away: Away,
    },
    /// Units of a request that are assigned to nodes on their way.
    UnitsComing {
        /// Units.
        units: u32,
        /// Nodes.
        nodes: u32,
        /// When the first node is expected at the latest, as far as known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<UnixMs>,
    },
    /// Nodes of the pool are on their way.
    NodesComing {
        /// Nodes.
        nodes: u32,
        /// When the first is expected at the latest, as far as known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<UnixMs>,
    },
    /// Nodes that could go and stay.
    RemovalHeld {
        /// How many.
        nodes: u32,
        /// Why.
        why: Box<Reason>,
    },
    /// What the pool offers is not known now: it may do, or may not.
    PoolUnread {
        /// Pool.
        pool: PoolId,
        /// Why.
        why: String,
    },
    /// The fleet has no pool of its own.
    NoPools,
    /// What a class asks: said first of every class that waits.
    Needs {
        /// One unit.
        unit: Resources,
        /// It takes a whole node.
        #[serde(default, skip_serializing_if = "super::is_default")]
        whole_node: bool,
        /// Units at once: (least, most); absent: each for itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gang: Option<(u32, u32)>,
        /// How near each other.
        #[serde(default, skip_serializing_if = "super::is_default")]
        locality: Locality,
    },
    /// A rule about other units (affinity, anti-affinity, spread) is kept nowhere that would do.
    NearRule {
        /// Which, in words: "no unit with app=db in its topology.kubernetes.io/zone".
        what: String,
    },
    /// The plan reached its limit of looks before this class's turn came: the next plan goes on.
    Undecided,
    /// A port of the host is taken wherever a unit would fit.
    HostPortTaken {
        /// Which.
        port: u16,
    },
    /// The team's budget is used up.
    TeamBudget {
        /// Whose.
        team: String,
        /// "USD/h" or "GPUs".
        what: String,
    },
    /// It must start sooner than a new node could be ready.
    DeadlineTooNear {
        /// When the first new node would be ready.
        ready: UnixMs,
        /// When it must have started.
        deadline: UnixMs,
    },
    /// Its deadline is over: nothing is asked for.
    DeadlinePassed {
        /// When it was.
        deadline: UnixMs,
    },
    /// It waits for work that states its end, as it may.
    WaitsForEnd {
        /// Where.
        node: NodeId,
        /// When that ends.
        until: UnixMs,
    },
    /// It may wait; new nodes are asked for from then on.
    PatientUntil {
        /// When its patience ends.
        until: UnixMs,
    },
    /// The plan reached its limit of effort before this was decided; the next one goes on.
    EffortLimit,
    /// An elastic gang starts with less than it could use.
    GangPart {
        /// Least useful.
        min: u32,
        /// What it has.
        got: u32,
        /// What it could use.
        most: u32,
    },
    /// Room that is kept free, in units of demand.
    Headroom {
        /// What people call it.
        name: String,
        /// Units.
        units: u32,
    },
    /// Room that should be free and is not.
    HeadroomShort {
        /// What people call it.
        name: String,
        /// Units that are missing.
        units: u32,
        /// Why no more is asked for.
        why: Box<Reason>,
    },
    /// As old as its pool allows: replaced once it is empty.
    ExpiredAt {
        /// When it reached that age.
        at: UnixMs,
    },
    /// Idle for the pool's time, and the pool's spare is covered without it.
    Surplus {
        /// Idle since when.
        since: UnixMs,
        /// Idle nodes that stay.
        spare: u32,
    },
    /// All its work says that it can move and fits elsewhere for less.
    Replaceable {
        /// Saved per hour.
        saves: MicroUsd,
        /// The new, cheaper node that the work needs; absent: nodes that exist are enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<OfferingId>,
    },
    /// A disruption budget allows no more now.
    DisruptionBudget {
        /// What people call it.
        name: String,
        /// At once at most.
        most: u32,
        /// When its window closes; absent: it always holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<UnixMs>,
    },
    /// Kept for room that must stay free.
    KeptForHeadroom {
        /// What people call it.
        name: String,
    },
    /// Kept: as demand came before, it is likely to be wanted again before a new node could be ready.
    KeptForLikelyDemand {
        /// How long a new node takes.
        within: Millis,
    },
}

impl Reason {
    /// What a class asks.
    #[must_use]
    pub fn needs(class: &Class) -> Self {
        let gang = class.gang.as_ref();
        Self::Needs {
            unit: class.unit.clone(),
            whole_node: class.whole_node,
            gang: gang.map(|g| (g.min, class.count.saturating_add(g.assigned).max(g.min))),
            locality: gang.map(|g| g.locality).unwrap_or_default(),
        }
    }
}
