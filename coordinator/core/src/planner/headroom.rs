//! Headroom: room that the policy wants free at all times, in units of demand. So many units could start at once, on nodes
//! that take work, come, or are asked for in this plan; demand has gone first. Called once by `plan`, before the standing
//! targets of pools, whose idle nodes are headroom too. Nodes that it needs are kept (`Work::kept_free`); what is missing
//! is taken back from our own cordons, then asked for like demand, never of a stopped pool.

use super::offers::Offer;
use super::size::{Free, Size};
use super::state::Work;
use super::supply::{At, Bin, Tier};
use super::why::limit_reason;
use crate::model::{Headroom, Reason};
use std::collections::BTreeMap;

/// Room that is not spoken for: of bins and of groups, where some was taken.
#[derive(Default)]
struct Left {
    bins: BTreeMap<usize, Free>,
    groups: BTreeMap<usize, Free>,
}

/// Fulfils every headroom of the policy, in its order.
pub(super) fn keep(work: &mut Work<'_>) {
    let input = work.input;
    let mut left = Left::default();
    for headroom in &input.policy.headroom {
        let unit = work.names.size(&headroom.unit);
        let headroom = &Want { headroom, unit };
        let welcome: Vec<bool> = work
            .kinds
            .iter()
            .map(|kind| kind.allows(&headroom.headroom.constraints))
            .collect();
        let missing = existing(work, &mut left, headroom, &welcome);
        let missing = opened(work, &mut left, headroom, &welcome, missing);
        let missing = grow(work, headroom, &welcome, missing);
        if missing > 0 {
            short(work, headroom, &welcome, missing);
        }
    }
}

/// One headroom, and its unit as numbers.
struct Want<'h> {
    headroom: &'h Headroom,
    unit: Size,
}

/// Units on one node with this much room.
fn fits(headroom: &Want<'_>, room: &Free) -> u32 {
    let wants = &headroom.headroom.constraints;
    let most = match wants.max_per_node {
        _ if !wants.host_ports.is_empty() => 1,
        0 => u32::MAX,
        most => most,
    };
    room.times(&headroom.unit).min(most)
}

/// Takes what nodes have: first those that stay anyway, then idle ones, the cheapest first, then those that come, then
/// our own cordons. Returns the units that are missing.
fn existing(work: &mut Work<'_>, left: &mut Left, headroom: &Want<'_>, welcome: &[bool]) -> u32 {
    let price = |bin: &Bin| match bin.at {
        At::Node(n) => work.input.nodes[n].price.0,
        At::Coming(..) => 0,
    };
    let mut order: Vec<_> = work
        .bins
        .iter()
        .enumerate()
        .filter(|(_, bin)| welcome[bin.kind] && !bin.would)
        .map(|(b, bin)| {
            let free = is_free(work, bin);
            let step = match bin.tier {
                Tier::Ready if !free => 0,
                Tier::Ready => 1,
                Tier::Coming => 2,
                Tier::OwnCordoned => 3,
            };
            (step, u64::from(free) * price(bin), b)
        })
        .collect();
    order.sort_unstable();
    let mut missing = headroom.headroom.count;
    for (_, _, b) in order {
        if missing == 0 {
            break;
        }
        let bin = &work.bins[b];
        let room = left.bins.get(&b).unwrap_or(&bin.free);
        let units = fits(headroom, room).min(missing);
        if units == 0 {
            continue;
        }
        missing -= units;
        let mut rest = room.clone();
        rest.take(&headroom.unit, units);
        left.bins.insert(b, rest);
        if let (At::Node(n), true) = (bin.at, is_free(work, bin)) {
            work.kept_free
                .entry(n)
                .or_insert_with(|| Reason::KeptForHeadroom {
                    name: headroom.headroom.name.clone(),
                });
        }
    }
    missing
}

/// Nothing else keeps it.
fn is_free(work: &Work<'_>, bin: &Bin) -> bool {
    let reserved = match bin.at {
        At::Node(n) => !work.input.nodes[n].reserved.is_empty(),
        At::Coming(..) => false,
    };
    bin.idle && bin.placed.is_empty() && bin.held.is_empty() && !reserved
}

