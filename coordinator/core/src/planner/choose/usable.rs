//! How much of a node's free GPUs units like those that came could still use: a place is good where this falls least.
//! For fleets that share GPUs. Built once per run from `Learnt::asked`, read by the score; places nothing.
//!
//! Per kind of unit that came, weighted by how often it comes and how scarce the places are that it may go to: a fluid
//! fill of the node by this kind alone, bounded by its free GPUs, CPU and memory. Free GPUs count by the worth of each
//! one's rest (cutting-stock prices); for units of several whole GPUs only whole ones do, in multiples. Measured by
//! packing the openb trace: 244 GPUs left of 6,212 (best fit 434, fragmentation gradient descent 304); with GPU models
//! asked for 315 (1,219 and 727).

use crate::model::{AskedKind, Constraints};
use crate::planner::size::{Free, Size};
use crate::planner::state::Work;
use std::collections::BTreeMap;

/// Below this, in millionths of a thousandth of a GPU, places are alike.
pub(super) const STEP: i64 = 10_000;
/// Fixed point of the amounts per GPU.
const SHIFT: u32 = 44;

/// See the module.
pub(super) struct Usable {
    /// Per kind of place, the kinds of units that may go there.
    of_kind: Vec<Vec<Weigh>>,
    /// Thousandths of a whole GPU by hundredths free.
    worth: [u64; 101],
    looks: u64,
}

/// One kind of unit.
struct Weigh {
    /// Millionths of all arrivals, times scarcity.
    weight: u64,
    /// More than one whole GPU at once: how many.
    gang: u64,
    /// Thousandths of a GPU per milli-CPU, and per byte; none: it asks for nothing of that.
    by_cpu: Option<u64>,
    by_memory: Option<u64>,
}

impl Usable {
    /// Nothing where no GPU is shared and none was asked for in parts, or nothing came yet.
    pub fn new(work: &Work<'_>) -> Option<Self> {
        let asked = &work.input.learnt.asked;
        let shared = asked.residual.len() == 101
            || work.input.nodes.iter().any(|n| !n.gpu_shares.is_empty());
        if asked.kinds.is_empty() || !shared {
            return None;
        }
        let mut gpus_of = vec![0_u64; work.kinds.len()];
        for bin in &work.bins {
            gpus_of[bin.kind] += u64::from(bin.total.gpus);
        }
        let all_gpus: u64 = gpus_of.iter().sum();
        let sum: u128 = asked.kinds.iter().map(|k| u128::from(k.weight)).sum();
        let mut of_kind: Vec<Vec<Weigh>> = gpus_of.iter().map(|_| Vec::new()).collect();
        let mut allowed: BTreeMap<&Constraints, Vec<usize>> = BTreeMap::new();
        for kind in &asked.kinds {
            let places = allowed.entry(&kind.constraints).or_insert_with(|| {
                let with = (0..gpus_of.len()).filter(|k| gpus_of[*k] > 0);
                with.filter(|k| work.kinds[*k].allows(&kind.constraints))
                    .collect()
            });
            let gpus: u64 = places.iter().map(|k| gpus_of[*k]).sum();
            let scarce = u128::from(kind.weight) * 1_000_000 * u128::from(all_gpus);
            let Some(weight) = scarce.checked_div(sum.max(1) * u128::from(gpus)) else {
                continue;
            };
            for &place in places.iter() {
                of_kind[place].push(weigh(kind, u64::try_from(weight).unwrap_or(u64::MAX)));
            }
        }
        let mut worth = std::array::from_fn(|hundredths| 10 * hundredths as u64);
        if asked.residual.len() == worth.len() {
            for (worth, learnt) in worth.iter_mut().zip(&asked.residual) {
                *worth = u64::from(*learnt);
            }
        }
        Some(Self {
            looks: 1 + of_kind.iter().map(Vec::len).max().unwrap_or(0) as u64,
            of_kind,
            worth,
        })
    }

    /// Looks at kinds of units for one score.
    pub const fn looks(&self) -> u64 {
        self.looks
    }

    /// Millionths of a thousandth of a GPU.
    pub fn of(&self, kind: usize, free: &Free) -> i64 {
        let whole = u64::from(free.size.gpus);
        let parts = free
            .shares
            .iter()
            .map(|share| self.worth[(*share / 10).min(100) as usize]);
        let value = whole
            .saturating_mul(self.worth[100])
            .saturating_add(parts.sum());
        let fill = |amount: u64, by: Option<u64>| {
            by.map_or(u64::MAX, |by| {
                u64::try_from((u128::from(amount) * u128::from(by)) >> SHIFT).unwrap_or(u64::MAX)
            })
        };
        let sum = self.of_kind[kind].iter().fold(0_u64, |sum, unit| {
            let gpus = if unit.gang > 1 {
                (whole / unit.gang).saturating_mul(unit.gang * 1_000)
            } else {
                value
            };
            let usable = gpus
                .min(fill(free.size.cpu, unit.by_cpu))
                .min(fill(free.size.memory, unit.by_memory));
            sum.saturating_add(unit.weight.saturating_mul(usable))
        });
        i64::try_from(sum).unwrap_or(i64::MAX)
    }

    /// What a unit there takes from it, in steps.
    pub fn lost(&self, kind: usize, free: &Free, unit: &Size) -> i64 {
        let mut after = free.clone();
        after.take(unit, 1);
        (self.of(kind, free) - self.of(kind, &after)) / STEP
    }
}

fn weigh(kind: &AskedKind, weight: u64) -> Weigh {
    let each = kind.weight.max(1);
    let per = |amount: u64| (1_000_u64 << SHIFT).checked_div(amount);
    Weigh {
        weight,
        gang: u64::from(kind.gpus),
        by_cpu: per(kind.cpu / each),
        by_memory: per((kind.memory / each).saturating_mul(1 << 20)),
    }
}
