//! The join of what is durable, what agents say and what providers say: one [`FleetNode`] per node record, and one per
//! instance or host that no agent speaks for.
//!
//! Called by the cycle, before bookkeeping and again before planning. Pure: the same sources, the same fleet.

mod busy;
mod claims;
mod held;
mod join;
pub(super) mod marks;
mod silent;
mod sizes;
mod state;
mod taken;
mod work;

pub use busy::{Evidence, busy};
pub use join::{Sources, join};
pub use taken::Taken;
pub(super) use taken::expires;

use crate::ports::actuate::Instance;
use crate::ports::link::AgentView;
use crate::records::{DrainRecord, NodeRecord, NoticeRecord, OrderRecord};
use drover_core::model::{
    Busy, Cordon, InstanceId, LaunchId, Lifecycle, MicroUsd, NodeId, OfferingId, PoolId, Reserved,
    Resources, Running, SiteId, UnixMs,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node, with everything that is known of it.
#[derive(Debug, Clone)]
pub struct FleetNode {
    /// Minted id, or `instance/ID`, `host/NAME`.
    pub id: NodeId,
    /// Host name.
    pub name: String,
    /// Pool; absent: supply, never touched.
    pub pool: Option<PoolId>,
    /// Site.
    pub site: Option<SiteId>,
    /// Its enrolment; absent: no agent speaks for it.
    pub record: Option<NodeRecord>,
    /// Order in force.
    pub order: Option<OrderRecord>,
    /// Drain under way.
    pub drain: Option<DrainRecord>,
    /// What its agent last said.
    pub agent: Option<Arc<AgentView>>,
    /// Provider's id, trusted: in the pool's reading or list, and claimed by nobody else.
    pub instance_id: Option<InstanceId>,
    /// What the provider last said.
    pub instance: Option<Instance>,
    /// Launch that it is the result of.
    pub launch: Option<LaunchId>,
    /// Offering.
    pub offering: Option<OfferingId>,
    /// Type; empty when unknown.
    pub instance_type: String,
    /// Zone; empty when unknown.
    pub zone: String,
    /// USD per hour, when known.
    pub price: Option<MicroUsd>,
    /// Where in its life.
    pub lifecycle: Lifecycle,
    /// Who keeps work off.
    pub cordon: Option<Cordon>,
    /// Its agent is silent.
    pub unreachable: bool,
    /// Why it must not get work.
    pub faulty: Option<String>,
    /// Why a node that has joined is not ready yet: "0 of 8 GPUs".
    pub lacks: Option<String>,
    /// What its cloud told of it.
    pub notices: Vec<NoticeRecord>,
    /// Why its cloud will take it, or may, so that it must not get work.
    pub taken: Option<Taken>,
    /// What workloads may use in all.
    pub allocatable: Resources,
    /// What work outside of requests uses.
    pub used: Resources,
    /// What requests hold.
    pub reserved: Vec<Reserved>,
    /// Free thousandths of each GPU that units of requests share, smallest first.
    pub gpu_shares: Vec<u32>,
    /// What is known of what runs there.
    pub workloads: Vec<Running>,
    /// When it was launched; absent when unknown.
    pub launched: Option<UnixMs>,
    /// GPU model; empty without.
    pub gpu_model: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: BTreeMap<String, String>,
    /// What the witnesses say; idle with the time of the record, or of now when there is none yet.
    pub busy: Busy,
    /// Idle since, durably.
    pub idle_since: Option<UnixMs>,
}

impl FleetNode {
    /// An agent has enrolled for it.
    #[must_use]
    pub fn joined(&self) -> bool {
        self.record.is_some()
    }

    /// Why it is in quarantine.
    #[must_use]
    pub fn quarantine(&self) -> Option<&str> {
        let quarantined = self.record.as_ref()?.quarantined.as_ref()?;
        Some(&quarantined.why)
    }

    /// Takes work, and is heard.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.lifecycle == Lifecycle::Ready && !self.unreachable
    }

    /// Takes new work now: ready, heard, under nobody's cordon, healthy.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.is_ready() && self.cordon.is_none() && self.faulty.is_none() && self.taken.is_none()
    }

    /// Why its cloud may take it some time, while only that keeps new work off: what runs there goes on.
    #[must_use]
    pub fn kept(&self) -> Option<&str> {
        let free = self.drain.is_none() && matches!(self.cordon, None | Some(Cordon::Drover));
        let taken = self.taken.as_ref().filter(|taken| free && !taken.doomed)?;
        Some(&taken.why)
    }

    /// What is assigned here can be used: it takes new work, or keeps off only that, see [`FleetNode::kept`].
    #[must_use]
    pub fn serves(&self) -> bool {
        let kept = || self.is_ready() && self.faulty.is_none() && self.kept().is_some();
        self.is_available() || kept()
    }

    /// Its agent's session is open.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.connected)
    }

    /// Highest epoch that its agent has reported.
    #[must_use]
    pub fn highest_epoch(&self) -> u64 {
        self.agent.as_ref().map_or(0, |agent| agent.highest_epoch)
    }
}
