//! The fleet as it is shown: one immutable snapshot per cycle behind a watch channel.
//!
//! Made by the cycle; read by `serve` (admin service, metrics, later the dashboard), by commands and by `explain`. Plain
//! data that nothing decides on.

use crate::ports::actuate::PoolReading;
use crate::ports::link::AgentView;
use crate::records::{
    ApprovalRecord, DrainRecord, FreezeRecord, LaunchRecord, OrderRecord, RequestRecord,
};
use drover_core::model::{
    Class, InstanceId, Lifecycle, MemoryEntry, MicroUsd, Mode, NodeId, Offering, PlanInput,
    Planned, PoolId, PoolKind, RequestName, SiteId, UnixMs,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that people and machines are shown.
#[derive(Debug, Clone, Default)]
pub struct FleetView {
    /// Cycles since start; 0 before the first.
    pub cycle: u64,
    /// Wishes and changes that were seen when this cycle began: see `Commands::fresh_view`.
    pub woken: u64,
    /// When this cycle began.
    pub at: UnixMs,
    /// How long it took, microseconds.
    pub took_us: u64,
    /// When this coordinator started.
    pub started: UnixMs,
    /// Freezes in force.
    pub freezes: Vec<FreezeRecord>,
    /// Trouble, most serious first.
    pub alarms: Vec<Alarm>,
    /// Acts that wait for a person.
    pub approvals: Vec<ApprovalRecord>,
    /// Nodes, by id: joined ones, instances and hosts that no agent speaks for yet.
    pub nodes: Vec<NodeView>,
    /// Pools, in the order of the config; orphaned ones last.
    pub pools: Vec<PoolView>,
    /// Requests, by name; ended ones included while the store keeps them.
    pub requests: Vec<RequestView>,
    /// Classes of the last plan.
    pub demand: Vec<DemandView>,
    /// Nodes asked for and not joined.
    pub coming: u32,
    /// USD per hour of what runs now.
    pub cost: MicroUsd,
    /// The last good reading of each pool's provider.
    pub readings: BTreeMap<PoolId, Arc<PoolReading>>,
    /// Input and result of the last plan; absent before the first.
    pub plan: Option<Arc<(PlanInput, Planned)>>,
}

/// Trouble that a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// Machine-readable: site_silent, pool_stopped, breaker_open, clock_drift, source_shrunk, ...
    pub kind: &'static str,
    /// About what.
    pub subject: String,
    /// For people.
    pub message: String,
    /// Since when; the cycle that first saw it.
    pub since: UnixMs,
}

/// A node.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// Minted id, or `instance/ID`, `host/NAME` without an agent.
    pub id: NodeId,
    /// Host name.
    pub name: String,
    /// Pool; absent: in none.
    pub pool: Option<PoolId>,
    /// Site.
    pub site: Option<SiteId>,
    /// Where in its life.
    pub lifecycle: Lifecycle,
    /// Who keeps work off it, and why.
    pub cordon: Option<(String, String)>,
    /// Its agent is silent.
    pub unreachable: bool,
    /// In no pool, never touched.
    pub foreign: bool,
    /// Why it must not get work.
    pub faulty: Option<String>,
    /// Current reason in words (I9).
    pub reason: String,
    /// What its agent last said: facts, telemetry, workloads, conditions, order status.
    pub agent: Option<Arc<AgentView>>,
    /// Provider's id.
    pub instance: Option<InstanceId>,
    /// Type; empty when unknown.
    pub instance_type: String,
    /// Zone; empty when unknown.
    pub zone: String,
    /// USD per hour, when known.
    pub price: Option<MicroUsd>,
    /// When it enrolled.
    pub joined: Option<UnixMs>,
    /// When its agent last spoke.
    pub last_seen: Option<UnixMs>,
    /// Idle since; absent when busy or not known idle.
    pub idle_since: Option<UnixMs>,
    /// Why it counts as busy, or which witness is missing.
    pub busy: Vec<String>,
    /// Drain under way.
    pub drain: Option<DrainRecord>,
    /// Requests that hold it.
    pub assignments: Vec<AssignmentView>,
    /// GPUs; absent when unknown.
    pub gpus: Option<u32>,
    /// Of them neither used nor held; absent when unknown.
    pub gpus_free: Option<u32>,
    /// Model; empty without.
    pub gpu_model: String,
    /// Order that the coordinator means.
    pub desired: Option<OrderRecord>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// How it enrolled, in words; empty without an agent.
    pub enrolled_with: String,
    /// Why it is in quarantine.
    pub quarantine: Option<String>,
}

/// Units of a request in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentView {
    /// Request.
    pub request: RequestName,
    /// Node; absent: on a node that is coming.
    pub node: Option<NodeId>,
    /// Host name; of a coming one the launch.
    pub node_name: String,
    /// Provider's id.
    pub instance: Option<InstanceId>,
    /// Pool.
    pub pool: Option<PoolId>,
    /// Units.
    pub units: u32,
    /// GPUs in them.
    pub gpus: u32,
    /// Whether they can be used, and why not.
    pub state: UnitState,
}

/// Whether units can be used. The texts follow the node's name: "is drained by admin/ada: new disk".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitState {
    /// The node takes work.
    Ready,
    /// It is asked for, or has joined and has not been ready yet.
    Coming(String),
    /// It was ready and is not now, or will never come.
    Unavailable(String),
}

