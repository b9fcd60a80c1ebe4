//! Grow: what is left, against offerings. Two packings are made and the better one is taken: first fit decreasing that
//! opens the cheapest type per unit, and a greedy one that fills whole nodes at the best price for what they carry. So
//! the result is never worse than first fit decreasing (SC-85), and cheaper where mixing helps.
//!
//! Both work on classes: cost grows with shapes x offerings and with the nodes opened in groups, not with the count.

use super::ledger::Ledger;
use super::near::Tally;
use super::packing::Context;
pub(super) use super::packing::Packing;
use super::state::Work;
use crate::model::Class;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The greedy packing is skipped above this many (class, class, offer) looks.
const GREEDY_LOOKS: usize = 60_000_000;

/// With more classes than this only claims are packed where they apply: they have been cheaper on every mix.
const BOTH: usize = 300;

/// Largest first: the order of packing.
pub(super) fn size_key(class: &Class) -> Reverse<(bool, u32, u32, u64, u64)> {
    Reverse((
        class.whole_node,
        class.unit.gpus,
        class.unit.gpu_milli,
        class.unit.cpu.0,
        class.unit.memory.0,
    ))
}

/// The better packing of `left` units per entry of `order` onto these offers (by index, in order), on a ledger of the
/// caller's; changes nothing.
pub(super) fn attempt(
    work: &Work<'_>,
    order: &[usize],
    left: Vec<u32>,
    ledger: &Ledger,
    offers: &[usize],
) -> Packing {
    attempt_from(work, order, left, ledger, &work.tally, offers)
}

/// The same with other counts of the rules between units than the run's.
pub(super) fn attempt_from(
    work: &Work<'_>,
    order: &[usize],
    left: Vec<u32>,
    ledger: &Ledger,
    tally: &Tally,
    offers: &[usize],
) -> Packing {
    let mut start = Packing::start(work, left, ledger, offers);
    start.tally.clone_from(tally);
    better(work, order, start, offers)
}

/// The better packing as if the nodes of the stock (per offer, bins) were not asked for: on a ledger that has them back,
/// with the nodes that come and have something as open ones.
pub(super) fn attempt_on(
    work: &Work<'_>,
    order: &[usize],
    left: Vec<u32>,
    ledger: &Ledger,
    stock: &BTreeMap<usize, Vec<usize>>,
) -> Option<Packing> {
    let start = Packing::start_on(work, left, ledger, stock)?;
    Some(better(work, order, start, &work.offers_of_mode(false)))
}

fn better(work: &Work<'_>, order: &[usize], start: Packing, offers: &[usize]) -> Packing {
    if start.left.iter().all(|n| *n == 0) {
        return start;
    }
    let ctx = Context::new(work, order, &start.ledger, offers);
    if ctx.has_claims() && order.len() > BOTH {
        let mut claims = ctx.claims(start);
        ctx.right_size(&mut claims);
        return claims;
    }
    if ctx.has_one_way() {
        return ctx.first_fit(start);
    }
    let mut best = ctx.first_fit(start.clone());
    ctx.right_size(&mut best);
    if ctx.has_claims() {
        let mut claims = ctx.claims(start.clone());
        ctx.right_size(&mut claims);
        if ctx.score(&claims) < ctx.score(&best) {
            best = claims;
        }
    }
    let looks = order.len() * order.len() * ctx.offers.len();
    if looks <= GREEDY_LOOKS
        && work.effort.allows(looks)
        && !order.iter().any(|c| work.near.touches(*c))
    {
        work.effort.spend(looks);
        let mut greedy = ctx.greedy(start);
        ctx.right_size(&mut greedy);
        if ctx.score(&greedy) < ctx.score(&best) {
            best = greedy;
        }
    }
    best
}

/// Makes an attempt the state of the run.
pub(super) fn commit(work: &mut Work<'_>, order: &[usize], packing: Packing) {
    work.groups.replace(packing.groups);
    work.ledger = packing.ledger;
    work.tally = packing.tally;
    work.step = work.step.max(packing.step);
    for (i, class) in order.iter().enumerate() {
        work.open[*class] = packing.left[i];
    }
}

/// All `units` of a class on one node: in an open one, else on the cheapest new one. Nothing if none is large enough.
pub(super) fn on_one_node(
    work: &Work<'_>,
    class: usize,
    units: u32,
    ledger: &Ledger,
    offers: &[usize],
) -> Option<Packing> {
    let order = std::slice::from_ref(&class);
    let mut p = Packing::start(work, vec![units], ledger, offers);
    if p.put_on_one(work, class, units) {
        return Some(p);
    }
    let ctx = Context::new(work, order, ledger, offers);
    let offer = ctx.one_that_takes(&p, units)?;
    ctx.open(&mut p, offer, 1, &[(0, units)]);
    Some(p)
}
