//! A model of Cluster Autoscaler by its documentation, with its defaults: a scan each 10 s; pods that are older than 2 s
//! (30 s if they want a GPU); first-fit-decreasing estimate per group, an expander chooses one group a scan; 15 min until
//! a request counts as failed, then 5 to 30 min of back-off, forgotten after 3 h; a node goes that was unneeded for 10 min,
//! not within 10 min of an addition or 3 min of a failure, at most 10 a scan.
//!
//! Used by `cluster`. Only empty nodes are unneeded: batch jobs carry `safe-to-evict: false`.

use super::cluster::{Autoscaler, Cluster};
use crate::sim::offered::{Offered, Part, ratio};
use crate::world::generator::Generator;
use drover_core::model::{Constraints, Millis, Resources};

const SCAN: Millis = Millis::seconds(10);
const NEW_POD: Millis = Millis::seconds(2);
const NEW_GPU_POD: Millis = Millis::seconds(30);
const UNNEEDED: Millis = Millis::minutes(10);
const AFTER_ADD: Millis = Millis::minutes(10);
const AFTER_FAILURE: Millis = Millis::minutes(3);
const PROVISION: Millis = Millis::minutes(15);
const BACK_OFF: Millis = Millis::minutes(5);
const MOST_BACK_OFF: Millis = Millis::minutes(30);
const BACK_OFF_RESET: Millis = Millis::minutes(180);
const MOST_REMOVED: usize = 10;
const MOST_ADDED: usize = 1_000;

/// Which group grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expander {
    /// Any that helps (the default).
    Random,
    /// That which leaves the least CPU and memory unused.
    LeastWaste,
}

#[derive(Debug, Clone, Copy, Default)]
struct Failed {
    at: Millis,
    pause: Millis,
}

/// Its memory.
pub(super) struct Loop {
    expander: Expander,
    lot: Generator,
    added: Option<Millis>,
    failed: Vec<Option<Failed>>,
}

/// Nodes that a group would add, for people's pods.
struct Choice {
    kind: usize,
    nodes: Vec<Resources>,
}

impl Loop {
    pub fn new(expander: Expander, kinds: usize, seed: u64) -> Self {
        Self {
            expander,
            lot: Generator::new(seed ^ 0xCA),
            added: None,
            failed: vec![None; kinds],
        }
    }

    fn may_remove_at(&self) -> Millis {
        let failed = self.failed.iter().flatten().map(|failed| failed.at).max();
        let after = |at: Option<Millis>, span: Millis| at.map_or(0, |at| at.0 + span.0);
        Millis(after(self.added, AFTER_ADD).max(after(failed, AFTER_FAILURE)))
    }

    fn give_up(&mut self, cluster: &mut Cluster<'_>, now: Millis) {
        let mut kinds = Vec::new();
        cluster.waiting.retain(|ask| {
            let over = now.0 >= ask.asked.0 + PROVISION.0;
            if over && !kinds.contains(&ask.kind) {
                kinds.push(ask.kind);
            }
            !over
        });
        for kind in kinds {
            let pause = match self.failed[kind] {
                Some(last) if now.0 - last.at.0 < BACK_OFF_RESET.0 => {
                    Millis((last.pause.0 * 2).min(MOST_BACK_OFF.0))
                }
                _ => BACK_OFF,
            };
            self.failed[kind] = Some(Failed { at: now, pause });
        }
    }

    fn backs_off(&self, kind: usize, now: Millis) -> bool {
        self.failed[kind].is_some_and(|failed| now.0 < failed.at.0 + failed.pause.0)
    }

    fn grow(&mut self, cluster: &mut Cluster<'_>, now: Millis) {
        let wanted = unplaced(cluster, now);
        if wanted.is_empty() {
            return;
        }
        let choices: Vec<Choice> = (0..cluster.fleet.offered.len())
            .filter(|kind| !self.backs_off(*kind, now))
            .filter_map(|kind| estimate(cluster, kind, &wanted))
            .collect();
        let best = match self.expander {
            Expander::Random => choices,
            Expander::LeastWaste => least_wasted(choices, cluster.fleet.offered),
        };
        let pick = self.lot.below(best.len() as u64);
        let Some(choice) = usize::try_from(pick).ok().and_then(|at| best.get(at)) else {
            return;
        };
        for _ in &choice.nodes {
            cluster.ask(choice.kind, now);
        }
        self.added = Some(now);
    }

    fn shrink(&self, cluster: &mut Cluster<'_>, now: Millis) {
        if now < self.may_remove_at() {
            return;
        }
        let gone: Vec<u32> = cluster
            .fleet
            .live
            .iter()
            .copied()
            .filter(|node| unneeded_at(cluster, *node).is_some_and(|at| at <= now))
            .take(MOST_REMOVED)
            .collect();
        for node in gone {
            cluster.fleet.close(node, now);
        }
    }
}

