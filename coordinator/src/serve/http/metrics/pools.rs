//! Pools as the last cycle saw them: settings, stops, offerings, readings. Written by `metrics`; their nodes are in
//! `nodes`, what was done to them in `acts`.

use super::Snapshot;
use super::family::{Family, Sheet, flag, seconds};
use crate::control::events::{failure_word, mode_word};
use crate::control::view::PoolView;
use crate::ports::actuate::{InstanceState, PoolReading};
use crate::serve::convert::pools::kind_word;
use drover_core::model::{FailureKind, Mode, Stop};
use std::collections::BTreeMap;
use std::fmt;

const INFO: Family = Family::info("pool", "Kind and site of a pool");
const MODE: Family = Family::gauge("pool_mode", "Modes, 1 for the one in force");
const LIMITS: Family = Family::gauge("pool_limit_nodes", "Limits in force");
const STOPPED: Family = Family::gauge(
    "pool_stopped",
    "What stops growth, removal or both, 1 where it holds, as the last plan was told",
);
const WANTED: Family = Family::gauge(
    "pool_wanted_nodes",
    "Instances that the provider shows as pending or running, and those that it is still wanted to bring",
);
const COMING: Family = Family::gauge("pool_coming_nodes", "Nodes asked for and not joined");
const DRAINS: Family = Family::gauge("pool_drains", "Drains under way");
const UNMANAGED: Family = Family::gauge(
    "pool_unmanaged_instances",
    "Instances that no agent speaks for",
);
const MISSED: Family = Family::gauge(
    "pool_missed_instances",
    "Instances that were asked for, run, and did not join in time",
);
const OFFERINGS: Family = Family::gauge(
    "pool_offerings",
    "Ways to get nodes: instance type, zone and market",
);
const FAILING: Family = Family::gauge(
    "pool_offerings_failing",
    "Offerings that failed and are asked only as probes, by kind of failure",
);
const AGE: Family = Family::gauge(
    "pool_reading_age",
    "Age of the last good reading of the pool's provider",
)
.seconds();
const MODES: [Mode; 3] = [Mode::Observe, Mode::Grow, Mode::Full];
/// What capacity memory keeps.
const REMEMBERED: [FailureKind; 5] = [
    FailureKind::Shortage,
    FailureKind::Quota,
    FailureKind::Price,
    FailureKind::Transient,
    FailureKind::NeverJoined,
];
const STOPS: [&str; 8] = [
    "failed",
    "frozen",
    "never_joined",
    "no_removal",
    "not_ours",
    "paused",
    "site_silent",
    "stale",
];

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    settings(sheet, page)?;
    stops(sheet, page)?;
    let pools = &page.view.pools;
    let each = |of: fn(&PoolView) -> u32| {
        let all = pools.iter();
        all.map(move |pool| ([("pool", pool.name.as_str())], u64::from(of(pool))))
    };
    sheet.gauges(&COMING, each(|pool| pool.coming))?;
    sheet.gauges(&DRAINS, each(|pool| pool.draining))?;
    sheet.gauges(&UNMANAGED, each(|pool| pool.unmanaged))?;
    sheet.gauges(&MISSED, each(|pool| pool.missed))?;
    offerings(sheet, pools)?;
    let readings = page.view.readings.iter();
    let wished = readings
        .clone()
        .map(|(pool, reading)| ([("pool", pool.as_str())], wanted(reading)));
    sheet.gauges(&WANTED, wished)?;
    let ages = readings.map(|(pool, reading)| {
        let age = page.now.since(reading.read_at);
        ([("pool", pool.as_str())], seconds(age.0))
    });
    sheet.gauges(&AGE, ages)
}

fn settings(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let pools = &page.view.pools;
    let infos = pools.iter().map(|pool| {
        let site = pool.site.as_ref().map_or("", |site| site.as_str());
        [
            ("pool", pool.name.as_str()),
            ("kind", pool.kind.map_or("", kind_word)),
            ("site", site),
        ]
    });
    sheet.infos(&INFO, infos)?;
    let modes = pools.iter().flat_map(|pool| {
        MODES.iter().map(|mode| {
            let labels = [("pool", pool.name.as_str()), ("mode", mode_word(*mode))];
            (labels, flag(pool.mode == *mode))
        })
    });
    sheet.gauges(&MODE, modes)?;
    let limits = pools.iter().flat_map(|pool| {
        let all = [("min", pool.min), ("max", pool.max), ("spare", pool.spare)];
        all.map(|(limit, nodes)| {
            let labels = [("pool", pool.name.as_str()), ("limit", limit)];
            (labels, u64::from(nodes))
        })
    });
    sheet.gauges(&LIMITS, limits)
}

/// As the planner was told them: an orphaned pool is not planned with and has none.
fn stops(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let planned = page.view.plan.iter().flat_map(|plan| &plan.0.pools);
    let stops = planned.flat_map(|pool| {
        STOPS.iter().map(|reason| {
            let holds = pool.stops.iter().any(|stop| stop_word(stop) == *reason);
            let labels = [("pool", pool.id.as_str()), ("reason", *reason)];
            (labels, flag(holds))
        })
    });
    sheet.gauges(&STOPPED, stops)
}

fn offerings(sheet: &mut Sheet<'_>, pools: &[PoolView]) -> fmt::Result {
    let counts = pools.iter().map(|pool| {
        let count = u64::try_from(pool.offerings.len()).unwrap_or(u64::MAX);
        ([("pool", pool.name.as_str())], count)
    });
    sheet.gauges(&OFFERINGS, counts)?;
    let failing = pools.iter().flat_map(|pool| {
        let mut kinds: BTreeMap<FailureKind, u64> =
            REMEMBERED.iter().map(|kind| (*kind, 0)).collect();
        for (_, memory) in &pool.offerings {
            if let Some(memory) = memory {
                *kinds.entry(memory.kind).or_default() += 1;
            }
        }
        kinds.into_iter().map(|(kind, count)| {
            let labels = [("pool", pool.name.as_str()), ("reason", failure_word(kind))];
            (labels, count)
        })
    });
    sheet.gauges(&FAILING, failing)
}

fn wanted(reading: &PoolReading) -> u64 {
    let here = reading.instances.iter().filter(|instance| {
        matches!(
            instance.state,
            InstanceState::Pending | InstanceState::Running
        )
    });
    let here = u64::try_from(here.count()).unwrap_or(u64::MAX);
    here.saturating_add(u64::from(reading.unfilled))
}

const fn stop_word(stop: &Stop) -> &'static str {
    match stop {
        Stop::Frozen { .. } => "frozen",
        Stop::Paused { .. } => "paused",
        Stop::NeverJoined { .. } => "never_joined",
        Stop::Failed { .. } => "failed",
        Stop::SiteSilent => "site_silent",
        Stop::Stale { .. } => "stale",
        Stop::NoRemoval { .. } => "no_removal",
        Stop::NotOurs { .. } => "not_ours",
    }
}
