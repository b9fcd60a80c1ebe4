//! The least that a workload can cost, with and without boots, and what it costs without packing.

use super::traces::{Job, Type};
use std::collections::BTreeMap;

/// Lower bound in node-seconds of 8-GPU nodes: integral of the running GPUs over 8, rounded up. With a boot: per level
/// its busy time, for each gap the smaller of the gap and the boot, and one boot.
pub(crate) fn node_seconds(jobs: &[Job], boot: u64) -> u64 {
    let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
    for job in jobs {
        *steps.entry(job.submit).or_default() += i64::from(job.gpus());
        *steps.entry(job.submit + job.seconds).or_default() -= i64::from(job.gpus());
    }
    let mut running = 0_i64;
    let mut total = 0;
    // Per level: since when it is in use, or until when it was.
    let mut levels: Vec<Result<u64, u64>> = Vec::new();
    for (at, change) in steps {
        running += change;
        let want = usize::try_from((running + 7) / 8).unwrap_or(0);
        for level in 0..levels.len().max(want) {
            match levels.get(level).copied() {
                None => {
                    total += boot;
                    levels.push(Ok(at));
                }
                Some(Err(end)) if level < want => {
                    total += (at - end).min(boot);
                    levels[level] = Ok(at);
                }
                Some(Ok(since)) if level >= want => {
                    total += at - since;
                    levels[level] = Err(at);
                }
                Some(_) => {}
            }
        }
    }
    total
}

/// A node of the cheapest type that fits for each job, in micro-USD.
pub(crate) fn no_packing(types: &[Type], jobs: &[Job]) -> u128 {
    let each = jobs.iter().map(|job| {
        let fitting = types.iter().filter(|t| job.unit.fits(&t.size));
        let price = fitting.map(|t| t.price).min().unwrap_or(0);
        u128::from(price) * u128::from(job.seconds) / 3_600
    });
    each.sum()
}
