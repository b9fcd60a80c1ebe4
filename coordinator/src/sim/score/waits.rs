//! How long jobs waited, above the time that any node takes to boot.
//!
//! Called by `score`. A job that never started counts with the time it waited until the run was over.

use super::{boot_floor, quotient};
use crate::sim::history::History;
use crate::sim::offered::{self, Offered, ratio};
use crate::sim::trace::Trace;
use drover_core::model::Millis;

/// Upper ends of the classes of gang sizes, in units with the remainder.
const SIZES: [(usize, &str); 6] = [
    (1, "1"),
    (2, "2"),
    (4, "3-4"),
    (8, "5-8"),
    (16, "9-16"),
    (usize::MAX, "17+"),
];

/// Seconds above the boot floor, by nearest rank; `raw` ones from the submission.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// Half of all jobs waited no longer.
    pub p50: f64,
    /// 95 % waited no longer.
    pub p95: f64,
    /// 99 % waited no longer.
    pub p99: f64,
    /// The longest.
    pub most: f64,
    /// Half of all jobs waited no longer from submission to start.
    pub raw_p50: f64,
    /// 95 % waited no longer from submission to start.
    pub raw_p95: f64,
}

/// Jobs of like gang size.
#[derive(Debug, Clone, PartialEq)]
pub struct GangSize {
    /// Units, for people: `1`, `3-4`.
    pub units: &'static str,
    /// How many jobs.
    pub jobs: usize,
    /// Their waits.
    pub waits: Waits,
    /// Part of them that waited for a boot.
    pub share_waited_for_boot: f64,
}

/// One job's.
struct Waited {
    size: usize,
    raw: Millis,
    above: Millis,
    boot: bool,
}

/// Of all jobs, and by gang size; sizes without jobs are left out.
pub(super) fn waits(
    trace: &Trace,
    history: &History,
    offered: &[Offered],
) -> (Waits, Vec<GangSize>) {
    let all: Vec<Waited> = trace
        .jobs
        .iter()
        .zip(&history.jobs)
        .map(|(job, happened)| {
            let until = happened.started.unwrap_or(history.end);
            let raw = until.0.saturating_sub(job.submit.0);
            let units = offered::parts(job).len();
            Waited {
                size: SIZES
                    .iter()
                    .position(|(most, _)| units <= *most)
                    .unwrap_or(0),
                raw: Millis(raw),
                above: Millis(raw.saturating_sub(boot_floor(job, offered).0)),
                boot: happened.waited_for_boot,
            }
        })
        .collect();
    let sizes = SIZES.iter().enumerate().filter_map(|(size, (_, units))| {
        let these: Vec<&Waited> = all.iter().filter(|one| one.size == size).collect();
        let boots = these.iter().filter(|one| one.boot).count();
        Some(GangSize {
            units,
            jobs: these.len(),
            share_waited_for_boot: quotient(ratio(boots as u64, 1), ratio(these.len() as u64, 1))?,
            waits: of(&these),
        })
    });
    let by_size = sizes.collect();
    (of(&all.iter().collect::<Vec<_>>()), by_size)
}

fn of(jobs: &[&Waited]) -> Waits {
    let sorted = |what: fn(&Waited) -> Millis| {
        let mut spans: Vec<Millis> = jobs.iter().map(|job| what(job)).collect();
        spans.sort_unstable();
        spans
    };
    let above = sorted(|job| job.above);
    let raw = sorted(|job| job.raw);
    Waits {
        p50: rank(&above, 50),
        p95: rank(&above, 95),
        p99: rank(&above, 99),
        most: rank(&above, 100),
        raw_p50: rank(&raw, 50),
        raw_p95: rank(&raw, 95),
    }
}

/// Nearest rank, in seconds; zero of nothing.
fn rank(sorted: &[Millis], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).map_or(0.0, |span| ratio(span.0, 1_000))
}
