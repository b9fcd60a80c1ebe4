//! Why more cannot be had, pool by pool in the order of cost. Used by `why`, and by headroom for what it lacks.

use super::super::away::Missing;
use super::super::offers::Offer;
use super::super::report::to_u32;
use super::super::state::Work;
use super::super::supply::{stale, unread};
use super::{LISTED, Places, push, unread_reason};
use crate::model::{PoolId, Reason, Resources, Stop};

/// Why more cannot be had: first the pools that could serve, in the order in which they are tried, then the others.
pub(super) fn not_placed(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
) -> Vec<Reason> {
    // Who names pools is told of them alone.
    let named = &work.input.classes[class].constraints.pools;
    let mut order: Vec<_> = work
        .pool_index
        .iter()
        .filter(|(id, _)| named.is_empty() || named.contains(**id))
        .map(|(_, p)| p)
        .map(|p| (standing(work, places, missing, class, *p), *p))
        .collect();
    order.sort_unstable();
    let mut reasons = Vec::new();
    let mut left = order.len();
    for (_, p) in order {
        // Nobody reads of five hundred pools; nobody writes it, either.
        if reasons.len() >= LISTED {
            break;
        }
        pool(work, places, missing, class, p, &mut reasons);
        left -= 1;
    }
    if left > 0 {
        reasons.push(Reason::More {
            count: to_u32(left),
        });
    }
    reasons
}

/// Where a pool stands: does it not serve the class, what its cheapest offer costs, the order of the config.
fn standing(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
    p: usize,
) -> (bool, u64, u32) {
    let unit = &work.input.classes[class];
    let rank = work.input.pools[p].rank;
    let offers = work.offers_of[p].iter().map(|o| &work.offers[*o]);
    let cost = offers
        .filter(|o| work.matches(class, o.kind) && may_take(work, class, o))
        .map(|o| o.price)
        .min();
    let mut nodes = places.shapes[p].iter();
    match cost {
        Some(cost) => (false, cost, rank),
        None if nodes.any(|(k, size)| work.matches(class, *k) && unit.unit.fits(size)) => {
            (false, 0, rank)
        }
        None => (!missing.any(work, class, p), 0, rank),
    }
}

/// New nodes of the offer take a unit, or it is not known.
fn may_take(work: &Work<'_>, class: usize, offer: &Offer<'_>) -> bool {
    offer.alloc.as_ref().is_none_or(|alloc| {
        !(work.plain[class] && alloc.gpus > 0) && offer.times(&work.input.classes[class]) > 0
    })
}

/// What is said of one pool.
fn pool(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
    p: usize,
    reasons: &mut Vec<Reason>,
) {
    let unit = &work.input.classes[class];
    let pool = &work.input.pools[p];
    let id = || pool.id.clone();
    let template = work.offers_of[p].iter().any(|o| {
        let offer = &work.offers[*o];
        work.matches(class, offer.kind) && offer.times(unit) > 0
    });
    let away = missing.reasons(work, class, p, template);
    let out = !away.is_empty();
    reasons.extend(away);
    // What is remembered of it is old: that it cannot be read comes first. Where it may not grow for that, its offers say so.
    if let (Some(Stop::Stale { may_grow: true, .. }), true) = (stale(pool), template) {
        push(reasons, Some(unread_reason(pool)));
    }
    let mut said = false;
    let mut differs: Option<Reason> = None;
    let text = |what: String| Reason::PoolDiffers { pool: id(), what };
    for &o in &work.offers_of[p] {
        let offer = &work.offers[o];
        if let Some(what) = work.kinds[offer.kind].differs(&unit.constraints) {
            differs = Some(text(what.to_string()));
            continue;
        }
        let Some(alloc) = &offer.alloc else {
            push(reasons, offer.closed.clone());
            said = true;
            continue;
        };
        if work.plain[class] && alloc.gpus > 0 {
            differs = Some(text("it has GPUs, and none is wanted".to_owned()));
            continue;
        }
        if offer.times(unit) == 0 {
            differs = Some(too_small(&pool.id, &unit.unit, alloc));
            continue;
        }
        said = true;
        push(reasons, limit_reason(work, o));
    }
    if said {
        return;
    }
    let mut room = false;
    for (kind, size) in &places.shapes[p] {
        match work.kinds[*kind].differs(&unit.constraints) {
            Some(what) => differs = differs.or_else(|| Some(text(what.to_string()))),
            None if unit.unit.fits(size) => room = true,
            None => differs = Some(too_small(&pool.id, &unit.unit, size)),
        }
    }
    if pool.offerings.is_empty() && unread(pool) && !room {
        push(reasons, Some(unread_reason(pool)));
    } else if room {
        push(reasons, Some(Reason::NoRoom { pool: id() }));
    } else if !out {
        let nothing = "it has no nodes and nothing can be asked of it";
        reasons.push(differs.unwrap_or_else(|| text(nothing.to_owned())));
    }
}

