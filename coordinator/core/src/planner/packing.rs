//! The two packings of `grow`: first fit decreasing, and greedy by price per value; and how they compare. Works on a
//! `Packing`, never on the run's state.

use super::grow::{Allow, Packing};
use super::ledger::Ledger;
use super::offers::Offer;
use super::state::{Group, Work};
use crate::model::{Class, Resources};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Scale of the value of a unit: micro-USD in 32.32 fixed point.
const VALUE_SHIFT: u32 = 32;

/// Tier, price per value, rank, index: less is better.
type OfferKey = (u8, Ratio, u32, usize);

pub(super) struct Context<'w, 'a> {
    work: &'w Work<'a>,
    order: &'w [usize],
    allow: Allow<'w>,
    /// Offers that may be asked now, with their index.
    pub offers: Vec<(usize, &'w Offer<'a>)>,
    /// Offers that carry the same at the same price (zones and markets of one type), as lists of indices into `offers`.
    twins: Vec<Vec<usize>>,
    /// Value of one unit per entry of `order`: the least it can cost.
    value: Vec<u128>,
}

/// May nodes of the offer be opened for units of the class? Units without GPUs open no nodes with GPUs while the fleet
/// has an offering without that could serve them, full or not (SC-79): they may still fill holes.
pub(super) fn may_open(work: &Work<'_>, class: usize, offer: &Offer<'_>) -> bool {
    work.matches(class, offer.kind)
        && !(work.plain[class] && offer.alloc.as_ref().is_some_and(|a| a.gpus > 0))
}

/// Units of a class that one node of the group still takes.
pub(super) fn room_in(work: &Work<'_>, group: &Group, index: usize) -> u32 {
    let class = &work.input.classes[index];
    if class.unit.gpus > group.free.gpus || group.whole || class.whole_node {
        return 0;
    }
    if !work.matches(index, work.offers[group.offer].kind) {
        return 0;
    }
    let fits = class.unit.times(&group.free);
    match class.constraints.max_per_node {
        0 => fits,
        most => {
            let here: u32 = group
                .placed
                .iter()
                .filter(|p| p.0 == index)
                .map(|p| p.1)
                .sum();
            fits.min(most.saturating_sub(here))
        }
    }
}

/// Groups offers that no packing of these classes can tell apart but by their limits.
fn twins(work: &Work<'_>, order: &[usize], offers: &[(usize, &Offer<'_>)]) -> Vec<Vec<usize>> {
    let mut welcome: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for (_, offer) in offers {
        welcome.entry(offer.kind).or_insert_with(|| {
            let each = order.iter().map(|c| work.matches(*c, offer.kind));
            each.collect()
        });
    }
    let mut index = BTreeMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (at, (_, offer)) in offers.iter().enumerate() {
        let key = (
            (offer.tier, offer.price, work.input.pools[offer.pool].rank),
            &offer.alloc,
            &welcome[&offer.kind],
        );
        let slot = *index.entry(key).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[slot].push(at);
    }
    all
}

impl<'w, 'a> Context<'w, 'a> {
    pub fn new(work: &'w Work<'a>, order: &'w [usize], ledger: &Ledger, allow: Allow<'w>) -> Self {
        let offers: Vec<(usize, &Offer<'a>)> = work
            .offers
            .iter()
            .enumerate()
            .filter(|(i, o)| allow(*i, o) && ledger.room(&work.offers, *i) > 0)
            .collect();
        let least = |class: usize, paid: bool| {
            offers
                .iter()
                .filter(|(_, o)| (!paid || o.tier == 2) && may_open(work, class, o))
                .filter_map(|(_, o)| {
                    (u128::from(o.price.max(1)) << VALUE_SHIFT)
                        .checked_div(u128::from(o.times(&work.input.classes[class])))
                })
                .min()
        };
        let value = order
            .iter()
            .map(|c| {
                least(*c, true)
                    .or_else(|| least(*c, false))
                    .unwrap_or(0)
                    .max(1)
            })
            .collect();
        Self {
            work,
            order,
            allow,
            twins: twins(work, order, &offers),
            offers,
            value,
        }
    }

    fn class(&self, i: usize) -> &'a Class {
        &self.work.input.classes[self.order[i]]
    }

    /// Units of entry `i` that one node of the group still takes.
    pub fn room_in(&self, group: &Group, i: usize) -> u32 {
        if (self.allow)(group.offer, &self.work.offers[group.offer]) {
            room_in(self.work, group, self.order[i])
        } else {
            0
        }
    }

    pub fn put(&self, group: &mut Group, i: usize, units: u32) {
        let class = self.class(i);
        if class.whole_node {
            group.free = Resources::default();
            group.whole = true;
        } else {
            group.free = group.free.minus(&class.unit.scaled(units));
        }
        group.placed.push((self.order[i], units));
    }

