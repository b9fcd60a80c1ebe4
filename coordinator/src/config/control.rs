//! `[control]`: the pace of cycles, limits, the breaker, headroom and budgets.
//!
//! Called by `config::parse`.

use super::values::Amounts as _;
use super::{DAY, SECOND, millis, policy};
use drover_config::Section;
use drover_core::model::{Budget, Headroom, MicroUsd, Millis, PoolId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Cycle, limits, breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Longest time between two cycles.
    pub interval: Millis,
    /// After a start nothing shrinks before this, or before every node that was connected has returned.
    pub settle: Millis,
    /// An agent is unreachable after this silence.
    pub silence: Millis,
    /// Agents report this often.
    pub report_interval: Millis,
    /// And in full this often.
    pub full_interval: Millis,
    /// Where every plan is kept; absent: the last 1,000 in `state_dir`/plans.
    pub plans_dir: Option<PathBuf>,
    /// How long a gang may hold partial capacity.
    pub gang_hold: Millis,
    /// Percent of the fleet that may be terminated or evicted within an hour, at most 50.
    pub breaker_fleet_percent: u32,
    /// Nodes of one pool that may be terminated or evicted within 10 min.
    pub breaker_pool: u32,
    /// USD per hour of all that runs and comes; absent: no limit.
    pub max_cost: Option<MicroUsd>,
    /// GPUs of all that runs and comes; absent: no limit.
    pub max_gpus: Option<u32>,
    /// Move running work that says it can be moved, for cost.
    pub consolidate: bool,
    /// Room that is kept free, in units of demand.
    pub headroom: Vec<Headroom>,
    /// Budgets by team.
    pub teams: BTreeMap<String, Budget>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            interval: Millis::seconds(10),
            settle: Millis::seconds(60),
            silence: Millis::seconds(30),
            report_interval: Millis::seconds(5),
            full_interval: Millis::seconds(60),
            plans_dir: None,
            gang_hold: Millis::minutes(20),
            breaker_fleet_percent: 20,
            breaker_pool: 10,
            max_cost: None,
            max_gpus: None,
            consolidate: false,
            headroom: Vec::new(),
            teams: BTreeMap::new(),
        }
    }
}

pub(super) fn read(section: &Section<'_>, pools: &BTreeSet<PoolId>) -> Control {
    let default = Control::default();
    let span = |key: &'static str, least: Duration, most: Duration, or: Millis, example: &str| {
        section
            .duration(key, least..=most, example)
            .map_or(or, millis)
    };
    let tenth = SECOND / 10;
    let found = Control {
        interval: span("interval", tenth, DAY / 24, default.interval, "10s"),
        settle: span("settle", Duration::ZERO, DAY, default.settle, "60s"),
        silence: span("silence", SECOND, DAY, default.silence, "30s"),
        report_interval: span("report_interval", tenth, DAY, default.report_interval, "5s"),
        full_interval: span("full_interval", tenth, DAY, default.full_interval, "60s"),
        plans_dir: section.absolute("plans_dir"),
        gang_hold: span("gang_hold", SECOND, DAY * 7, default.gang_hold, "20m"),
        breaker_fleet_percent: section
            .count("breaker_fleet_percent", 1..=50)
            .map_or(default.breaker_fleet_percent, |at| at.value),
        breaker_pool: section
            .count("breaker_pool", 1..=100)
            .map_or(default.breaker_pool, |at| at.value),
        max_cost: section.usd("max_cost_usd_per_hour").map(MicroUsd),
        max_gpus: section.count("max_gpus", 0..=10_000_000).map(|at| at.value),
        consolidate: section.flag("consolidate").unwrap_or(false),
        headroom: policy::headroom(section.sections("headroom"), pools),
        teams: policy::teams(section.named_sections("team")),
    };
    if found.silence.0 < found.report_interval.0.saturating_mul(2) {
        section.report(
            section.offset(),
            "silence",
            "is less than two report intervals: healthy agents would count as unreachable",
            "set silence to at least twice report_interval",
        );
    }
    if found.full_interval < found.report_interval {
        section.report(
            section.offset(),
            "full_interval",
            "is less than report_interval: a full report cannot come more often than a report",
            "set full_interval to at least report_interval",
        );
    }
    section.finish();
    found
}
