//! Where the work of a node could go instead: on nodes that work already, or on one new node. Used by the strategies
//! that move work; it keeps the books of one run, so that no room is given twice. **Invariant:** only work that says that
//! it can move, and only to places that look alike in all that the work may have asked for.

use super::super::state::Work;
use super::super::supply::{At, Tier, takes_work};
use super::alike::Alike;
use crate::model::{Busy, MicroUsd, NodeInput, OfferingId, Resources};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// (Node, place) looks of one run at most: consolidation is no reason for a slow plan.
const LOOKS: usize = 4_000_000;

/// What a new node for the work may cost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// At most what the old one costs.
    NoDearer,
    /// Less.
    Cheaper,
}

/// What moving a node's work would give.
pub(super) struct Moved {
    /// Per hour.
    pub saves: MicroUsd,
    /// The new node that it needs.
    pub by: Option<OfferingId>,
}

/// Room taken, per bin.
type Takes = BTreeMap<usize, Resources>;

/// Alike units, and how many.
type Units = Vec<(Resources, u32)>;

/// Room that was given to moved work in this run.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// Nodes that go: nobody's new home.
    pub gone: BTreeSet<usize>,
    begun: bool,
    /// Existing places in order of use.
    order: Vec<usize>,
    /// Room taken, per bin.
    taken: Takes,
    /// Nodes counted on, per offer.
    opened: BTreeMap<usize, u32>,
    looks: usize,
}

/// Every workload of the node says that it can move, the policy wants it moved, and nothing else holds the node. Work
/// with ports, with rules about its neighbours or with a share of a GPU is left where it is.
pub(super) fn movable(work: &Work<'_>, node: &NodeInput) -> bool {
    work.input.policy.consolidate
        && matches!(node.busy, Busy::Working { movable: true, .. })
        && takes_work(node)
        && node.reserved.is_empty()
        && node.gpu_shares.is_empty()
        && node.workloads.iter().all(|w| {
            w.movable
                && w.unit.gpu_milli == 0
                && w.host_ports.is_empty()
                && w.anti_affinity.is_empty()
        })
}

impl Elsewhere {
    /// Finds new places for all work of a node and takes them; none: it must stay.
    pub fn move_work(&mut self, work: &Work<'_>, node: usize, limit: Limit) -> Option<Moved> {
        self.begin(work);
        let own = *work.bin_of_node.get(&node)?;
        // Who got moved work in this run is not moved on.
        if self.taken.contains_key(&own) {
            return None;
        }
        let old = &work.input.nodes[node];
        let (takes, left) = self.existing(work, node)?;
        if !self.headroom_stays(work, node, &takes) {
            return None;
        }
        if left.is_empty() {
            self.take(takes);
            return Some(Moved {
                saves: old.price,
                by: None,
            });
        }
        let rest = left
            .iter()
            .fold(Resources::default(), |sum, (u, n)| sum.plus(&u.scaled(*n)));
        let offer = self.offer(work, node, &rest, limit)?;
        *self.opened.entry(offer).or_insert(0) += 1;
        self.take(takes);
        let new = &work.offers[offer];
        Some(Moved {
            saves: old.price.minus(MicroUsd(new.price)),
            by: Some(new.id.clone()),
        })
    }

    /// Once: the order of places, and the room that work on its way out of other nodes was promised.
    fn begin(&mut self, work: &Work<'_>) {
        if self.begun {
            return;
        }
        self.begun = true;
        self.order = order(work);
        for (n, node) in work.input.nodes.iter().enumerate() {
            let ours = node.drain.as_ref().is_some_and(|d| d.own_idle);
            let moving = matches!(node.busy, Busy::Working { movable: true, .. });
            if ours
                && moving
                && let Some((takes, _)) = self.existing(work, n)
            {
                self.take(takes);
            }
        }
    }

    /// Room on nodes that exist for as much of a node's work as fits, and what is left of it; none: too many looks.
    fn existing(&mut self, work: &Work<'_>, node: usize) -> Option<(Takes, Units)> {
        let mut left = units(&work.input.nodes[node]);
        let mut takes = Takes::new();
        for at in 0..self.order.len() {
            if left.is_empty() {
                break;
            }
            self.looks += 1;
            if self.looks > LOOKS {
                return None;
            }
            let b = self.order[at];
            let Some(mut free) = self.room(work, node, b) else {
                continue;
            };
            for (unit, count) in &mut left {
                let n = unit.times(&free).min(*count);
                if n > 0 {
                    let all = unit.scaled(n);
                    free = free.minus(&all);
                    let slot = takes.entry(b).or_default();
                    *slot = slot.plus(&all);
                    *count -= n;
                }
            }
            left.retain(|(_, count)| *count > 0);
        }
        Some((takes, left))
    }

