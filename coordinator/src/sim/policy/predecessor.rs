//! A model of kubernetes-ec2-autoscaler v1.6.0 with its defaults: a loop each 60 s; groups by type priority, then name;
//! first fit in no order into empty nodes, five nodes more with every growth; a node goes when it is older than 3,300 s
//! (the first five idle ones of a type: 7 days), not in the first half of a billed hour, in two steps, and not at all when
//! more than a tenth would go at once.
//!
//! Used by `cluster`. Its drain of running pods is left out (its own default since 2018: utilisation 0).

use super::cluster::{Autoscaler, Cluster};
use super::cluster_autoscaler::{fits, take};
use crate::sim::offered::Part;
use drover_core::model::{Constraints, Millis, Resources};
use std::collections::BTreeMap;

const SLEEP: Millis = Millis::seconds(60);
const OVER_PROVISION: usize = 5;
const IDLE: Millis = Millis::seconds(3_300);
const TYPE_IDLE: Millis = Millis::minutes(7 * 24 * 60);
const KEPT_PER_TYPE: usize = 5;
const HOUR: Millis = Millis::minutes(60);
const LAUNCH_HOUR: Millis = Millis::seconds(1_800);
const INSTANCE_INIT: Millis = Millis::seconds(1_500);
/// One node in so many may go in one loop.
const BRAKE: usize = 10;

/// It remembers nothing.
#[derive(Debug)]
pub(super) struct Loop {
    /// Removes nothing when too much could go. Once more than a tenth is idle, that is for ever.
    pub brake: bool,
}

impl Autoscaler for Loop {
    fn next(&self, cluster: &Cluster<'_>, now: Millis) -> Option<Millis> {
        let awake = !cluster.pending.is_empty()
            || !cluster.waiting.is_empty()
            || cluster
                .fleet
                .live
                .iter()
                .any(|node| cluster.fleet.node(*node).parts == 0);
        awake.then(|| Millis((now.0 / SLEEP.0 + 1) * SLEEP.0))
    }

    fn look(&mut self, cluster: &mut Cluster<'_>, now: Millis) {
        // A failed activity: the group's desired size is lowered, and it has no room in this loop.
        let failed: Vec<usize> = cluster.waiting.drain(..).map(|ask| ask.kind).collect();
        grow(cluster, &failed, now);
        maintain(cluster, now, self.brake);
    }
}

/// Types in the order in which they are tried.
fn order(cluster: &Cluster<'_>) -> Vec<usize> {
    let offered = cluster.fleet.offered;
    let priority = |name: &str| match name {
        "g2.8xlarge" => 2,
        _ if name.starts_with("m4.") => 0,
        _ => 10,
    };
    let mut kinds: Vec<usize> = (0..offered.len()).collect();
    kinds.sort_by_key(|kind| {
        let name = &offered[*kind].name;
        (priority(name), name.clone(), *kind)
    });
    kinds
}

fn grow(cluster: &mut Cluster<'_>, failed: &[usize], now: Millis) {
    let left = unplaced(cluster, now);
    let mut target: BTreeMap<usize, usize> = BTreeMap::new();
    for (constraints, mut parts) in left {
        for kind in order(cluster) {
            let offered = &cluster.fleet.offered[kind];
            let (mine, others): (Vec<Part>, Vec<Part>) = parts
                .into_iter()
                .partition(|part| !failed.contains(&kind) && offered.holds(part, &constraints));
            parts = others;
            if mine.is_empty() {
                continue;
            }
            let registered = registered(cluster, kind, now);
            let room = offered.most.map_or(usize::MAX, |most| {
                (most as usize).saturating_sub(registered)
            });
            let (units, over) = units(mine, &offered.allocatable, room);
            parts.extend(over);
            let want = registered + (units + OVER_PROVISION).min(room);
            // Two sets of selectors on one group: the larger target wins.
            let slot = target.entry(kind).or_default();
            *slot = (*slot).max(want);
            uncordon(cluster, kind, units);
        }
    }
    for (kind, target) in target {
        for _ in (cluster.count(kind) as usize)..target {
            cluster.ask(kind, now);
        }
    }
}

