//! Nodes as they are shown, and the units of requests on them.

use crate::ports::link::AgentView;
use crate::records::{DrainRecord, OrderRecord};
use drover_core::model::{
    InstanceId, Lifecycle, MicroUsd, NodeId, PoolId, RequestName, SiteId, UnixMs,
};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Why their node takes no new work while they can be used all the same; empty: it does.
    pub kept: String,
}

/// Whether units can be used. The texts follow the node's name: "is drained by admin/ada: new disk".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitState {
    /// The node takes work, or keeps off only what is new.
    Ready,
    /// It is asked for, or has joined and has not been ready yet.
    Coming(String),
    /// It was ready and is not now, or will never come.
    Unavailable(String),
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
