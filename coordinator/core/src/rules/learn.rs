//! Learns what units with GPUs ask for ([`Asked`]): counts those that come by kind and, each time their number has grown
//! by a quarter, works out anew what the rest of a shared GPU is worth.
//!
//! Called by control with the units that were not there at the reading before, and by whoever replays a workload.
//! **Invariant:** bounded, whatever comes: kinds are put together, the rarest go, old arrivals fade. Knows no nodes.

mod residual;

use crate::model::{Asked, AskedKind, Class, Constraints};
use std::cmp::Ordering;

/// Of an arrival's weight this share counts GPUs, the rest units: large units are rare and need the most room. Measured
/// on the openb trace: 0 loses more gangs of 8, 50 leaves more GPUs behind.
const LOAD_PCT: u64 = 20;
/// Work the worth of rests out anew when arrivals grew by this part.
const GROWN: u64 = 4;
/// The first time.
const FIRST: u64 = 16;
/// With so many the older half fades.
const MOST: u64 = 100_000;
/// Kinds kept: the planner looks at each for each state of a node.
const KINDS: usize = 192;
const MIB: u64 = 1 << 20;

/// Counts units that came, by class, and learns when there are enough more.
pub fn step<'c>(asked: &mut Asked, came: impl IntoIterator<Item = (&'c Class, u32)>) {
    for (class, units) in came {
        count(asked, class, u64::from(units));
    }
    if asked.units >= asked.next.max(FIRST) {
        if asked.units > MOST {
            fade(asked);
        }
        asked.next = asked.units + asked.units / GROWN;
        asked.residual = residual::values(&asked.shares);
    }
}

fn count(asked: &mut Asked, class: &Class, units: u64) {
    let (gpus, milli) = match (class.unit.gpus, class.unit.gpu_milli) {
        (0, 0) => return,
        (0, milli) => (1, u64::from(milli.min(1_000))),
        (gpus, _) => (gpus, u64::from(gpus) * 1_000),
    };
    if units == 0 {
        return;
    }
    asked.units = asked.units.saturating_add(units);
    if class.unit.gpus == 0 {
        let hundredths = u32::try_from(milli.div_ceil(10)).unwrap_or(100);
        let have = asked.shares.entry(hundredths).or_default();
        *have = have.saturating_add(units);
    }
    let per_gpu = |amount: u64| amount.saturating_mul(1_000) / milli;
    let cpu = per_gpu(class.unit.cpu.0);
    let mib = per_gpu(class.unit.memory.0 / MIB);
    let weight = units.saturating_mul((100 - LOAD_PCT) * 1_000 + LOAD_PCT * milli);
    let new = AskedKind {
        constraints: about_nodes(&class.constraints),
        gpus,
        cpu_log2: cpu.max(1).ilog2(),
        ..AskedKind::default()
    };
    let at = match asked.kinds.binary_search_by(|have| order(have, &new)) {
        Ok(at) => at,
        Err(at) => {
            asked.kinds.insert(at, new);
            at
        }
    };
    let have = &mut asked.kinds[at];
    have.weight = have.weight.saturating_add(weight);
    have.cpu = have.cpu.saturating_add(weight.saturating_mul(cpu));
    have.memory = have.memory.saturating_add(weight.saturating_mul(mib));
    if asked.kinds.len() > KINDS {
        // Never the one that has just come: a kind that is new and grows would never get in.
        let rare = (0..asked.kinds.len()).filter(|k| *k != at);
        if let Some(rare) = rare.min_by_key(|k| asked.kinds[*k].weight) {
            asked.kinds.remove(rare);
        }
    }
}

fn order(a: &AskedKind, b: &AskedKind) -> Ordering {
    let key = |kind: &AskedKind| (kind.gpus, kind.cpu_log2);
    (key(a), &a.constraints).cmp(&(key(b), &b.constraints))
}

/// The rules that look at nodes alone; those about other units change with every placement.
fn about_nodes(all: &Constraints) -> Constraints {
    Constraints {
        gpu_model: all.gpu_model.clone(),
        pools: all.pools.clone(),
        requirements: all.requirements.clone(),
        tolerations: all.tolerations.clone(),
        any_of: all.any_of.clone(),
        ..Constraints::default()
    }
}

/// The mix of the newer half decides.
fn fade(asked: &mut Asked) {
    asked.units /= 2;
    for often in asked.shares.values_mut() {
        *often /= 2;
    }
    asked.shares.retain(|_, often| *often > 0);
    for kind in &mut asked.kinds {
        kind.weight /= 2;
        kind.cpu /= 2;
        kind.memory /= 2;
    }
    asked.kinds.retain(|kind| kind.weight > 0);
}

#[cfg(test)]
mod tests;
