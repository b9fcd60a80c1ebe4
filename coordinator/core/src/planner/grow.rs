//! Grow: what is left, against offerings. Two packings are made and the better one is taken: first fit decreasing that
//! opens the cheapest type per unit, and a greedy one that fills whole nodes at the best price for what they carry. So
//! the result is never worse than first fit decreasing (SC-85), and cheaper where mixing helps.
//!
//! Both work on classes: cost grows with shapes x offerings and with the nodes opened in groups, not with the count.

use super::ledger::Ledger;
use super::offers::Offer;
use super::packing::{Context, may_open};
use super::state::{Group, Work};
use crate::model::Class;
use std::cmp::Reverse;

/// The greedy packing is skipped above this many (class, class, offer) looks.
const GREEDY_LOOKS: usize = 60_000_000;

/// Largest first: the order of packing.
pub(super) fn size_key(class: &Class) -> Reverse<(bool, u32, u64, u64)> {
    Reverse((
        class.whole_node,
        class.unit.gpus,
        class.unit.cpu.0,
        class.unit.memory.0,
    ))
}

/// One attempt: what would be open after it, and who stays without.
#[derive(Clone)]
pub(super) struct Packing {
    /// Open nodes that the attempt may use, then those that it opened.
    pub groups: Vec<Group>,
    /// Groups from here on were opened by this attempt.
    pub fresh: usize,
    pub ledger: Ledger,
    /// Units left per entry of `order`.
    pub left: Vec<u32>,
}

/// Which offers may be used: by index and offer.
pub(super) type Allow<'f> = &'f dyn Fn(usize, &Offer<'_>) -> bool;

/// Opens nodes for the classes in `order` (largest first). `would`: only observed pools, else only real ones.
pub(super) fn grow(work: &mut Work<'_>, order: &[usize], would: bool) {
    let left: Vec<u32> = order.iter().map(|c| work.open[*c]).collect();
    let packing = attempt(work, order, left, &work.ledger, &|_, o| o.would == would);
    commit(work, order, packing);
}

/// The better packing of `left` units per entry of `order`, on a ledger of the caller's; changes nothing.
pub(super) fn attempt(
    work: &Work<'_>,
    order: &[usize],
    left: Vec<u32>,
    ledger: &Ledger,
    allow: Allow<'_>,
) -> Packing {
    let start = start(work, left, ledger, allow);
    if start.left.iter().all(|n| *n == 0) {
        return start;
    }
    let ctx = Context::new(work, order, ledger, allow);
    let mut best = ctx.first_fit(start.clone());
    ctx.right_size(&mut best);
    if order.len() * order.len() * ctx.offers.len() <= GREEDY_LOOKS {
        let mut greedy = ctx.greedy(start);
        ctx.right_size(&mut greedy);
        if ctx.score(&greedy) < ctx.score(&best) {
            best = greedy;
        }
    }
    best
}

/// Nothing tried yet: the groups of the run that the attempt may use.
fn start(work: &Work<'_>, left: Vec<u32>, ledger: &Ledger, allow: Allow<'_>) -> Packing {
    let groups: Vec<Group> = work
        .groups
        .iter()
        .enumerate()
        .filter(|(_, group)| allow(group.offer, &work.offers[group.offer]))
        .map(|(at, group)| Group {
            origin: Some(at),
            ..group.clone()
        })
        .collect();
    Packing {
        fresh: groups.len(),
        groups,
        ledger: ledger.clone(),
        left,
    }
}

/// Makes an attempt the state of the run.
pub(super) fn commit(work: &mut Work<'_>, order: &[usize], packing: Packing) {
    let Packing { groups, fresh, .. } = &packing;
    let mut mine = groups[..*fresh].iter().cloned().peekable();
    let old = std::mem::take(&mut work.groups);
    for (at, group) in old.into_iter().enumerate() {
        if mine.peek().is_none_or(|first| first.origin != Some(at)) {
            work.groups.push(group);
        }
        // In its place what became of it, maybe in parts.
        while let Some(part) = mine.next_if(|part| part.origin == Some(at)) {
            work.groups.push(part);
        }
    }
    work.groups.extend(groups[*fresh..].iter().cloned());
    work.ledger = packing.ledger;
    for (i, class) in order.iter().enumerate() {
        work.open[*class] = packing.left[i];
    }
}

impl Packing {
    /// Cost per hour and number of the nodes that this attempt opens.
    pub fn opened(&self, work: &Work<'_>) -> (u64, u32) {
        self.groups[self.fresh..]
            .iter()
            .fold((0, 0), |(cost, nodes), g| {
                let price = work.offers[g.offer]
                    .price
                    .saturating_mul(u64::from(g.nodes));
                (price.saturating_add(cost), g.nodes.saturating_add(nodes))
            })
    }

    /// Offers that this attempt opens, with their nodes.
    pub fn offers(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.groups[self.fresh..].iter().map(|g| (g.offer, g.nodes))
    }
}

/// All `units` of a class on one node: in an open one, else on the cheapest new one. Nothing if none is large enough.
pub(super) fn on_one_node(
    work: &Work<'_>,
    class: usize,
    units: u32,
    ledger: &Ledger,
    allow: Allow<'_>,
) -> Option<Packing> {
    let ctx = Context::new(work, std::slice::from_ref(&class), ledger, allow);
    let mut p = start(work, vec![units], ledger, allow);
    if let Some(g) = (0..p.groups.len()).find(|g| ctx.room_in(&p.groups[*g], 0) >= units) {
        let mut piece = Group {
            nodes: 1,
            ..p.groups[g].clone()
        };
        ctx.put(&mut piece, 0, units);
        p.groups[g].nodes -= 1;
        if p.groups[g].nodes == 0 {
            p.groups[g] = piece;
        } else {
            p.groups.insert(g, piece);
            p.fresh += 1;
        }
        p.left[0] = 0;
        return Some(p);
    }
    let best = ctx
        .offers
        .iter()
        .filter(|(_, o)| may_open(work, class, o) && o.times(&work.input.classes[class]) >= units)
        .min_by_key(|(i, o)| (o.tier, o.price, ctx.rank(o), *i))?;
    ctx.open(&mut p, best.0, 1, &[(0, units)]);
    Some(p)
}
