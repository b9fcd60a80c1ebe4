//! Why more cannot be had, pool by pool in the order of cost. Used by `why`, and by headroom for what it lacks.

use super::super::away::Missing;
use super::super::state::Work;
use super::super::supply::unread;
use super::{LISTED, Places, push, unread_reason};
use crate::model::{PoolId, Reason, Resources};

/// What is said of one pool.
struct Said {
    /// It could serve a unit, if only there were room.
    serves: bool,
    /// What its cheapest offer that would do costs.
    cost: u64,
    /// In the order of the config.
    rank: u32,
    reasons: Vec<Reason>,
}

/// Why more cannot be had: first the pools that could serve, in the order in which they are tried, then the others.
pub(super) fn not_placed(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
    reasons: &mut Vec<Reason>,
) {
    let mut all: Vec<Said> = Vec::new();
    let mut more = 0;
    for &p in work.pool_index.values() {
        // A class that no pool fits is not explained five hundred times.
        if all.len() > LISTED && !may_serve(work, places, class, p) {
            more += 1;
            continue;
        }
        all.push(pool(work, places, missing, class, p));
    }
    all.sort_by_key(|said| (!said.serves, said.cost, said.rank));
    for reason in all.into_iter().flat_map(|said| said.reasons) {
        push(reasons, Some(reason));
    }
    if more > 0 {
        reasons.push(Reason::More { count: more });
    }
}

/// Some node or some offer of the pool matches the class and is large enough.
fn may_serve(work: &Work<'_>, places: &Places<'_>, class: usize, p: usize) -> bool {
    let unit = &work.input.classes[class];
    let offers = work.offers_of[p].iter().map(|o| &work.offers[*o]);
    let mut offers = offers.filter(|o| work.matches(class, o.kind));
    let mut nodes = places.shapes[p].iter();
    offers.any(|o| o.alloc.as_ref().is_none_or(|a| unit.unit.fits(a)))
        || nodes.any(|(kind, size)| work.matches(class, *kind) && unit.unit.fits(size))
}

fn pool(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
    p: usize,
) -> Said {
    let unit = &work.input.classes[class];
    let pool = &work.input.pools[p];
    let id = || pool.id.clone();
    let fits = |o: usize| {
        let offer = &work.offers[o];
        work.matches(class, offer.kind) && offer.times(unit) > 0
    };
    let template = work.offers_of[p].iter().any(|o| fits(*o));
    let mut said = Said {
        serves: false,
        cost: u64::MAX,
        rank: pool.rank,
        reasons: missing.reasons(work, class, p, template),
    };
    let away = !said.reasons.is_empty();
    let mut differs: Option<Reason> = None;
    let text = |what: String| Reason::PoolDiffers { pool: id(), what };
    for &o in &work.offers_of[p] {
        let offer = &work.offers[o];
        if let Some(what) = work.kinds[offer.kind].differs(&unit.constraints) {
            differs = Some(text(what.to_string()));
            continue;
        }
        let Some(alloc) = &offer.alloc else {
            push(&mut said.reasons, offer.closed.clone());
            said.serves = true;
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
        said.serves = true;
        said.cost = said.cost.min(offer.price);
        push(&mut said.reasons, limit_reason(work, o));
    }
    if said.serves {
        return said;
    }
    let mut room = false;
    for (kind, size) in &places.shapes[p] {
        match work.kinds[*kind].differs(&unit.constraints) {
            Some(what) => differs = differs.or_else(|| Some(text(what.to_string()))),
            None if unit.unit.fits(size) => room = true,
            None => differs = Some(too_small(&pool.id, &unit.unit, size)),
        }
    }
    said.serves = room || away;
    if said.serves {
        said.cost = 0;
    }
    if pool.offerings.is_empty() && unread(pool) && !room {
        push(&mut said.reasons, Some(unread_reason(pool)));
    } else if room {
        push(&mut said.reasons, Some(Reason::NoRoom { pool: id() }));
    } else if !away {
        let nothing = "it has no nodes and nothing can be asked of it";
        said.reasons
            .push(differs.unwrap_or_else(|| text(nothing.to_owned())));
    }
    said
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