/// Takes what is left on nodes that this plan asks for.
fn opened(
    work: &Work<'_>,
    left: &mut Left,
    headroom: &Want<'_>,
    welcome: &[bool],
    mut missing: u32,
) -> u32 {
    let offers: Vec<usize> = (0..work.offers.len()).collect();
    for group in work.groups.in_order(offers.iter()) {
        let offer = &work.offers[group.offer];
        if missing == 0 {
            break;
        }
        if offer.would || group.whole || !welcome[offer.kind] {
            continue;
        }
        let room = left.groups.get(&group.leaf).unwrap_or(&group.free);
        let each = fits(headroom, room);
        if each == 0 {
            continue;
        }
        missing = missing.saturating_sub(each.saturating_mul(group.nodes));
        let mut rest = room.clone();
        rest.take(&headroom.unit, each);
        left.groups.insert(group.leaf, rest);
    }
    missing
}

/// Offers that a unit may go to, with the units of one node. Units without GPUs open no nodes with GPUs while there is
/// an offering without that could serve them.
fn suiting<'w, 'a>(
    work: &'w Work<'a>,
    headroom: &'w Want<'w>,
    welcome: &'w [bool],
) -> impl Iterator<Item = (usize, &'w Offer<'a>, u32)> {
    let units = |offer: &Offer<'_>| {
        if offer.alloc.is_none() || !welcome[offer.kind] {
            return 0;
        }
        fits(headroom, &Free::whole(offer.size.clone()))
    };
    let gpus = |offer: &Offer<'_>| offer.alloc.as_ref().is_some_and(|a| a.gpus > 0);
    let plain = headroom.unit.gpus == 0
        && headroom.unit.milli == 0
        && headroom.headroom.constraints.gpu_model.is_empty()
        && work.offers.iter().any(|o| !gpus(o) && units(o) > 0);
    let all = work.offers.iter().enumerate();
    all.filter(move |(_, offer)| !(plain && gpus(offer)))
        .map(move |(o, offer)| (o, offer, units(offer)))
        .filter(|(_, _, each)| *each > 0)
}

/// Asks for nodes: full ones at the best price per unit, the last ones on the cheapest that takes them.
fn grow(work: &mut Work<'_>, headroom: &Want<'_>, welcome: &[bool], mut missing: u32) -> u32 {
    while missing > 0 {
        let rank = |offer: &Offer<'_>| work.input.pools[offer.pool].rank;
        let open = || {
            suiting(work, headroom, welcome)
                .filter(|(o, offer, _)| !offer.would && work.ledger.room(&work.offers, *o) > 0)
        };
        // Price per unit in 2^-32 micro-USD.
        let each = |price: u64, n: u32| (u128::from(price) << 32) / u128::from(n);
        let full = open()
            .filter(|(_, _, n)| *n <= missing)
            .min_by_key(|(o, offer, n)| (offer.tier, each(offer.price, *n), rank(offer), *o));
        let last = open()
            .filter(|(_, _, n)| *n >= missing)
            .min_by_key(|(o, offer, _)| (offer.tier, offer.price, rank(offer), *o));
        // One node for all that is left, where that costs no more than by the unit.
        let whole = last.filter(|(_, offer, _)| {
            full.is_none_or(|(_, other, n)| {
                let by_unit = u64::from(missing.div_ceil(n)).saturating_mul(other.price);
                (offer.tier, offer.price) <= (other.tier, by_unit)
            })
        });
        let Some((o, _, n)) = whole.or(full) else {
            break;
        };
        let room = work.ledger.room(&work.offers, o);
        let nodes = (missing / n).clamp(1, room);
        let units = n.saturating_mul(nodes).min(missing);
        missing -= units;
        work.ledger.take(&work.offers, o, nodes);
        let slot = work.headroom.entry(o).or_default();
        slot.0 += nodes;
        slot.1 += units;
    }
    missing
}

/// Says it at the pools that could serve it; at the first of the fleet when none could.
fn short(work: &mut Work<'_>, headroom: &Want<'_>, welcome: &[bool], units: u32) {
    let say = |why: Reason| Reason::HeadroomShort {
        name: headroom.headroom.name.clone(),
        units,
        why: Box::new(why),
    };
    let mut said: BTreeMap<usize, Reason> = BTreeMap::new();
    for (o, offer, _) in suiting(work, headroom, welcome) {
        if let Some(why) = limit_reason(work, o) {
            said.entry(offer.pool).or_insert_with(|| say(why));
        }
    }
    if said.is_empty()
        && let Some(first) = work.pool_index.values().next()
    {
        let why = Reason::NoPoolOffers {
            unit: headroom.headroom.unit.clone(),
            wants: String::new(),
        };
        said.insert(*first, say(why));
    }
    for (pool, reason) in said {
        work.headroom_short.entry(pool).or_default().push(reason);
    }
}