impl Autoscaler for Loop {
    fn next(&self, cluster: &Cluster<'_>, now: Millis) -> Option<Millis> {
        let scan = Millis((now.0 / SCAN.0 + 1) * SCAN.0);
        if !cluster.pending.is_empty() || !cluster.waiting.is_empty() {
            return Some(scan);
        }
        let first = cluster
            .fleet
            .live
            .iter()
            .filter_map(|node| unneeded_at(cluster, *node))
            .min()?;
        let at = first.max(self.may_remove_at());
        Some(scan.max(Millis(at.0.div_ceil(SCAN.0) * SCAN.0)))
    }

    fn look(&mut self, cluster: &mut Cluster<'_>, now: Millis) {
        self.give_up(cluster, now);
        self.grow(cluster, now);
        self.shrink(cluster, now);
    }
}

/// From when on an empty node may go: the first scan that sees it empty, and 10 min.
fn unneeded_at(cluster: &Cluster<'_>, node: u32) -> Option<Millis> {
    let at = cluster.fleet.node(node);
    let seen = at.idle_since.max(at.ready).0.div_ceil(SCAN.0) * SCAN.0;
    (at.parts == 0).then_some(Millis(seen + UNNEEDED.0))
}

/// Parts of jobs that are old enough and fit neither what is there nor what comes.
fn unplaced<'c>(cluster: &'c Cluster<'_>, now: Millis) -> Vec<(&'c Part, &'c Constraints)> {
    let mut nodes: Vec<(usize, Resources)> = cluster
        .fleet
        .live
        .iter()
        .map(|node| cluster.fleet.node(*node))
        .map(|node| (node.kind, node.free.clone()))
        .collect();
    nodes.extend(cluster.waiting.iter().map(|ask| {
        let all = cluster.fleet.offered[ask.kind].allocatable.clone();
        (ask.kind, all)
    }));
    let mut left = Vec::new();
    for job in &cluster.pending {
        let stated = &cluster.trace.jobs[*job];
        let parts = &cluster.parts[*job];
        let gpu = parts.iter().any(|part| part.need.gpus > 0);
        let least = if gpu { NEW_GPU_POD } else { NEW_POD };
        if now.0 - stated.submit.0 < least.0 {
            continue;
        }
        for part in parts {
            let room = nodes.iter_mut().find(|(kind, free)| {
                let offered = &cluster.fleet.offered[*kind];
                fits(part, free, &offered.allocatable) && offered.allows(&stated.constraints)
            });
            match room {
                Some((_, free)) => take(part, free),
                None => left.push((part, &stated.constraints)),
            }
        }
    }
    left
}

/// First fit decreasing into nodes of one kind.
fn estimate(
    cluster: &Cluster<'_>,
    kind: usize,
    wanted: &[(&Part, &Constraints)],
) -> Option<Choice> {
    let offered = &cluster.fleet.offered[kind];
    let room = offered
        .most
        .map_or(MOST_ADDED, |most| {
            most.saturating_sub(cluster.count(kind)) as usize
        })
        .min(MOST_ADDED);
    let mut parts: Vec<&Part> = wanted
        .iter()
        .filter(|(part, constraints)| offered.holds(part, constraints))
        .map(|(part, _)| *part)
        .collect();
    let all = &offered.allocatable;
    let size = |part: &Part| {
        ratio(part.need.cpu.0, all.cpu.0.max(1)) + ratio(part.need.memory.0, all.memory.0.max(1))
    };
    parts.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut nodes: Vec<Resources> = Vec::new();
    for part in parts {
        if let Some(free) = nodes.iter_mut().find(|free| fits(part, free, all)) {
            take(part, free);
        } else if nodes.len() < room {
            let mut free = all.clone();
            take(part, &mut free);
            nodes.push(free);
        }
    }
    (!nodes.is_empty()).then_some(Choice { kind, nodes })
}

fn least_wasted(choices: Vec<Choice>, offered: &[Offered]) -> Vec<Choice> {
    let waste = |choice: &Choice| {
        let all = &offered[choice.kind].allocatable;
        let count = choice.nodes.len() as u64;
        let cpu: u64 = choice.nodes.iter().map(|free| free.cpu.0).sum();
        let memory: u64 = choice.nodes.iter().map(|free| free.memory.0).sum();
        ratio(cpu, (all.cpu.0 * count).max(1)) + ratio(memory, (all.memory.0 * count).max(1))
    };
    let least = choices.iter().map(waste).fold(f64::INFINITY, f64::min);
    choices
        .into_iter()
        .filter(|choice| waste(choice) <= least)
        .collect()
}

/// Does a part fit what is left of a node? A whole-node part wants it untouched.
pub(super) fn fits(part: &Part, free: &Resources, all: &Resources) -> bool {
    part.need.fits(free) && (!part.whole || free == all)
}

/// Takes it.
pub(super) fn take(part: &Part, free: &mut Resources) {
    *free = if part.whole {
        Resources::default()
    } else {
        free.minus(&part.need)
    };
}
