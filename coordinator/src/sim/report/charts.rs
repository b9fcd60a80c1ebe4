//! Which plots the report has.
//!
//! Called by `page`.

use super::Report;
use super::series::{self, BINS};
use super::svg::{self, Bar, Line};
use crate::sim::bounds::HOUR_MS;
use crate::sim::offered::ratio;
use crate::sim::score::table::{money, percent, waited, whole};
use crate::sim::score::{Score, Waste};
use drover_core::model::Millis;

/// One colour for each run, in order; more runs share the last.
const RUNS: [&str; 6] = ["run1", "run2", "run3", "run4", "run5", "run6"];

/// What an hour of a node was, by class of the style.
const CAUSES: [(&str, &str); 6] = [
    ("used", "used"),
    ("fragmentation", "fragmentation"),
    ("idle", "idle"),
    ("boot", "booting"),
    ("hold", "held for gangs"),
    ("churn", "churn"),
];

fn colour(run: usize) -> &'static str {
    RUNS[run.min(RUNS.len() - 1)]
}

fn hours(span: Millis) -> f64 {
    ratio(span.0, 1) / HOUR_MS
}

/// Demand against capacity, one plot for each run.
pub(super) fn capacity(report: &Report<'_>) -> String {
    let plots = report.runs.iter().zip(report.scores);
    plots
        .map(|(run, score)| {
            let found = series::capacity(run);
            let line = |name: &str, class, values, area| Line {
                name: name.to_owned(),
                class,
                values,
                area,
            };
            svg::lines(
                &format!("{}: demand against capacity", score.policy),
                found.amount,
                hours(run.history.end),
                &[
                    line("wanted (waiting and running)", "wanted", found.wanted, true),
                    line("running", "running", found.running, true),
                    line("capacity that is up", "ready", found.ready, false),
                    line("capacity that is paid", "paid", found.paid, false),
                ],
            )
        })
        .collect()
}

/// What was spent until each moment.
pub(super) fn cost(report: &Report<'_>) -> String {
    let (Some(first), Some(score)) = (report.runs.first(), report.scores.first()) else {
        return String::new();
    };
    let end = report.runs.iter().map(|run| run.history.end).max();
    let end = end.unwrap_or_default().max(Millis(BINS as u64));
    let mut lines = vec![
        Line {
            name: "no packing (a node per unit)".to_owned(),
            class: "alone",
            values: series::spent_alone(first, first.cost, end),
            area: false,
        },
        Line {
            name: "lower bound".to_owned(),
            class: "bound",
            values: series::sums(&score.bounds.curve, end),
            area: true,
        },
    ];
    for (at, (run, score)) in report.runs.iter().zip(report.scores).enumerate() {
        lines.push(Line {
            name: score.policy.clone(),
            class: colour(at),
            values: series::spent(run, score.unit, end),
            area: false,
        });
    }
    svg::lines(
        "Cost until each moment",
        score.unit.words(),
        hours(end),
        &lines,
    )
}

/// Each run's total beside the bounds.
pub(super) fn totals(report: &Report<'_>) -> String {
    let Some(score) = report.scores.first() else {
        return String::new();
    };
    let mut all = vec![
        Bar {
            name: "lower bound".to_owned(),
            parts: vec![("bound", score.bounds.fluid)],
            note: money(score, score.bounds.fluid),
        },
        Bar {
            name: "no packing".to_owned(),
            parts: vec![("alone", score.bounds.no_packing)],
            note: money(score, score.bounds.no_packing),
        },
    ];
    for (at, score) in report.scores.iter().enumerate() {
        all.insert(
            at,
            Bar {
                name: score.policy.clone(),
                parts: vec![(colour(at), score.cost)],
                note: match (score.jobs_unstarted, score.jobs_unfinished) {
                    (0, 0) => format!(
                        "{}, gap closed {}",
                        money(score, score.cost),
                        percent(score.gap_closed())
                    ),
                    (0, some) => format!("{}, {some} jobs not over", money(score, score.cost)),
                    (some, _) => {
                        format!("{}, {some} jobs never started", money(score, score.cost))
                    }
                },
            },
        );
    }
    svg::bars("Cost of the whole run", score.unit.words(), &all, &[])
}

/// Node-hours by cause.
pub(super) fn waste(report: &Report<'_>) -> String {
    let bar = |score: &Score| {
        let Waste {
            boot,
            gang_hold,
            fragmentation,
            idle,
            churn,
            useful,
        } = score.waste;
        let values = [useful, fragmentation, idle, boot, gang_hold, churn];
        let parts = CAUSES.iter().map(|(class, _)| *class).zip(values);
        Bar {
            name: score.policy.clone(),
            parts: parts.collect(),
            note: format!("{} h", whole(score.node_hours)),
        }
    };
    let all: Vec<Bar> = report.scores.iter().map(bar).collect();
    svg::bars("Where the node-hours went", "node-hours", &all, &CAUSES)
}

/// The wait of 95 of 100 jobs, by gang size.
pub(super) fn waits(report: &Report<'_>) -> String {
    let mut all = Vec::new();
    for (at, score) in report.scores.iter().enumerate() {
        for size in &score.by_gang_size {
            let units = if size.units == "1" { "unit" } else { "units" };
            all.push(Bar {
                name: format!("{}, {} {units}", score.policy, size.units),
                // No bar where the rank falls on a job that never started: the note says it.
                parts: size
                    .waits
                    .p95
                    .map(|wait| (colour(at), wait / 60.0))
                    .into_iter()
                    .collect(),
                note: format!("{} ({} jobs)", waited(size.waits.p95, size.jobs), size.jobs),
            });
        }
    }
    svg::bars(
        "Wait above the boot by gang size: 95 of 100 jobs waited no longer",
        "minutes",
        &all,
        &[],
    )
}
