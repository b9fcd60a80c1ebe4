//! The fleet as it is shown: one immutable snapshot per cycle behind a watch channel.
//!
//! Made by the cycle; read by `serve` (admin service, metrics, later the dashboard), by commands and by `explain`. Plain
//! data that nothing decides on.

mod nodes;
mod pools;
mod requests;

pub use nodes::{AssignmentView, NodeView, UnitState, foreign_clock};
pub use pools::PoolView;
pub use requests::{DemandView, RequestShown, RequestView};

use crate::ports::actuate::PoolReading;
use crate::records::{ApprovalRecord, FreezeRecord};
use drover_core::model::{MicroUsd, PlanInput, Planned, PoolId, UnixMs};
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

/// "1 unit", "4 units".
#[must_use]
pub fn units(count: u32) -> String {
    format!("{count} unit{}", if count == 1 { "" } else { "s" })
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
