//! The agents, as control sees them: what each last said, and a way to tell it what it should be.

use crate::records::order::OrderRecord;
use drover_core::model::{NodeId, UnixMs};
use std::sync::Arc;

/// What a node's agent last said. Plain data; wire types stop at `serve/convert.rs`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentView {
    /// Node.
    pub node: NodeId,
    /// A session is open now.
    pub connected: bool,
    /// When it last said anything (coordinator's wall clock).
    pub last_seen: UnixMs,
    /// The same on the monotonic clock, milliseconds: silence is measured on this one.
    pub last_seen_mono: u64,
    /// Facts.
    pub facts: Arc<drover_proto::v1::Facts>,
    /// Last values; `None` before the first report.
    pub telemetry: Option<Arc<drover_proto::v1::Telemetry>>,
    /// Last complete list; `None` before the first one of this session.
    pub workloads: Option<Arc<drover_proto::v1::WorkloadList>>,
    /// When that list came.
    pub workloads_at: UnixMs,
    /// Conditions.
    pub conditions: Vec<drover_proto::v1::Condition>,
    /// What the node really is.
    pub actual: Option<drover_proto::v1::NodeActual>,
    /// The last word on our order.
    pub order_status: Option<drover_proto::v1::OrderStatus>,
    /// The order it said is in force.
    pub observed: Option<drover_proto::v1::Order>,
    /// Highest epoch it has ever seen: orders must exceed it.
    pub highest_epoch: u64,
    /// Its wall clock minus ours, milliseconds.
    pub clock_offset_ms: i64,
}

/// A notice or drain result, delivered once and acknowledged after control has taken it durably.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentNotice {
    /// Who.
    pub node: NodeId,
    /// What.
    pub notice: drover_proto::v1::Notice,
}

/// The port.
pub trait AgentLink: Send + Sync {
    /// Every agent heard of since start.
    fn views(&self) -> Vec<Arc<AgentView>>;
    /// One of them.
    fn view(&self, node: &NodeId) -> Option<Arc<AgentView>>;
    /// Notices not yet settled, oldest first.
    fn notices(&self) -> Vec<AgentNotice>;
    /// Control has taken these notices durably: acknowledge and forget them.
    fn settle_notices(&self, ids: &[(NodeId, String)]);
    /// Sends the order now if a session is open, and again whenever one opens, until replaced. Also what heartbeats
    /// confirm: a destructive step needs this word to be fresh.
    fn desire(&self, node: &NodeId, order: OrderRecord);
    /// Ends the session and forgets the node (revoked, gone).
    fn forget(&self, node: &NodeId);
    /// Resolves when something worth a cycle has come in (a session opened or closed, workloads changed, a notice or
    /// an order status came).
    fn changed(&self) -> tokio::sync::watch::Receiver<u64>;
}