    /// What nodes that stay have left is still enough for the headroom: else it would be bought again at once.
    fn headroom_stays(&self, work: &Work<'_>, node: usize, takes: &Takes) -> bool {
        work.input.policy.headroom.iter().all(|headroom| {
            let mut missing = headroom.count;
            for (b, bin) in work.bins.iter().enumerate() {
                let At::Node(n) = bin.at else { continue };
                let stays = bin.tier == Tier::Ready && !bin.would && n != node;
                if missing == 0 || !stays || self.gone.contains(&n) {
                    continue;
                }
                if work.kinds[bin.kind].allows(&headroom.constraints) {
                    let free = self.free(work, b).unwrap_or_default();
                    let free = takes
                        .get(&b)
                        .map_or_else(|| free.clone(), |t| free.minus(t));
                    missing = missing.saturating_sub(headroom.unit.times(&free));
                }
            }
            missing == 0
        })
    }

    fn take(&mut self, takes: Takes) {
        for (b, amount) in takes {
            let slot = self.taken.entry(b).or_default();
            *slot = slot.plus(&amount);
        }
    }

    /// Room of a bin for the work of a node; none when it may not go there.
    fn room(&self, work: &Work<'_>, node: usize, b: usize) -> Option<Resources> {
        let bin = &work.bins[b];
        let At::Node(to) = bin.at else { return None };
        if to == node || self.gone.contains(&to) {
            return None;
        }
        let target = &work.input.nodes[to];
        // Whoever is there may want nobody else near.
        if target.workloads.iter().any(|w| !w.anti_affinity.is_empty()) {
            return None;
        }
        let place = Alike {
            zone: &target.zone,
            gpu_model: &target.gpu_model,
            labels: &target.labels,
            taints: &target.taints,
        };
        if !place.takes_from(&work.input.nodes[node]) {
            return None;
        }
        self.free(work, b)
    }

    /// What this run has left of a bin; none: a whole-node unit has all of it.
    fn free(&self, work: &Work<'_>, b: usize) -> Option<Resources> {
        let bin = &work.bins[b];
        let At::Node(n) = bin.at else { return None };
        let target = &work.input.nodes[n];
        let mut free = target.allocatable.minus(&target.used);
        for held in &target.reserved {
            free = free.minus(&held.amount);
        }
        let placed = bin.placed.iter().map(|put| (put.class, put.units));
        for (class, units) in placed.chain(bin.held.iter().copied()) {
            let class = &work.input.classes[class];
            if class.whole_node {
                return None;
            }
            free = free.minus(&class.unit.scaled(units));
        }
        Some(
            self.taken
                .get(&b)
                .map_or_else(|| free.clone(), |t| free.minus(t)),
        )
    }

    /// The cheapest offer whose one node holds the rest.
    fn offer(&self, work: &Work<'_>, node: usize, rest: &Resources, limit: Limit) -> Option<usize> {
        let old = &work.input.nodes[node];
        let all = work.offers.iter().enumerate().filter(|(o, offer)| {
            let pool = &work.input.pools[offer.pool];
            let Some(offering) = pool.offerings.iter().find(|x| x.id == *offer.id) else {
                return false;
            };
            let place = Alike {
                zone: &offering.zone,
                gpu_model: &offering.gpu_model,
                labels: &pool.labels,
                taints: &pool.taints,
            };
            let price = MicroUsd(offer.price);
            let cheap = match limit {
                Limit::NoDearer => price <= old.price,
                Limit::Cheaper => price < old.price,
            };
            // With those that come out of the same reservations.
            let shares = |x: usize| {
                let other = &work.offers[x].reserved;
                x == *o || offer.reserved.iter().any(|r| other.contains(r))
            };
            let opened = self.opened.iter().filter(|(x, _)| shares(**x));
            let asked: u32 = opened.map(|(_, n)| n).sum();
            cheap
                && offer.closed.is_none()
                && !offer.would
                && offer.probe.is_none()
                && offer.alloc.as_ref().is_some_and(|a| rest.fits(a))
                && work.ledger.room(&work.offers, *o) > asked
                && place.takes_from(old)
        });
        all.min_by_key(|(o, offer)| (offer.price, *o))
            .map(|(o, _)| o)
    }
}

/// Places for moved work: owned nodes first, then the fullest.
fn order(work: &Work<'_>) -> Vec<usize> {
    let bins = work.bins.iter().enumerate();
    let mut all: Vec<_> = bins
        .filter_map(|(b, bin)| {
            let At::Node(n) = bin.at else { return None };
            let open = bin.tier == Tier::Ready && !bin.would && bin.pool.is_some();
            let paid = work.input.nodes[n].price > MicroUsd::ZERO;
            // To fill an idle node that is paid for saves nothing.
            let fills = bin.idle && bin.placed.is_empty() && paid;
            (open && !fills).then_some((paid, bin.free.size.gpus, bin.free.size.cpu, b))
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(.., b)| b).collect()
}

/// All work of a node as units, the largest first. What nobody has listed goes as one piece.
fn units(node: &NodeInput) -> Units {
    let mut rest = node.used.clone();
    let mut all = Units::new();
    for running in node.workloads.iter().filter(|w| !w.unit.is_zero()) {
        rest = rest.minus(&running.unit.scaled(running.count));
        all.push((running.unit.clone(), running.count));
    }
    if !rest.is_zero() {
        all.push((rest, 1));
    }
    all.sort_by_key(|(unit, _)| Reverse((unit.gpus, unit.cpu, unit.memory)));
    all
}
