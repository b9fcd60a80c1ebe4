//! A model of the default Kubernetes scheduler for the policies that only add and remove nodes: filter, then the
//! least-allocated score over CPU and memory, ties by lot. A job's parts are bound all at once or not at all, as with a
//! gang plugin.
//!
//! Called by `cluster`. Where a node has neither CPU nor memory to count, GPUs are counted instead.

use super::fleet::{Fleet, Placed};
use crate::sim::offered::Part;
use crate::world::generator::Generator;
use drover_core::model::{Constraints, Millis, Resources};

/// What the scheduler takes a container for that asks for nothing: 100 m and 200 MiB (`util.DefaultMilliCPURequest`).
const LEAST_CPU: u64 = 100;
const LEAST_MEMORY: u64 = 200 << 20;

/// Places for all parts, taken; absent, and nothing taken, when one has none.
pub(super) fn place(
    fleet: &mut Fleet<'_>,
    parts: &[Part],
    wanted: &Constraints,
    now: Millis,
    lot: &mut Generator,
) -> Option<Vec<Placed>> {
    let mut placed: Vec<Placed> = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(node) = best(fleet, part, wanted, now, lot) else {
            for on in &placed {
                fleet.give_back(on);
            }
            return None;
        };
        let on = (node, part.clone());
        fleet.take(&on);
        placed.push(on);
    }
    Some(placed)
}

fn best(
    fleet: &Fleet<'_>,
    part: &Part,
    wanted: &Constraints,
    now: Millis,
    lot: &mut Generator,
) -> Option<u32> {
    let mut best: Option<(u64, u32)> = None;
    let mut ties = 0;
    for node in fleet.live.iter().copied() {
        let at = fleet.node(node);
        if at.ready > now || at.cordoned || !fleet.takes(node, part, wanted) {
            continue;
        }
        let score = least_allocated(part, &at.free, &fleet.kind(node).allocatable);
        match best {
            Some((top, _)) if score < top => {}
            Some((top, _)) if score == top => {
                ties += 1;
                if lot.below(ties) == 0 {
                    best = Some((score, node));
                }
            }
            _ => {
                ties = 1;
                best = Some((score, node));
            }
        }
    }
    best.map(|(_, node)| node)
}

/// 0 to 100 per amount: the share that would be left.
fn least_allocated(part: &Part, free: &Resources, all: &Resources) -> u64 {
    let left = |free: u64, want: u64, all: u64| (free.saturating_sub(want) * 100).checked_div(all);
    let scores: Vec<u64> = [
        left(free.cpu.0, part.need.cpu.0.max(LEAST_CPU), all.cpu.0),
        left(
            free.memory.0,
            part.need.memory.0.max(LEAST_MEMORY),
            all.memory.0,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    match scores.len() as u64 {
        0 => left(
            u64::from(free.gpus),
            u64::from(part.need.gpus),
            u64::from(all.gpus),
        )
        .unwrap_or(0),
        count => scores.iter().sum::<u64>() / count,
    }
}
