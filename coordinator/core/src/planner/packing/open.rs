//! Opens new nodes: which offer is cheapest per unit, and which offers are the same but for their limits.

use super::{Context, Kinds, Packing, fits_new, may_open};
use crate::planner::near::Content;
use crate::planner::size::Free;
use crate::planner::state::{Group, Work};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Scale of a price per unit: micro-USD in 32.32 fixed point.
pub(super) const VALUE_SHIFT: u32 = 32;

/// What classes see of a kind of place: who may go there, how much each likes it, the domains it is in.
type Sight = (Vec<bool>, Vec<u32>, Vec<(Option<u32>, bool)>);

/// Groups offers that no packing of these classes can tell apart but by their limits: what a node gives and costs, who
/// may go there, the domains it is in.
pub(super) fn twins(work: &Work<'_>, order: &[usize], offers: &[usize]) -> Vec<Vec<usize>> {
    let mut sights: BTreeMap<Sight, usize> = BTreeMap::new();
    let mut sight_of: BTreeMap<usize, usize> = BTreeMap::new();
    for o in offers {
        let kind = work.offers[*o].kind;
        sight_of.entry(kind).or_insert_with(|| {
            let welcome = order.iter().map(|c| work.matches(*c, kind)).collect();
            let liked = order.iter().map(|c| work.weight(*c, kind));
            let liked = liked.skip_while(|w| *w == 0).collect();
            let next = sights.len();
            let sight = (welcome, liked, work.near.domains(kind));
            *sights.entry(sight).or_insert(next)
        });
    }
    let mut index = BTreeMap::new();
    let mut all: Vec<Vec<usize>> = Vec::new();
    let hurried = order
        .iter()
        .any(|c| work.input.classes[*c].deadline.is_some());
    for o in offers {
        let offer = &work.offers[*o];
        let key = (
            offer.tier,
            offer.price,
            work.input.pools[offer.pool].rank,
            sight_of[&offer.kind],
            &offer.size,
            // Who must start by a moment tells by the boot as well.
            hurried.then_some(offer.boot),
        );
        let slot = *index.entry(key).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[slot].push(*o);
    }
    all
}

/// An offer that could be opened for a class.
#[derive(Clone, Copy)]
struct Choice {
    offer: usize,
    /// Units on each node, and on all of them together.
    each: u32,
    total: u32,
}

impl Context<'_, '_> {
    /// Of each list of twins the first that may still be asked.
    pub(super) fn first_of(&self, p: &Packing, twins: &[usize]) -> Option<usize> {
        let mut all = twins.iter().copied();
        all.find(|o| p.ledger.room(&self.work.offers, *o) > 0)
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
        let Some(choice) = self.cheapest(p, i, kinds) else {
            return 0;
        };
        let Choice { offer, each, total } = choice;
        let n = cap.min(total);
        let room = p.ledger.room(&self.work.offers, offer);
        let full = (n / each).min(room).min(nodes);
        let (nodes, units) = if full > 0 { (full, each) } else { (1, n) };
        self.open(p, offer, nodes, &[(i, units)]);
        units * nodes
    }

    /// By tier, price per unit, preference, rank, price, order.
    fn cheapest(&self, p: &Packing, i: usize, kinds: Kinds<'_>) -> Option<Choice> {
        let (work, class) = (self.work, self.order[i]);
        let touched = work.near.touches(class);
        let mut allowed: BTreeMap<usize, crate::planner::near::Takes> = BTreeMap::new();
        let mut best = None;
        for twins in &self.twins {
            let offer = &work.offers[twins[0]];
            if kinds.is_some_and(|kinds| !kinds.contains(&offer.kind))
                || !may_open(work, class, offer)
            {
                continue;
            }
            let fits = fits_new(work, class, offer);
            if fits == 0 {
                continue;
            }
            let (each, total) = if touched {
                let takes = allowed.entry(offer.kind);
                let takes = takes.or_insert_with(|| self.on_new(p, class, offer.kind));
                takes.with(fits)
            } else {
                (fits, u32::MAX)
            };
            let price = u128::from(offer.price.max(1)) << VALUE_SHIFT;
            let Some(per_unit) = price.checked_div(u128::from(each)) else {
                continue;
            };
            let Some(first) = self.first_of(p, twins) else {
                continue;
            };
            let liked = i64::from(work.weight(class, offer.kind)).saturating_add(p.tally.wish(
                &work.near,
                class,
                offer.kind,
                &Content::EMPTY,
            ));
            let rank = self.rank(first);
            let key = (
                offer.tier,
                per_unit,
                Reverse(liked),
                rank,
                offer.price,
                first,
            );
            if best.is_none_or(|(have, _)| key < have) {
                let choice = Choice {
                    offer: first,
                    each,
                    total,
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