/// Parts that no registered node has room for, by their constraints.
fn unplaced(cluster: &Cluster<'_>, now: Millis) -> BTreeMap<Constraints, Vec<Part>> {
    let fleet = &cluster.fleet;
    let mut nodes: Vec<(usize, Resources)> = fleet
        .live
        .iter()
        .map(|node| fleet.node(*node))
        .filter(|node| node.ready <= now && !node.cordoned)
        .map(|node| (node.kind, node.free.clone()))
        .collect();
    let mut left: BTreeMap<Constraints, Vec<Part>> = BTreeMap::new();
    for job in &cluster.pending {
        let constraints = &cluster.trace.jobs[*job].constraints;
        for part in &cluster.parts[*job] {
            let room = nodes.iter_mut().find(|(kind, free)| {
                let offered = &fleet.offered[*kind];
                fits(part, free, &offered.allocatable) && offered.allows(constraints)
            });
            match room {
                Some((_, free)) => take(part, free),
                None => left
                    .entry(constraints.clone())
                    .or_default()
                    .push(part.clone()),
            }
        }
    }
    left
}

/// Empty nodes that first fit needs, and what has no room in them.
fn units(parts: Vec<Part>, all: &Resources, room: usize) -> (usize, Vec<Part>) {
    let mut nodes: Vec<Resources> = Vec::new();
    let mut over = Vec::new();
    for part in parts {
        if let Some(free) = nodes.iter_mut().find(|free| fits(&part, free, all)) {
            take(&part, free);
        } else if nodes.len() < room {
            let mut free = all.clone();
            take(&part, &mut free);
            nodes.push(free);
        } else {
            over.push(part);
        }
    }
    (nodes.len(), over)
}

fn registered(cluster: &Cluster<'_>, kind: usize, now: Millis) -> usize {
    let fleet = &cluster.fleet;
    fleet
        .live
        .iter()
        .map(|node| fleet.node(*node))
        .filter(|node| node.kind == kind && node.ready <= now)
        .count()
}

fn uncordon(cluster: &mut Cluster<'_>, kind: usize, most: usize) {
    let fleet = &mut cluster.fleet;
    let nodes: Vec<u32> = fleet
        .live
        .iter()
        .copied()
        .filter(|node| fleet.node(*node).cordoned && fleet.node(*node).kind == kind)
        .take(most)
        .collect();
    for node in nodes {
        fleet.nodes[node as usize].cordoned = false;
    }
}

/// Steps of section "node states": the first that matches.
fn maintain(cluster: &mut Cluster<'_>, now: Millis, brake: bool) {
    let mut kept: BTreeMap<usize, usize> = BTreeMap::new();
    let mut gone = Vec::new();
    let nodes: Vec<u32> = cluster.fleet.live.iter().copied().collect();
    for number in nodes {
        let node = cluster.fleet.node(number);
        let launched = cluster.fleet.history.nodes[number as usize].launched;
        let age = Millis(now.0 - launched.0);
        if node.ready > now {
            if age >= INSTANCE_INIT {
                cluster.fleet.close(number, now);
            }
            continue;
        }
        let kind = node.kind;
        if node.parts > 0 {
            cluster.fleet.nodes[number as usize].cordoned = false;
            continue;
        }
        let offered = cluster.fleet.kind(number);
        let awaited = !node.cordoned
            && cluster
                .pending
                .iter()
                .any(|job| offered.allows(&cluster.trace.jobs[*job].constraints));
        if awaited || age.0 % HOUR.0 < LAUNCH_HOUR.0 {
            continue;
        }
        let places = kept.entry(kind).or_default();
        if *places < KEPT_PER_TYPE {
            if age < TYPE_IDLE {
                *places += 1;
                continue;
            }
        } else if age < IDLE {
            continue;
        }
        if node.cordoned {
            gone.push(number);
        } else {
            cluster.fleet.nodes[number as usize].cordoned = true;
        }
    }
    if !brake || gone.len() <= cluster.fleet.live.len().div_ceil(BRAKE) {
        for node in gone {
            cluster.fleet.close(node, now);
        }
    }
}
