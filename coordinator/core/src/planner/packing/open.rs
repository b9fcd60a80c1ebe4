//! Opens new nodes: which offer is cheapest per unit, and which offers are the same but for their limits.

use super::{Context, Kinds, Packing, fits_new, may_open};
use crate::planner::near::{Content, Takes};
use crate::planner::size::Free;
use crate::planner::state::{Group, Work};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Scale of a price per unit: micro-USD in 32.32 fixed point.
const VALUE_SHIFT: u32 = 32;

/// What classes see of a kind of place: how it is paid, who may go there, how much each likes it, its domains.
type Sight = (u8, Vec<bool>, Vec<u32>, Vec<(Option<u32>, bool)>);

/// Offers that no packing of these classes can tell apart but by their limits: what a node gives and costs, who may go
/// there, the domains it is in.
pub(super) struct Twins {
    /// In order of use.
    pub offers: Vec<usize>,
    sight: usize,
}

/// All offers as twins, and per sight the twins that one node could be swapped among, cheapest first.
pub(super) fn twins(
    work: &Work<'_>,
    order: &[usize],
    offers: &[usize],
) -> (Vec<Twins>, Vec<Vec<usize>>) {
    let mut sights: BTreeMap<Sight, usize> = BTreeMap::new();
    let mut sight_of: BTreeMap<(usize, u8), usize> = BTreeMap::new();
    let hurried = order
        .iter()
        .any(|c| work.input.classes[*c].deadline.is_some());
    let mut index = BTreeMap::new();
    let mut all: Vec<Twins> = Vec::new();
    for o in offers {
        let offer = &work.offers[*o];
        let (kind, tier) = (offer.kind, offer.tier);
        let sight = *sight_of.entry((kind, tier)).or_insert_with(|| {
            let welcome = order.iter().map(|c| work.matches(*c, kind)).collect();
            let liked = order.iter().map(|c| work.weight(*c, kind));
            let liked = liked.skip_while(|w| *w == 0).collect();
            let next = sights.len();
            let sight = (tier, welcome, liked, work.near.domains(kind));
            *sights.entry(sight).or_insert(next)
        });
        let rank = work.input.pools[offer.pool].rank;
        // Who must start by a moment tells by the boot as well.
        let boot = hurried.then_some(offer.boot);
        let key = (offer.price, rank, sight, &offer.size, boot);
        let slot = *index.entry(key).or_insert_with(|| {
            all.push(Twins {
                offers: Vec::new(),
                sight,
            });
            all.len() - 1
        });
        all[slot].offers.push(*o);
    }
    let mut shelves: Vec<Vec<usize>> = vec![Vec::new(); sights.len()];
    // In the order of the key: cheapest first.
    for (_, slot) in index {
        shelves[all[slot].sight].push(slot);
    }
    (all, shelves)
}

/// A node's price by so many units, scaled; none without units.
pub(in crate::planner) fn per_unit(price: u64, units: u32) -> Option<u128> {
    let (price, units) = (price.max(1), u64::from(units));
    // Almost always small enough for the fast division.
    if price >> (64 - VALUE_SHIFT) == 0 {
        (price << VALUE_SHIFT).checked_div(units).map(u128::from)
    } else {
        (u128::from(price) << VALUE_SHIFT).checked_div(u128::from(units))
    }
}

/// Tier, price per unit, preference, rank, price, order: less is better.
type Key = (u8, u128, Reverse<i64>, u32, u64, usize);

/// An offer that could be opened for a class.
#[derive(Clone, Copy)]
struct Choice {
    offer: usize,
    /// Units on each node, and on all of them together.
    each: u32,
    total: u32,
    per_unit: u128,
}

impl Context<'_, '_> {
    /// Of each list of twins the first that may still be asked.
    pub(super) fn first_of(&self, p: &Packing, twins: &Twins) -> Option<usize> {
        let mut all = twins.offers.iter().copied();
        all.find(|o| p.ledger.room(&self.work.offers, *o) > 0)
    }

    /// Twins that a node of the offer could be swapped among.
    pub(super) fn shelf(&self, offer: usize) -> Option<&[usize]> {
        let at = self.twins_of.get(&offer)?;
        self.shelves.get(self.twins[*at].sight).map(Vec::as_slice)
    }

    /// Opens at most `nodes` nodes of the offer that is cheapest per unit, as many as are full, or one; returns units
    /// placed.
    pub(super) fn open_best(
        &self,
        p: &mut Packing,
        i: usize,
        kinds: Kinds<'_>,
        most: u32,
        nodes: u32,
    ) -> u32 {
        let cap = most.min(p.left[i]);
        self.work.effort.spend(self.shelves.len());
        let Some(choice) = self.cheapest(p, i, kinds) else {
            return 0;
        };
        // Who takes a whole node takes no node that carries others.
        let whole = self.work.input.classes[self.order[i]].whole_node;
        if p.may_enlarge && !whole {
            let units = self.enlarge(p, i, kinds, cap, choice.per_unit);
            if units > 0 {
                return units;
            }
        }
        let Choice {
            offer, each, total, ..
        } = choice;
        let n = cap.min(total);
        let room = p.ledger.room(&self.work.offers, offer);
        let full = (n / each).min(room).min(nodes);
        let (nodes, units) = if full > 0 { (full, each) } else { (1, n) };
        self.open(p, offer, nodes, &[(i, units)]);
        units * nodes
    }