    /// Puts units of entry `i` into open nodes, first opened first, splitting groups that fill in part.
    fn fill_open(&self, p: &mut Packing, i: usize) {
        let mut g = 0;
        while g < p.groups.len() && p.left[i] > 0 {
            let each = self.room_in(&p.groups[g], i);
            if each == 0 {
                g += 1;
                continue;
            }
            let full = (p.left[i] / each).min(p.groups[g].nodes);
            let mut pieces = Vec::new();
            let mut rest = p.groups[g].nodes - full;
            if full > 0 {
                let mut piece = Group {
                    nodes: full,
                    ..p.groups[g].clone()
                };
                self.put(&mut piece, i, each);
                p.left[i] -= each * full;
                pieces.push(piece);
            }
            if rest > 0 && p.left[i] > 0 {
                let mut piece = Group {
                    nodes: 1,
                    ..p.groups[g].clone()
                };
                let last = p.left[i].min(each);
                self.put(&mut piece, i, last);
                p.left[i] -= last;
                rest -= 1;
                pieces.push(piece);
            }
            if rest > 0 {
                pieces.push(Group {
                    nodes: rest,
                    ..p.groups[g].clone()
                });
            }
            let many = pieces.len();
            p.groups.splice(g..=g, pieces);
            if g < p.fresh {
                p.fresh += many - 1;
            }
            g += many;
        }
    }

    pub fn open(&self, p: &mut Packing, offer: usize, nodes: u32, placed: &[(usize, u32)]) {
        let alloc = self.work.offers[offer].alloc.clone().unwrap_or_default();
        let mut group = Group {
            offer,
            nodes,
            free: alloc,
            whole: false,
            placed: Vec::new(),
            origin: None,
        };
        for (i, units) in placed {
            self.put(&mut group, *i, *units);
            p.left[*i] -= units * nodes;
        }
        p.ledger.take(&self.work.offers, offer, nodes);
        p.groups.push(group);
    }

    /// First fit decreasing, opening the type that is cheapest per unit.
    pub fn first_fit(&self, mut p: Packing) -> Packing {
        for i in 0..self.order.len() {
            self.fill_open(&mut p, i);
            while p.left[i] > 0 {
                let best = self
                    .offers
                    .iter()
                    .filter(|(o, offer)| {
                        may_open(self.work, self.order[i], offer)
                            && p.ledger.room(&self.work.offers, *o) > 0
                    })
                    .filter_map(|(o, offer)| {
                        let times = offer.times(self.class(i));
                        let each = (u128::from(offer.price.max(1)) << VALUE_SHIFT)
                            .checked_div(u128::from(times))?;
                        Some(((offer.tier, each, self.rank(offer), offer.price, *o), times))
                    })
                    .min();
                let Some(((.., offer), times)) = best else {
                    break;
                };
                let room = p.ledger.room(&self.work.offers, offer);
                let full = (p.left[i] / times).min(room);
                if full > 0 {
                    self.open(&mut p, offer, full, &[(i, times)]);
                } else {
                    let last = p.left[i].min(times);
                    self.open(&mut p, offer, 1, &[(i, last)]);
                }
            }
        }
        p
    }

    /// Whole nodes at the best price for what they carry, the largest unit first.
    pub fn greedy(&self, mut p: Packing) -> Packing {
        for i in 0..self.order.len() {
            self.fill_open(&mut p, i);
        }
        for lead in 0..self.order.len() {
            while p.left[lead] > 0 {
                let mut best: Option<(OfferKey, Vec<(usize, u32)>)> = None;
                for twins in &self.twins {
                    // Of twins the first that may still be asked.
                    let first = twins
                        .iter()
                        .map(|at| &self.offers[*at])
                        .find(|(o, _)| p.ledger.room(&self.work.offers, *o) > 0);
                    let Some((o, offer)) = first else { continue };
                    let Some((value, placed)) = self.pattern(&p, lead, offer) else {
                        continue;
                    };
                    let ratio = Ratio {
                        price: u128::from(offer.price.max(1)),
                        value,
                    };
                    let key = (offer.tier, ratio, self.rank(offer), *o);
                    if best.as_ref().is_none_or(|(have, _)| key < *have) {
                        best = Some((key, placed));
                    }
                }
                let Some(((.., offer), placed)) = best else {
                    break;
                };
                let mut nodes = p.ledger.room(&self.work.offers, offer);
                for (i, units) in &placed {
                    nodes = nodes.min(p.left[*i] / units);
                }
                self.open(&mut p, offer, nodes.max(1), &placed);
            }
        }
        p
    }