/// "1 unit", "4 units".
#[must_use]
pub fn units(count: u32) -> String {
    format!("{count} unit{}", if count == 1 { "" } else { "s" })
}

/// A pool.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// Name.
    pub name: PoolId,
    /// Kind; absent for an orphaned one.
    pub kind: Option<PoolKind>,
    /// Site.
    pub site: Option<SiteId>,
    /// Mode in force.
    pub mode: Mode,
    /// Limits in force.
    pub min: u32,
    /// Limits in force.
    pub max: u32,
    /// Limits in force.
    pub spare: u32,
    /// Joined nodes.
    pub nodes: u32,
    /// Of them ready.
    pub ready: u32,
    /// Of them idle.
    pub idle: u32,
    /// From draining to leaving.
    pub draining: u32,
    /// Asked for and not joined.
    pub coming: u32,
    /// Silent.
    pub unreachable: u32,
    /// Instances that no agent speaks for.
    pub unmanaged: u32,
    /// A person's pause.
    pub paused: Vec<String>,
    /// What stopped growth until it is mended: launches that never join, a failure, a group that is not ours.
    pub stopped: Vec<String>,
    /// What holds for a while: removal, or all on a silent site and on old data.
    pub holds: Vec<String>,
    /// Instances that were asked for, run, and did not join in time.
    pub missed: u32,
    /// Freeze of this pool.
    pub frozen: Option<FreezeRecord>,
    /// The last reading failed: why, and how old what is shown is.
    pub read_error: Option<String>,
    /// What can be asked, with what the memory says of it.
    pub offerings: Vec<(Offering, Option<MemoryEntry>)>,
    /// Current reasons in words (I9), the provider's warnings included.
    pub reasons: Vec<String>,
    /// What the provider says that is worth knowing and no trouble.
    pub remarks: Vec<String>,
    /// Where it came from: the config file, or a region where it was discovered; empty for an orphaned one.
    pub origin: String,
    /// No longer in the config.
    pub orphaned: bool,
    /// Launches in a row that never joined.
    pub misses: u32,
    /// Launches in flight.
    pub launches: Vec<LaunchRecord>,
}

/// How a request is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestShown {
    /// Nothing yet.
    Pending,
    /// Some units on ready nodes.
    Partial,
    /// All of them.
    Served,
    /// Its time is over.
    Ended,
    /// Taken back.
    Cancelled,
    /// No pool can ever serve it.
    Impossible,
}

impl RequestShown {
    /// As in the admin service.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Partial => "partial",
            Self::Served => "served",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
            Self::Impossible => "impossible",
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct RequestView {
    /// As stored.
    pub record: RequestRecord,
    /// As shown.
    pub shown: RequestShown,
    /// Where its units are.
    pub assignments: Vec<AssignmentView>,
    /// Units on ready nodes.
    pub units_ready: u32,
    /// Units on nodes that are coming or joining.
    pub units_coming: u32,
    /// Units on nodes that were ready and are not now.
    pub units_unavailable: u32,
    /// Units on none.
    pub units_missing: u32,
    /// Why it is as it is (I9).
    pub reasons: Vec<String>,
}

/// One class of demand in the last cycle.
#[derive(Debug, Clone)]
pub struct DemandView {
    /// Name of its source, or of its request.
    pub source: String,
    /// The class.
    pub class: Class,
    /// Members, at most ten.
    pub members: Vec<String>,
    /// Units on nodes that exist, come or are asked for.
    pub placed: u32,
    /// Units without.
    pub unplaced: u32,
    /// Why.
    pub reasons: Vec<String>,
}

impl NodeView {
    /// Takes new work now: ready, heard, under nobody's cordon, healthy.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.lifecycle == Lifecycle::Ready
            && !self.unreachable
            && self.cordon.is_none()
            && self.faulty.is_none()
    }
}

impl FleetView {
    /// Nodes that a person may mean by an id, a host name or an instance id.
    #[must_use]
    pub fn named(&self, text: &str) -> Vec<&NodeView> {
        let by_id = self.nodes.iter().find(|node| node.id.as_str() == text);
        if let Some(node) = by_id {
            return vec![node];
        }
        self.nodes
            .iter()
            .filter(|node| {
                node.name == text
                    || node
                        .instance
                        .as_ref()
                        .is_some_and(|instance| instance.as_str() == text)
            })
            .collect()
    }

    /// A pool by name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&PoolView> {
        self.pools.iter().find(|pool| pool.name.as_str() == name)
    }

    /// A request by name.
    #[must_use]
    pub fn request(&self, name: &str) -> Option<&RequestView> {
        self.requests
            .iter()
            .find(|request| request.record.name.as_str() == name)
    }
}

/// A clock that is wrong by less is nobody's trouble.
const CLOCK_TOLERANCE_MS: u64 = 30_000;

/// A host's clock that is far from ours, in words. Nothing depends on it, but logs and certificates will mislead.
#[must_use]
pub fn foreign_clock(agent: &AgentView) -> Option<String> {
    let off = agent.clock_offset_ms.unsigned_abs();
    let side = if agent.clock_offset_ms > 0 {
        "ahead of"
    } else {
        "behind"
    };
    (agent.connected && off > CLOCK_TOLERANCE_MS).then(|| {
        format!(
            "its clock is {} s {side} the coordinator's: deadlines are counted and not compared; set its clock",
            off / 1_000
        )
    })
}
