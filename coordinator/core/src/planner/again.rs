//! Plans again what was asked for before: the nodes on their way are packed as if nothing had been asked yet, by the same
//! packing. If that takes no more of any offering than comes, it is the plan that asked for them, and each unit has its
//! place again: nothing is asked for twice for want of a memory (I4; DESIGN 4: placements are never stored). Otherwise
//! demand has changed, and `arriving` places what fits. Called by `plan` per priority, after what takes work now.

use super::arriving::{Turn, in_turn};
use super::grow;
use super::ledger::Ledger;
use super::packing::Packing;
use super::state::{Put, Work};
use super::supply::At;
use std::collections::BTreeMap;

/// Places all that is open of these classes on nodes that come and whose turn it is; false when that is not how they were asked for, and
/// nothing is placed.
pub(super) fn place(work: &mut Work<'_>, classes: &[usize], turn: Turn) -> bool {
    let order: Vec<usize> = classes
        .iter()
        .copied()
        .filter(|c| work.open[*c] > 0)
        .collect();
    let limited = order.iter().any(|c| work.team(*c).is_some());
    if order.is_empty() || limited || !work.groups.is_empty() || work.effort.is_spent() {
        return false;
    }
    let Some(mut stock) = stock(work, turn) else {
        return false;
    };
    let Some(packing) = pack(work, &order, &stock) else {
        return false;
    };
    let Some(mut puts) = puts(work, &packing, &mut stock) else {
        return false;
    };
    puts.sort_by_key(|(put, _)| put.step);
    for (put, bin) in puts {
        work.take(put.class, bin, put.units, false);
        work.chosen(put.class, bin);
        work.open[put.class] -= put.units;
    }
    true
}

/// Empty nodes on their way whose turn it is, per offer; none when there are none, or some that are not like new ones.
fn stock(work: &Work<'_>, turn: Turn) -> Option<BTreeMap<usize, Vec<usize>>> {
    let mut offers: BTreeMap<_, usize> = BTreeMap::new();
    for (o, offer) in work.offers.iter().enumerate() {
        offers.entry((offer.pool, offer.id)).or_insert(o);
    }
    let mut stock: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for b in work.arriving.bins() {
        let bin = &work.bins[b];
        let At::Coming(launch, _) = bin.at else {
            continue;
        };
        if !bin.empty || !in_turn(work, b, turn) {
            continue;
        }
        let offering = &work.input.launches[launch].offering;
        let offer = *offers.get(&(bin.pool?, offering))?;
        let new = &work.offers[offer];
        if new.would || new.kind != bin.kind || new.size != bin.total {
            return None;
        }
        stock.entry(offer).or_default().push(b);
    }
    (!stock.is_empty()).then_some(stock)
}

/// All of it on nodes with something on them, the first used first, then on as many of each offering as come.
fn pack(work: &Work<'_>, order: &[usize], stock: &BTreeMap<usize, Vec<usize>>) -> Option<Packing> {
    let mut ledger = work.ledger.clone();
    for (offer, bins) in stock {
        unask(work, &mut ledger, *offer, bins.len());
    }
    let left = order.iter().map(|c| work.open[*c]).collect();
    let packing = grow::attempt_on(work, order, left, &ledger, stock)?;
    packing.left.iter().all(|n| *n == 0).then_some(packing)
}

/// As if it had not been asked for. What may not be asked for now could be then: as much as comes.
fn unask(work: &Work<'_>, ledger: &mut Ledger, offer: usize, nodes: usize) {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    if work.offers[offer].closed.is_some() {
        ledger.offer[offer] = 0;
        ledger.reopened.insert(offer);
    }
    ledger.give_back(&work.offers, offer, nodes);
}

/// What goes to which bin; none when more of some offering is used than comes.
fn puts(
    work: &Work<'_>,
    packing: &Packing,
    stock: &mut BTreeMap<usize, Vec<usize>>,
) -> Option<Vec<(Put, usize)>> {
    let mut all = Vec::new();
    let mut groups: Vec<_> = packing.groups.iter().collect();
    groups.sort_by_key(|g| g.leaf);
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    for group in groups {
        if group.origin.is_some() {
            let bin = *work.arriving.used.get(group.leaf)?;
            all.extend(group.placed.iter().map(|put| (*put, bin)));
            continue;
        }
        let bins = stock.get(&group.offer)?;
        let at = next.entry(group.offer).or_insert(0);
        for _ in 0..group.nodes {
            let bin = *bins.get(*at)?;
            *at += 1;
            all.extend(group.placed.iter().map(|put| (*put, bin)));
        }
    }
    Some(all)
}
