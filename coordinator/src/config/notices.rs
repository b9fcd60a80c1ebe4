//! `[pool.notices]`: what a pool does when its cloud tells something of a node.
//!
//! Read by `config::pools`; control takes it as it is.

use super::{DAY, SECOND, millis};
use drover_config::Section;
use drover_core::model::Millis;

/// What a pool does on notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticePolicy {
    /// On a rebalance recommendation.
    pub rebalance: OnRebalance,
    /// Which counts for so long.
    pub rebalance_expires: Millis,
    /// On maintenance of a node's host.
    pub maintenance: OnMaintenance,
    /// Which counts from so long before it begins.
    pub maintenance_lead: Millis,
    /// Work on a node of a capacity block is told to end so long before AWS begins to end the block's nodes, and no new
    /// work comes from twice as long before.
    pub block_lead: Millis,
    /// How work is treated on a node that its group ends.
    pub terminating: OnTerminating,
    /// For so long at most; absent: for as long as the group's hook can be held.
    pub terminating_deadline: Option<Millis>,
    /// Launching hooks that Drover completes once the node takes work.
    pub launch_hooks: Vec<String>,
}

impl Default for NoticePolicy {
    fn default() -> Self {
        Self {
            rebalance: OnRebalance::Cordon,
            rebalance_expires: Millis::minutes(30),
            maintenance: OnMaintenance::Show,
            maintenance_lead: Millis::minutes(24 * 60),
            block_lead: Millis::minutes(15),
            terminating: OnTerminating::Wait,
            terminating_deadline: None,
            launch_hooks: Vec::new(),
        }
    }
}

/// On a rebalance recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRebalance {
    /// It is only shown.
    Ignore,
    /// The node takes no new work and leaves once empty.
    Cordon,
    /// The same, and room for its work is made elsewhere at once.
    Replace,
}

/// On maintenance of a node's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMaintenance {
    /// It is only shown.
    Show,
    /// The node takes no new work from some time before it and leaves once empty.
    Drain,
}

/// How work is treated on a node that its group ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTerminating {
    /// It may end by itself.
    Wait,
    /// It is ended with grace.
    Evict,
    /// It is ended within the deadline whatever it says.
    Force,
}

pub(super) fn read(section: &Section<'_>) -> NoticePolicy {
    let default = NoticePolicy::default();
    let rebalance = section.choice(
        "rebalance",
        &[
            ("ignore", OnRebalance::Ignore),
            ("cordon", OnRebalance::Cordon),
            ("replace", OnRebalance::Replace),
        ],
    );
    let maintenance = section.choice(
        "maintenance",
        &[
            ("show", OnMaintenance::Show),
            ("drain", OnMaintenance::Drain),
        ],
    );
    let terminating = section.choice(
        "terminating",
        &[
            ("wait", OnTerminating::Wait),
            ("evict", OnTerminating::Evict),
            ("force", OnTerminating::Force),
        ],
    );
    let hooks = section.texts("launch_hooks", "write launch_hooks = [\"drover-ready\"]");
    let found = NoticePolicy {
        rebalance: rebalance.map_or(default.rebalance, |at| at.value),
        rebalance_expires: section
            .duration("rebalance_expires", SECOND * 60..=DAY * 7, "30m")
            .map_or(default.rebalance_expires, millis),
        maintenance: maintenance.map_or(default.maintenance, |at| at.value),
        maintenance_lead: section
            .duration("maintenance_lead", SECOND * 60..=DAY * 30, "24h")
            .map_or(default.maintenance_lead, millis),
        block_lead: section
            .duration("block_lead", SECOND * 60..=DAY, "15m")
            .map_or(default.block_lead, millis),
        terminating: terminating.map_or(default.terminating, |at| at.value),
        terminating_deadline: section
            .duration("terminating_deadline", SECOND * 10..=DAY * 2, "2h")
            .map(millis),
        launch_hooks: hooks.into_iter().flatten().map(|at| at.value).collect(),
    };
    section.finish();
    found
}