    /// Tier and price per unit of what would be opened.
    pub(super) fn price_per_unit(
        &self,
        p: &Packing,
        i: usize,
        kinds: Kinds<'_>,
    ) -> Option<(u8, u128)> {
        let choice = self.cheapest(p, i, kinds)?;
        Some((self.work.offers[choice.offer].tier, choice.per_unit))
    }

    /// Of the twins of one sight the one that is cheapest per unit, at most `most` units a node; the same for all entries
    /// of one size.
    fn best_of_sight(&self, p: &Packing, i: usize, sight: usize, most: u32) -> Option<usize> {
        let class = self.order[i];
        let input = &self.work.input.classes[class];
        let want = (self.size_of[i], self.work.plain[class], input.whole_node);
        let key = (want, input.deadline, most, sight);
        let known = self.best.borrow().get(&key).copied();
        if let Some(at) = known {
            match at {
                Some(at) if self.first_of(p, &self.twins[at]).is_none() => {}
                known => return known,
            }
        }
        self.work.effort.spend(self.shelves[sight].len());
        let mut least: Option<(u128, u32, u64, usize, usize)> = None;
        for at in &self.shelves[sight] {
            let twins = &self.twins[*at];
            let offer = &self.work.offers[twins.offers[0]];
            // They become dearer, and no node takes more units than `most`.
            let at_best = per_unit(offer.price, most);
            if least.is_some_and(|(have, ..)| Some(have) < at_best) {
                break;
            }
            if !may_open(self.work, class, offer) {
                continue;
            }
            let units = fits_new(self.work, class, offer).min(most);
            let Some(per_unit) = per_unit(offer.price, units) else {
                continue;
            };
            if least.is_some_and(|(have, ..)| have < per_unit) {
                continue;
            }
            if let Some(first) = self.first_of(p, twins) {
                let found = (per_unit, self.rank(first), offer.price, first, *at);
                least = Some(least.map_or(found, |have: (u128, u32, u64, usize, usize)| {
                    have.min(found)
                }));
            }
        }
        let best = least.map(|(.., at)| at);
        self.best.borrow_mut().insert(key, best);
        best
    }

    /// By tier, price per unit, preference, rank, price, order.
    fn cheapest(&self, p: &Packing, i: usize, kinds: Kinds<'_>) -> Option<Choice> {
        let (work, class) = (self.work, self.order[i]);
        let touched = work.near.touches(class);
        let mut best: Option<(Key, Choice)> = None;
        for (sight, shelf) in self.shelves.iter().enumerate() {
            // All of a sight look alike to the class, and are in the same domains.
            let Some(any) = shelf.first() else { continue };
            let kind = work.offers[self.twins[*any].offers[0]].kind;
            if kinds.is_some_and(|kinds| !kinds.contains(&kind)) || !work.matches(class, kind) {
                continue;
            }
            let takes = if touched {
                self.on_new(p, class, kind)
            } else {
                Takes::ALL
            };
            let most = takes.each.min(takes.total);
            let Some(at) = self.best_of_sight(p, i, sight, most) else {
                continue;
            };
            let Some(first) = self.first_of(p, &self.twins[at]) else {
                continue;
            };
            let offer = &work.offers[first];
            let (each, total) = takes.with(fits_new(work, class, offer));
            let Some(per_unit) = per_unit(offer.price, each) else {
                continue;
            };
            let near = p.tally.wish(&work.near, class, kind, &Content::EMPTY);
            let liked = near.saturating_add(i64::from(work.weight(class, kind)));
            let key = (
                offer.tier,
                per_unit,
                Reverse(liked),
                self.rank(first),
                offer.price,
                first,
            );
            if best.is_none_or(|(have, _)| key < have) {
                let choice = Choice {
                    offer: first,
                    each,
                    total,
                    per_unit,
                };
                best = Some((key, choice));
            }
        }
        best.map(|(_, choice)| choice)
    }

    /// Opens nodes with units of several entries on each.
    pub fn open(&self, p: &mut Packing, offer: usize, nodes: u32, placed: &[(usize, u32)]) {
        let work = self.work;
        let group = Group {
            offer,
            nodes,
            free: Free::whole(work.offers[offer].size.clone()),
            whole: false,
            placed: Vec::with_capacity(4),
            content: Content::EMPTY,
            origin: None,
            leaf: p.at.len(),
        };
        p.tally
            .open(&work.near, work.offers[offer].kind, nodes, false);
        p.ledger.take(&work.offers, offer, nodes);
        let g = p.add(work, group);
        for (i, units) in placed {
            p.put(work, g, self.order[*i], *units);
            p.left[*i] -= units * nodes;
        }
    }

    /// The cheapest new node that takes so many units of the first entry.
    pub fn one_that_takes(&self, p: &Packing, units: u32) -> Option<usize> {
        let (work, class) = (self.work, self.order[0]);
        self.offers
            .iter()
            .copied()
            .filter(|o| {
                let offer = &work.offers[*o];
                let fits = fits_new(work, class, offer);
                may_open(work, class, offer)
                    && fits >= units
                    && self.on_new(p, class, offer.kind).with(fits).0 >= units
            })
            .min_by_key(|o| {
                let offer = &work.offers[*o];
                (offer.tier, offer.price, self.rank(*o), *o)
            })
    }
}
