//! Nodes kept and asked for because demand is likely: a node is held after its last work, the shorter that ran the longer,
//! but no more idle ones than nodes of its pool work (`shrink/keep`); and some time after demand that took an idle or a new node the pool keeps a spare. Read by `targets`, by `shrink` and,
//! for what control learns, by `report`. Only for pools that say so; changes nothing.

use super::state::Work;
use super::supply::At;
use crate::model::{Busy, Demanded, Millis, OfferingId, UnixMs};
use crate::rules::lives;
use std::collections::BTreeMap;

/// Per pool that anticipates: the latest demand that takes an idle or a new node of it in this plan, or waits for one.
pub(super) fn demanded(work: &Work<'_>) -> BTreeMap<usize, Demanded> {
    let mut latest: BTreeMap<usize, Demanded> = BTreeMap::new();
    let mut see = |p: usize, class: usize, offering: Option<&OfferingId>| {
        let at = work.input.classes[class].submitted.min(work.input.now);
        if work.input.pools[p].anticipate.is_some() && latest.get(&p).is_none_or(|d| d.at < at) {
            let offering = offering.cloned();
            latest.insert(p, Demanded { at, offering });
        }
    };
    for bin in work.bins.iter().filter(|bin| bin.idle && !bin.would) {
        let Some(p) = bin.pool else { continue };
        let offering = match bin.at {
            At::Node(n) => work.input.nodes[n].offering.as_ref(),
            At::Coming(l, _) => Some(&work.input.launches[l].offering),
        };
        for put in &bin.placed {
            see(p, put.class, offering);
        }
    }
    let offers: Vec<usize> = (0..work.offers.len()).collect();
    for group in work.groups.in_order(offers.iter()) {
        let offer = &work.offers[group.offer];
        for put in group.placed.iter().filter(|_| !offer.would) {
            see(offer.pool, put.class, Some(offer.id));
        }
    }
    latest
}

/// Idle nodes that a pool wants now because of the latest demand, that of this plan included, and what that took.
pub(super) fn spare(work: &Work<'_>, p: usize) -> Option<(u32, Option<OfferingId>)> {
    let pool = &work.input.pools[p];
    let anticipate = pool.anticipate.as_ref()?;
    let before = work.input.learnt.demanded.get(&pool.id);
    let last = before
        .into_iter()
        .chain(work.demanded.get(&p))
        .max_by_key(|d| d.at)?;
    let runs = work.input.now < last.at.after(anticipate.spare_for);
    runs.then(|| (anticipate.spare, last.offering.clone()))
}

/// Until when an idle node is held after its last work.
pub(super) fn held_until(work: &Work<'_>, node: usize) -> Option<UnixMs> {
    let anticipate = work.input.pools[work.node_pool[node]?]
        .anticipate
        .as_ref()?;
    let Busy::Idle { since } = work.input.nodes[node].busy else {
        return None;
    };
    lives::held_until(anticipate, since, work.input.nodes[node].last_ran)
}

/// It is held now.
pub(super) fn is_held(work: &Work<'_>, node: usize) -> bool {
    held_until(work, node).is_some_and(|until| until > work.input.now)
}

/// How long a new node of the kind takes, as far as known.
pub(super) fn boot(work: &Work<'_>, node: usize) -> Millis {
    let boots = work.node_pool[node].into_iter().flat_map(|p| {
        let own = work.input.nodes[node].offering.as_ref();
        let all = work.input.pools[p].offerings.iter();
        all.map(move |o| (Some(&o.id) != own, o.boot))
    });
    boots.min().map_or(Millis::ZERO, |(_, boot)| boot)
}