    /// What one node of the offer would carry, led by entry `lead`, and its value.
    fn pattern(
        &self,
        p: &Packing,
        lead: usize,
        offer: &Offer<'a>,
    ) -> Option<(u128, Vec<(usize, u32)>)> {
        let alloc = offer.alloc.as_ref()?;
        let mut node = Group {
            offer: 0,
            nodes: 1,
            free: alloc.clone(),
            whole: false,
            placed: Vec::new(),
            origin: None,
        };
        let mut placed = Vec::new();
        let mut value: u128 = 0;
        for i in lead..self.order.len() {
            let allowed = if i == lead {
                may_open(self.work, self.order[i], offer)
            } else {
                self.work.matches(self.order[i], offer.kind)
            };
            if p.left[i] == 0 || node.whole || !allowed {
                continue;
            }
            let class = self.class(i);
            let fits = if class.whole_node {
                u32::from(i == lead && class.unit.fits(alloc))
            } else {
                let fits = class.unit.times(&node.free);
                if class.constraints.max_per_node == 0 {
                    fits
                } else {
                    fits.min(class.constraints.max_per_node)
                }
            };
            let n = fits.min(p.left[i]);
            if n == 0 {
                if i == lead {
                    return None;
                }
                continue;
            }
            self.put(&mut node, i, n);
            value = value.saturating_add(self.value[i].saturating_mul(u128::from(n)));
            placed.push((i, n));
        }
        (!placed.is_empty()).then_some((value.max(1), placed))
    }

    /// Swaps the type of opened nodes for the cheapest that carries the same.
    pub fn right_size(&self, p: &mut Packing) {
        let mut g = p.fresh;
        while g < p.groups.len() {
            let group = &p.groups[g];
            let have = &self.work.offers[group.offer];
            let Some(alloc) = &have.alloc else { break };
            let used = alloc.minus(&group.free);
            let better = self
                .offers
                .iter()
                .filter(|(o, offer)| {
                    (offer.tier, offer.price) < (have.tier, have.price)
                        && p.ledger.room(&self.work.offers, *o) > 0
                        && group.placed.iter().all(|(c, _)| {
                            let class = &self.work.input.classes[*c];
                            (may_open(self.work, *c, offer)
                                || alloc.gpus > 0 && self.work.matches(*c, offer.kind))
                                && (!class.whole_node || offer.times(class) > 0)
                        })
                        && offer
                            .alloc
                            .as_ref()
                            .is_some_and(|a| group.whole || used.fits(a))
                })
                .min_by_key(|(o, offer)| (offer.tier, offer.price, self.rank(offer), *o));
            let Some((offer, to)) = better else {
                g += 1;
                continue;
            };
            let n = p.ledger.room(&self.work.offers, *offer).min(group.nodes);
            let free = match &to.alloc {
                Some(a) if !group.whole => a.minus(&used),
                _ => Resources::default(),
            };
            let moved = Group {
                offer: *offer,
                nodes: n,
                free,
                ..group.clone()
            };
            p.ledger.give_back(&self.work.offers, group.offer, n);
            p.ledger.take(&self.work.offers, *offer, n);
            p.groups[g].nodes -= n;
            if p.groups[g].nodes == 0 {
                p.groups[g] = moved;
            } else {
                p.groups.push(moved);
            }
        }
    }

    pub fn rank(&self, offer: &Offer<'_>) -> u32 {
        self.work.input.pools[offer.pool].rank
    }

    /// Less is better: who stays without (largest first), cost, nodes, then the larger hole.
    pub fn score(&self, p: &Packing) -> Score {
        let mut score = Score {
            left: p.left.clone(),
            ..Score::default()
        };
        let mut hole = (0, 0, 0);
        for group in &p.groups[p.fresh..] {
            let price = self.work.offers[group.offer].price;
            score.cost = score
                .cost
                .saturating_add(price.saturating_mul(u64::from(group.nodes)));
            score.nodes = score.nodes.saturating_add(group.nodes);
            hole = hole.max((group.free.gpus, group.free.cpu.0, group.free.memory.0));
        }
        score.hole = Reverse(hole);
        score
    }
}

/// Field order is the order of importance.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    left: Vec<u32>,
    cost: u64,
    nodes: u32,
    hole: Reverse<(u32, u64, u64)>,
}

/// Price per value, compared without dividing.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    price: u128,
    value: u128,
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ratio {}
impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // price < 2^64 and value < 2^128: compared as price / value with a common shift against overflow.
        let bits = self.value.max(other.value).checked_ilog2().unwrap_or(0);
        let shift = bits.saturating_sub(62);
        let left = self.price.saturating_mul(other.value >> shift);
        let right = other.price.saturating_mul(self.value >> shift);
        left.cmp(&right)
    }
}
