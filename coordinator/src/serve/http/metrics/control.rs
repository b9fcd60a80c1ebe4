//! The coordinator's own work: cycles, plans, commits, events, agents. Written by `metrics`.

use super::Snapshot;
use super::family::{Family, Sheet, seconds};
use crate::control::tally::CommitEnd;
use crate::records::Severity;
use drover_core::model::UnixMs;
use std::fmt;

const START: Family = Family::gauge(
    "process_start_time",
    "When this process started, seconds since 1970",
)
.seconds();
const BUILD: Family = Family::info("build", "The program that runs");
const CYCLES: Family =
    Family::histogram("cycle", "Time that a cycle took that ended well").seconds();
const CYCLE_FAILURES: Family = Family::counter("cycle_failures", "Cycles that failed");
const LAST_CYCLE: Family = Family::gauge(
    "last_cycle_timestamp",
    "When the last cycle that ended well began, seconds since 1970",
)
.seconds();
const PLANS: Family = Family::histogram("plan", "Time that the planner took for a plan").seconds();
const COMMITS: Family = Family::counter("store_commits", "Commits to the store by how they ended");
const EVENTS: Family = Family::counter(
    "events",
    "Lines of the log of events by what they are about, their word and how serious they are",
);
const AGENTS: Family = Family::gauge("agents_connected", "Agents with an open session");

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    sheet.infos(&BUILD, [[("version", env!("CARGO_PKG_VERSION"))]])?;
    sheet.spans(&CYCLES, &page.cycles)?;
    sheet.counter(&CYCLE_FAILURES, page.cycle_failures)?;
    let last = (page.view.cycle > 0).then(|| ([], seconds(page.view.at.0)));
    sheet.gauges(&LAST_CYCLE, last)?;
    sheet.spans(&PLANS, &page.plans)?;
    let commits = CommitEnd::ALL.iter().map(|end| {
        let count = page.counts.commits.get(end).copied();
        ([("outcome", end.word())], count.unwrap_or(0))
    });
    sheet.counters(&COMMITS, commits)?;
    let events = page.counts.events.iter();
    let events = events.map(|((about, event, severity), count)| {
        let labels = [
            ("about", *about),
            ("event", *event),
            ("severity", word(*severity)),
        ];
        (labels, *count)
    });
    sheet.counters(&EVENTS, events)?;
    let agents = page
        .view
        .nodes
        .iter()
        .filter_map(|node| node.agent.as_ref());
    let connected = agents.filter(|agent| agent.connected).count();
    sheet.gauge(&AGENTS, u64::try_from(connected).unwrap_or(u64::MAX))
}

/// The one name without prefix: dashboards know it.
pub(super) fn process(sheet: &mut Sheet<'_>, started: UnixMs) -> fmt::Result {
    sheet.gauge(&START, seconds(started.0))
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Alarm => "alarm",
    }
}
