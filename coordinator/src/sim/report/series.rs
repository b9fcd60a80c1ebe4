//! What the plots show, as means over equal parts of the run.
//!
//! Called by `charts`.

use crate::sim::bounds::{Curve, HOUR_MS, usd_hours};
use crate::sim::config::Cost;
use crate::sim::offered::{self, amounts, ratio};
use crate::sim::score::{Run, Unit};
use drover_core::model::{MicroUsd, Millis, Resources};

/// Parts of the run.
pub(super) const BINS: usize = 480;

/// Demand and capacity over time, in units of one amount.
pub(super) struct Capacity {
    /// `GPUs`, `CPUs`, ...
    pub amount: &'static str,
    /// Of jobs that were submitted and have not ended.
    pub wanted: Vec<f64>,
    /// Of jobs that run.
    pub running: Vec<f64>,
    /// Of nodes that are up.
    pub ready: Vec<f64>,
    /// Of all nodes that cost.
    pub paid: Vec<f64>,
}

/// A change of height.
type Change = (Millis, f64);

fn curve(mut changes: Vec<Change>) -> Curve {
    changes.sort_by_key(|(at, _)| *at);
    let mut curve = Curve::default();
    let mut height = 0.0;
    for (at, by) in changes {
        height += by;
        curve.push(at, height);
    }
    curve
}

/// Means over each part of the time until `end`.
pub(super) fn means(curve: &Curve, end: Millis) -> Vec<f64> {
    let width = (end.0 / BINS as u64).max(1);
    let mut at = 0;
    let mut height = 0.0;
    (0..BINS as u64)
        .map(|bin| {
            let (begin, until) = (bin * width, (bin + 1) * width);
            let mut now = begin;
            let mut area = 0.0;
            while let Some((from, next)) = curve.0.get(at).filter(|(from, _)| from.0 < until) {
                let from = from.0.max(now);
                area += height * ratio(from - now, 1);
                now = from;
                height = *next;
                at += 1;
            }
            (area + height * ratio(until - now, 1)) / ratio(width, 1)
        })
        .collect()
}

/// Sums of a curve of cost per hour until the end of each part.
pub(super) fn sums(curve: &Curve, end: Millis) -> Vec<f64> {
    let hours = ratio((end.0 / BINS as u64).max(1), 1) / HOUR_MS;
    let mut sum = 0.0;
    means(curve, end)
        .into_iter()
        .map(|mean| {
            sum += mean * hours;
            sum
        })
        .collect()
}

/// Which amount is shown: GPUs where any job wants one, then CPUs, memory, and else nodes' first amount.
fn shown(run: &Run<'_>) -> (&'static str, &'static str, f64) {
    let wants = |name: &str| {
        run.trace.jobs.iter().any(|job| {
            let mut all = amounts(&job.unit).into_iter();
            all.any(|(known, amount)| known == name && amount > 0)
        })
    };
    if wants("gpu") {
        ("gpu", "GPUs", 1_000.0)
    } else if wants("cpu") {
        ("cpu", "CPUs", 1_000.0)
    } else {
        ("memory", "GiB of memory", f64::from(1_u32 << 30))
    }
}

/// Demand against capacity.
pub(super) fn capacity(run: &Run<'_>) -> Capacity {
    let (key, amount, scale) = shown(run);
    let of = |what: &Resources| {
        let mut all = amounts(what).into_iter();
        all.find(|(name, _)| *name == key)
            .map_or(0.0, |(_, amount)| ratio(amount, 1) / scale)
    };
    let end = run.history.end;
    let (mut wanted, mut running) = (Vec::new(), Vec::new());
    for (job, happened) in run.trace.jobs.iter().zip(&run.history.jobs) {
        let size: f64 = (0..job.units)
            .map(|_| &job.unit)
            .chain(&job.rest)
            .map(of)
            .sum();
        let until = happened.ended.unwrap_or(end);
        wanted.extend([(job.submit, size), (until.max(job.submit), -size)]);
        if let Some(start) = happened.started {
            running.extend([(start, size), (until.max(start), -size)]);
        }
    }
    let (mut ready, mut paid) = (Vec::new(), Vec::new());
    for node in &run.history.nodes {
        let size = of(&node.allocatable);
        let until = node.ended.unwrap_or(end).max(node.launched);
        paid.extend([(node.launched, size), (until, -size)]);
        if let Some(from) = node.ready.filter(|from| *from < until) {
            ready.extend([(from, size), (until, -size)]);
        }
    }
    let means = |changes| means(&curve(changes), end);
    Capacity {
        amount,
        wanted: means(wanted),
        running: means(running),
        ready: means(ready),
        paid: means(paid),
    }
}

/// Cost until each moment, of the run.
pub(super) fn spent(run: &Run<'_>, unit: Unit, end: Millis) -> Vec<f64> {
    let mut changes = Vec::new();
    for node in &run.history.nodes {
        let price = match unit {
            Unit::Usd => node.price,
            Unit::NodeHours => MicroUsd(1_000_000),
        };
        let hourly = usd_hours(price.0, Millis::minutes(60));
        let until = node.ended.unwrap_or(run.history.end).max(node.launched);
        changes.extend([(node.launched, hourly), (until, -hourly)]);
    }
    sums(&curve(changes), end)
}

/// Cost until each moment, with each unit alone on the cheapest node that holds it.
pub(super) fn spent_alone(run: &Run<'_>, cost: Cost, end: Millis) -> Vec<f64> {
    let kinds = crate::sim::score::counted(run.offered, cost);
    let mut changes = Vec::new();
    for job in &run.trace.jobs {
        if !offered::possible(job, &kinds) {
            continue;
        }
        let until = Millis(job.submit.0.saturating_add(job.duration.0));
        for part in offered::parts(job) {
            if let Some(kind) = offered::cheapest(&part, &job.constraints, &kinds) {
                let hourly = usd_hours(kinds[kind].price.0, Millis::minutes(60));
                changes.extend([(job.submit, hourly), (until, -hourly)]);
            }
        }
    }
    sums(&curve(changes), end)
}
