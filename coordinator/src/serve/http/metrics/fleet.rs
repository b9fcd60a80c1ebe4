//! What is asked for and what troubles the fleet as a whole. Written by `metrics`.

use super::Snapshot;
use super::family::{Family, Sheet, flag};
use crate::control::view::{DemandView, RequestShown};
use std::collections::BTreeMap;
use std::fmt;

const FROZEN: Family = Family::gauge("fleet_frozen", "Whether the whole fleet is frozen, 1 or 0");
const ALARMS: Family = Family::gauge("alarms", "Troubles that a person should know, by kind");
const APPROVALS: Family = Family::gauge(
    "approvals_pending",
    "Removals beyond the breaker that wait for drover approve",
);
const REQUESTS: Family = Family::gauge("requests", "Capacity requests by phase");
const UNITS: Family = Family::gauge(
    "request_units",
    "Units of open requests by whether they can be used",
);
const DEMAND: Family = Family::gauge(
    "demand_units",
    "Units of all demand in the last plan, with or without a place",
);
/// Kinds that are told as 0 when there are none: what alerts are made of.
const ALARM_KINDS: [&str; 9] = [
    "breaker_open",
    "clock_drift",
    "config_refused",
    "discovery_trouble",
    "never_joined",
    "pool_stopped",
    "pool_unreadable",
    "silent_and_empty",
    "site_silent",
];
const PHASES: [RequestShown; 6] = [
    RequestShown::Pending,
    RequestShown::Partial,
    RequestShown::Served,
    RequestShown::Ended,
    RequestShown::Cancelled,
    RequestShown::Impossible,
];

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let view = &page.view;
    let frozen = view.freezes.iter().any(|freeze| freeze.pool.is_none());
    sheet.gauge(&FROZEN, flag(frozen))?;
    let mut alarms: BTreeMap<&str, u64> = ALARM_KINDS.iter().map(|kind| (*kind, 0)).collect();
    for alarm in &view.alarms {
        *alarms.entry(alarm.kind).or_default() += 1;
    }
    let alarms = alarms.into_iter();
    sheet.gauges(
        &ALARMS,
        alarms.map(|(kind, count)| ([("kind", kind)], count)),
    )?;
    let approvals = u64::try_from(view.approvals.len()).unwrap_or(u64::MAX);
    sheet.gauge(&APPROVALS, approvals)?;
    requests(sheet, page)
}

fn requests(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let all = &page.view.requests;
    let phases = PHASES.iter().map(|phase| {
        let count = all.iter().filter(|request| request.shown == *phase).count();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        ([("phase", phase.word())], count)
    });
    sheet.gauges(&REQUESTS, phases)?;
    let mut units = [
        ("ready", 0),
        ("coming", 0),
        ("unavailable", 0),
        ("missing", 0),
    ];
    let over = [RequestShown::Ended, RequestShown::Cancelled];
    for request in all.iter().filter(|request| !over.contains(&request.shown)) {
        let counts = [
            request.units_ready,
            request.units_coming,
            request.units_unavailable,
            request.units_missing,
        ];
        for ((_, sum), count) in units.iter_mut().zip(counts) {
            *sum += u64::from(count);
        }
    }
    let units = units.into_iter();
    sheet.gauges(
        &UNITS,
        units.map(|(state, count)| ([("state", state)], count)),
    )?;
    let sum = |of: fn(&DemandView) -> u32| -> u64 {
        let counts = page.view.demand.iter().map(of);
        counts.map(u64::from).sum()
    };
    let demand = [
        ([("state", "placed")], sum(|class| class.placed)),
        ([("state", "unplaced")], sum(|class| class.unplaced)),
    ];
    sheet.gauges(&DEMAND, demand)
}