/// What keeps an offer that would do from being asked (more).
pub(in super::super) fn limit_reason(work: &Work<'_>, o: usize) -> Option<Reason> {
    let offer = &work.offers[o];
    let pool = &work.input.pools[offer.pool];
    if offer.closed.is_some() {
        return offer.closed.clone();
    }
    if offer.would {
        return Some(Reason::PoolMode {
            pool: pool.id.clone(),
            mode: pool.mode,
        });
    }
    let gpus = offer.alloc.as_ref().map_or(0, |a| u64::from(a.gpus));
    let ledger = &work.ledger;
    if ledger.pool[offer.pool] == 0 {
        Some(Reason::AtMaximum {
            pool: pool.id.clone(),
            max: pool.max,
            config: pool.config_max,
        })
    } else if ledger.offer[o] == 0 {
        let entry = work.input.memory.iter().find(|m| m.offering == *offer.id);
        Some(entry.map_or_else(
            || Reason::NoRoom {
                pool: pool.id.clone(),
            },
            |m| Reason::OutOfCapacity {
                offering: m.offering.clone(),
                failure: m.kind,
                next_probe: m.next_probe,
                message: m.message.clone(),
            },
        ))
    } else if ledger.reserved.room(&offer.reserved) == Some(0) {
        Some(Reason::NoRoom {
            pool: pool.id.clone(),
        })
    } else if ledger.cost.is_some_and(|c| c < offer.price) {
        Some(Reason::OverBudget {
            what: "USD/h".to_owned(),
        })
    } else if ledger.gpus.is_some_and(|g| g < gpus) {
        Some(Reason::OverBudget {
            what: "GPUs".to_owned(),
        })
    } else if ledger.nodes == 0 {
        Some(Reason::OverBudget {
            what: "nodes in one plan".to_owned(),
        })
    } else {
        None
    }
}

/// What a node lacks, and only that.
fn too_small(pool: &PoolId, unit: &Resources, size: &Resources) -> Reason {
    let (mut wanted, mut has) = (Resources::default(), Resources::default());
    if unit.gpus > size.gpus {
        (wanted.gpus, has.gpus) = (unit.gpus, size.gpus);
    }
    if unit.cpu > size.cpu {
        (wanted.cpu, has.cpu) = (unit.cpu, size.cpu);
    }
    if unit.memory > size.memory {
        (wanted.memory, has.memory) = (unit.memory, size.memory);
    }
    if unit.gpu_milli > 0 && size.gpus == 0 {
        wanted.gpu_milli = unit.gpu_milli;
    }
    for (name, amount) in &unit.extended {
        let have = size.extended.get(name).copied().unwrap_or(0);
        if *amount > have {
            wanted.extended.insert(name.clone(), *amount);
            has.extended.insert(name.clone(), have);
        }
    }
    Reason::PoolTooSmall {
        pool: pool.clone(),
        wanted,
        has,
    }
}
