//! Workloads from a seed: bursts, gangs and heavy tails, as research clusters have them.
//!
//! Called by `drover simulate generate` and by the benchmarks. Deterministic: the same wishes, the same jobs. Integers
//! only. The shapes follow what is published of Philly (Jeon et al., USENIX ATC'19: most jobs small and short, a few
//! large ones with most of the GPU time) without copying its figures.

use super::{Job, Trace};
use crate::world::generator::Generator;
use drover_core::model::{Bytes, MilliCpu, Millis, Resources};

/// What is wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// Seed.
    pub seed: u64,
    /// Jobs.
    pub jobs: u32,
    /// They are submitted within this time.
    pub span: Millis,
    /// Percent of the jobs that come in bursts: many alike within minutes.
    pub burst_percent: u32,
    /// Percent of the jobs that are gangs of whole nodes.
    pub gang_percent: u32,
    /// GPUs of a node.
    pub gpus_per_node: u32,
    /// Most nodes of a gang.
    pub largest_gang: u32,
    /// Half of the jobs run no longer than this; the longest about a thousand times as long.
    pub typical: Millis,
    /// Jobs write a checkpoint this often; absent: none.
    pub checkpoint: Option<Millis>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            seed: 0,
            jobs: 1_000,
            span: Millis::minutes(7 * 24 * 60),
            burst_percent: 50,
            gang_percent: 10,
            gpus_per_node: 8,
            largest_gang: 16,
            typical: Millis::minutes(20),
            checkpoint: None,
        }
    }
}

/// Makes a workload.
#[must_use]
pub fn generate(wishes: &Wishes) -> Trace {
    let mut dice = Generator::new(wishes.seed);
    let mut jobs = Vec::new();
    let total = usize::try_from(wishes.jobs).unwrap_or(usize::MAX);
    while jobs.len() < total {
        let left = u64::try_from(total - jobs.len()).unwrap_or(u64::MAX);
        let at = dice.below(wishes.span.0.max(1));
        if dice.below(100) < u64::from(wishes.burst_percent) {
            // A burst: a sweep of alike jobs within ten minutes, few large ones, many small ones.
            let size = (2 + heavy(&mut dice, 6, 200)).min(left);
            let shape = shape(&mut dice, wishes);
            let typical = duration(&mut dice, wishes);
            for _ in 0..size {
                let mut job = shape.clone();
                job.submit = Millis(at + dice.below(600_000));
                job.duration = Millis(typical * (80 + dice.below(41)) / 100);
                jobs.push(job);
            }
        } else {
            let mut job = shape(&mut dice, wishes);
            job.submit = Millis(at);
            job.duration = Millis(duration(&mut dice, wishes));
            jobs.push(job);
        }
    }
    jobs.sort_by_key(|job| job.submit);
    for (n, job) in jobs.iter_mut().enumerate() {
        job.id = format!("job-{:06}", n + 1);
        job.checkpoint = wishes.checkpoint;
    }
    Trace {
        name: format!("generated from seed {}", wishes.seed),
        jobs,
        skipped: Vec::new(),
    }
}

/// Pareto-like: about `typical` in the middle, a tail that thins out by half with each doubling, at most `most`.
fn heavy(dice: &mut Generator, typical: u64, most: u64) -> u64 {
    let draw = 1 + dice.below(1_000);
    (typical * 500 / draw).min(most)
}

/// Milliseconds: from seconds up to about a thousand times the typical time.
fn duration(dice: &mut Generator, wishes: &Wishes) -> u64 {
    let typical = wishes.typical.0.max(1_000);
    let long = heavy(dice, typical, typical.saturating_mul(1_000));
    // Half of the jobs end early: they fail, or were only tried out.
    if dice.below(100) < 30 {
        (long / (2 + dice.below(20))).max(1_000)
    } else {
        long
    }
}

fn shape(dice: &mut Generator, wishes: &Wishes) -> Job {
    let per_node = wishes.gpus_per_node.max(1);
    let gpus = |count: u32| Resources {
        cpu: MilliCpu(u64::from(count) * 4_000),
        memory: Bytes(u64::from(count) * (24 << 30)),
        gpus: count,
        ..Resources::default()
    };
    let empty = Job::new(String::new(), Millis::ZERO, Millis::ZERO, gpus(0));
    if dice.below(100) < u64::from(wishes.gang_percent) {
        let nodes = 2 + heavy(dice, 2, u64::from(wishes.largest_gang.max(2) - 2));
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        return Job {
            unit: gpus(per_node),
            units: nodes,
            min_units: nodes,
            whole_node: true,
            ..empty
        };
    }
    // 1, 1, 1, 2, 4, 8 ... GPUs on one node.
    let power = u32::try_from(dice.below(6)).unwrap_or(0).saturating_sub(2);
    let count = (1_u32 << power.min(4)).min(per_node);
    Job {
        unit: gpus(count),
        ..empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_workload() {
        let wishes = Wishes {
            seed: 7,
            ..Wishes::default()
        };
        let first = generate(&wishes);
        assert_eq!(first, generate(&wishes));
        assert_ne!(first.jobs, generate(&Wishes { seed: 8, ..wishes }).jobs);
    }

    #[test]
    fn it_has_bursts_gangs_and_a_heavy_tail() {
        let wishes = Wishes {
            jobs: 5_000,
            ..Wishes::default()
        };
        let trace = generate(&wishes);
        assert_eq!(trace.jobs.len(), 5_000);
        let gangs = trace.jobs.iter().filter(|job| job.units > 1).count();
        assert!((100..2_000).contains(&gangs), "{gangs} gangs");
        assert!(
            trace
                .jobs
                .iter()
                .all(|job| job.units <= 16 && job.unit.gpus <= 8)
        );
        let mut spans: Vec<u64> = trace.jobs.iter().map(|job| job.duration.0).collect();
        spans.sort_unstable();
        let total: u64 = spans.iter().sum();
        let longest: u64 = spans.iter().rev().take(500).sum();
        assert!(
            longest * 2 > total,
            "a tenth of the jobs has most of the time"
        );
        let mut hours = vec![0_u32; 7 * 24 + 1];
        for job in &trace.jobs {
            hours[usize::try_from(job.submit.0 / 3_600_000).unwrap()] += 1;
        }
        let peak = hours.iter().max().copied().unwrap_or(0);
        assert!(peak > 3 * 5_000 / (7 * 24), "a burst stands out: {peak}");
    }
}
