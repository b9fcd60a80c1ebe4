//! How long jobs waited, above the time that any node takes to boot.
//!
//! Called by `score`. A job that never started waited longer than any that did: a percentile that falls on one has no
//! figure.

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

/// Seconds above the boot floor, by nearest rank; `raw` ones from the submission. Absent: the rank falls on a job that
/// never started, or there is no job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// Half of all jobs waited no longer.
    pub p50: Option<f64>,
    /// 95 % waited no longer.
    pub p95: Option<f64>,
    /// 99 % waited no longer.
    pub p99: Option<f64>,
    /// The longest; absent while any never started.
    pub most: Option<f64>,
    /// Half of all jobs waited no longer from submission to start.
    pub raw_p50: Option<f64>,
    /// 95 % waited no longer from submission to start.
    pub raw_p95: Option<f64>,
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
    /// Part of them that did not start the moment they were submitted.
    pub share_waited: f64,
    /// Part of them that waited for a boot.
    pub share_waited_for_boot: f64,
}

/// One job's.
struct Waited {
    size: usize,
    /// Absent: never started.
    raw: Option<Millis>,
    above: Option<Millis>,
    boot: bool,
}

impl Waited {
    /// Not at once; one that never started among them.
    fn at_all(&self) -> bool {
        self.raw != Some(Millis::ZERO)
    }
}

/// Every job's, in the trace's order.
pub(super) struct All(Vec<Waited>);

impl All {
    pub(super) fn new(trace: &Trace, history: &History, offered: &[Offered]) -> Self {
        let jobs = trace.jobs.iter().zip(&history.jobs);
        let all = jobs.map(|(job, happened)| {
            let raw = happened
                .started
                .map(|at| Millis(at.0.saturating_sub(job.submit.0)));
            let floor = boot_floor(job, offered);
            let units = offered::parts(job).len();
            Waited {
                size: SIZES
                    .iter()
                    .position(|(most, _)| units <= *most)
                    .unwrap_or(0),
                raw,
                above: raw.map(|raw| Millis(raw.0.saturating_sub(floor.0))),
                boot: happened.waited_for_boot,
            }
        });
        Self(all.collect())
    }

    /// Of all jobs.
    pub(super) fn waits(&self) -> Waits {
        of(&self.0.iter().collect::<Vec<_>>())
    }

    /// Part of all jobs that waited at all, and for a boot; zero of nothing.
    pub(super) fn shares(&self) -> (f64, f64) {
        let all: Vec<&Waited> = self.0.iter().collect();
        (share(&all, Waited::at_all), share(&all, |one| one.boot))
    }

    /// By gang size; sizes without jobs are left out.
    pub(super) fn by_size(&self) -> Vec<GangSize> {
        let sizes = SIZES.iter().enumerate().filter_map(|(size, (_, units))| {
            let these: Vec<&Waited> = self.0.iter().filter(|one| one.size == size).collect();
            (!these.is_empty()).then(|| GangSize {
                units,
                jobs: these.len(),
                share_waited: share(&these, Waited::at_all),
                share_waited_for_boot: share(&these, |one| one.boot),
                waits: of(&these),
            })
        });
        sizes.collect()
    }
}

fn share(jobs: &[&Waited], which: impl Fn(&Waited) -> bool) -> f64 {
    let such = jobs.iter().filter(|one| which(one)).count();
    quotient(ratio(such as u64, 1), ratio(jobs.len() as u64, 1)).unwrap_or(0.0)
}

fn of(jobs: &[&Waited]) -> Waits {
    let sorted = |what: fn(&Waited) -> Option<Millis>| {
        let mut spans: Vec<Option<Millis>> = jobs.iter().map(|job| what(job)).collect();
        // Those that never started last.
        spans.sort_unstable_by_key(|span| span.map_or(u64::MAX, |span| span.0));
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

/// Nearest rank, in seconds.
fn rank(sorted: &[Option<Millis>], percent: usize) -> Option<f64> {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    let span = (*sorted.get(at)?)?;
    Some(ratio(span.0, 1_000))
}
