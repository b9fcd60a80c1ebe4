//! A model of the default scheduler of Kubernetes: nodes are filtered by what the job asks, then scored; the highest score
//! wins, the older node among equals. Gangs are placed whole, as a co-scheduling plug-in does.
//!
//! Source: the NodeResourcesFit plug-in. LeastAllocated scores the mean over CPU and memory of what would be left free;
//! with GPU bin-packing, MostAllocated scores the GPUs that would be in use instead.

use super::Promised;
use super::filter::allows;
use crate::sim::stage::Stage;
use crate::sim::stage::jobs::Place;
use crate::sim::stage::node::Node;
use drover_core::model::{Locality, Resources};

pub(super) fn place(stage: &mut Stage, packs: bool) -> bool {
    let mut started = false;
    for job in stage.jobs.queue() {
        if let Some(places) = places(stage, job, packs) {
            stage.start_job(job, &places);
            started = true;
        }
    }
    started
}

/// Where the whole job has room, unit by unit.
fn places(stage: &Stage, job: usize, packs: bool) -> Option<Vec<Place>> {
    let found = &stage.jobs.all[job];
    let open: Vec<usize> = stage
        .agents
        .values()
        .copied()
        .filter(|at| {
            let node = &stage.nodes[*at];
            node.is_open() && allows(&found.constraints, node)
        })
        .collect();
    let mut near = domains(stage, &open, found.locality);
    // The domain with the most nodes first: a gang has the best chance there.
    near.sort_by_key(|nodes| std::cmp::Reverse(nodes.len()));
    near.into_iter()
        .find_map(|nodes| within(stage, job, &nodes, packs))
}

/// Nodes that are near enough to each other.
fn domains(stage: &Stage, open: &[usize], locality: Locality) -> Vec<Vec<usize>> {
    let name = |at: usize| {
        let node = &stage.nodes[at];
        match locality {
            Locality::Node => node.id.to_string(),
            Locality::Pool => node.pool.to_string(),
            Locality::Zone => node.zone.clone(),
            Locality::Site => node.region.clone(),
            Locality::Any => String::new(),
        }
    };
    let mut all: std::collections::BTreeMap<String, Vec<usize>> = std::collections::BTreeMap::new();
    for at in open {
        all.entry(name(*at)).or_default().push(*at);
    }
    all.into_values().collect()
}

fn within(stage: &Stage, job: usize, nodes: &[usize], packs: bool) -> Option<Vec<Place>> {
    let found = &stage.jobs.all[job];
    let mut promised = Promised::default();
    let mut here = vec![0_u32; nodes.len()];
    let limit = match found.constraints.max_per_node {
        0 => u32::MAX,
        most => most,
    };
    let mut have = 0;
    for _ in 0..found.units {
        let fits = |n: &usize| here[*n] < limit && promised.room(stage, job, nodes[*n], false) > 0;
        let best = (0..nodes.len()).filter(fits).max_by_key(|n| {
            let node = &stage.nodes[nodes[*n]];
            let more = found.unit.scaled(here[*n] + 1);
            (score(node, &more, packs), std::cmp::Reverse(nodes[*n]))
        });
        let Some(best) = best else { break };
        here[best] += 1;
        have += 1;
        promised.0.push(Place {
            node: nodes[best],
            units: 1,
            rest: false,
        });
    }
    if have < found.min_units {
        return None;
    }
    if let Some(rest) = &found.rest {
        let fits = |at: &&usize| promised.room(stage, job, **at, true) > 0;
        let best = nodes.iter().filter(fits).max_by_key(|at| {
            let score = score(&stage.nodes[**at], rest, packs);
            (score, std::cmp::Reverse(**at))
        })?;
        promised.0.push(Place {
            node: *best,
            units: 1,
            rest: true,
        });
    }
    Some(promised.0)
}

/// 0 to 100,000.
fn score(node: &Node, more: &Resources, packs: bool) -> u64 {
    let free = node.free();
    let share = |free: u64, wanted: u64, total: u64| {
        (free.saturating_sub(wanted).saturating_mul(100_000))
            .checked_div(total)
            .unwrap_or(0)
    };
    if packs && more.gpus > 0 {
        let total = u64::from(node.allocatable.gpus);
        return 100_000 - share(free.gpus.into(), more.gpus.into(), total).min(100_000);
    }
    let cpu = share(free.cpu.0, more.cpu.0, node.allocatable.cpu.0);
    let memory = share(
        free.memory.0 >> 20,
        more.memory.0 >> 20,
        node.allocatable.memory.0 >> 20,
    );
    cpu.midpoint(memory)
}
