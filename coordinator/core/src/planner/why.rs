//! Why, and why not: the reasons of classes (I9). Called by `report`. Reads the run's state, changes
//! nothing, renders nothing.

use super::away::Missing;
use super::could::{self, Could};
use super::report::to_u32;
use super::state::Work;
use super::supply::{At, Tier, stale, unread};
use super::{coming, gangs, matching};
use crate::model::{ClassOutcome, PoolInput, Reason, Resources, Stop, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons listed for one class or pool at most.
pub(super) const LISTED: usize = 40;

/// Where each class has units: indices of bins and of groups.
pub(super) struct Places {
    bins: Vec<Vec<usize>>,
    groups: Vec<Vec<usize>>,
}

impl Places {
    /// Looks once over everything.
    pub fn new(work: &Work<'_>) -> Self {
        let none = vec![Vec::new(); work.input.classes.len()];
        let mut all = Self {
            bins: none.clone(),
            groups: none,
        };
        let add = |list: &mut Vec<usize>, at: usize| {
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        for (b, bin) in work.bins.iter().enumerate().filter(|(_, b)| !b.would) {
            for put in &bin.placed {
                add(&mut all.bins[put.class], b);
            }
        }
        for (g, group) in work.groups.iter().enumerate() {
            for put in &group.placed {
                add(&mut all.groups[put.class], g);
            }
        }
        all
    }
}

/// Reasons of one class whose figures are known.
pub(super) fn class(
    work: &Work<'_>,
    places: &Places,
    missing: &Missing<'_>,
    class: usize,
    outcome: &mut ClassOutcome,
) {
    let unit = &work.input.classes[class];
    let mut reasons: Vec<Reason> = unit
        .constraints
        .unsupported
        .iter()
        .map(|rule| Reason::UnsupportedRule { rule: rule.clone() })
        .collect();
    reasons.extend(work.notes.get(&class).into_iter().flatten().cloned());
    placed(work, places, class, &mut reasons);
    reasons.extend(coming::of_request(work, class));
    if outcome.unplaced > 0 && unit.constraints.unsupported.is_empty() {
        let could = could::could_ever(work, class);
        let least = unit.gang.as_ref().map_or(1, |g| g.min.max(1));
        outcome.impossible = could.never(least);
        if outcome.impossible {
            reasons.splice(0..0, never(work, class, &could, least));
        } else if !could.anywhere(least) {
            let unread = could.unread.iter().map(|p| &work.input.pools[*p]);
            for pool in unread {
                push(&mut reasons, Some(unread_reason(pool)));
            }
        }
        kept_for_gangs(work, class, &mut reasons);
        not_placed(work, missing, class, &mut reasons);
    }
    if reasons.is_empty() {
        reasons.push(if outcome.unplaced > 0 {
            Reason::Unexplained
        } else {
            Reason::Settled
        });
    }
    if reasons.len() > LISTED {
        let more = to_u32(reasons.len() - LISTED);
        reasons.truncate(LISTED);
        reasons.push(Reason::More { count: more });
    }
    outcome.reasons = reasons;
}

/// Why nobody could ever serve it; nothing here when only a limit is in the way, which is said with its pool.
fn never(work: &Work<'_>, class: usize, could: &Could, least: u32) -> Option<Reason> {
    let unit = &work.input.classes[class];
    if work.input.pools.is_empty() {
        return Some(Reason::NoPools);
    }
    match (could.best(), &unit.gang) {
        (Some((domain, most)), Some(_)) => Some(Reason::GangNever {
            min: least,
            could: most,
            place: gangs::name(work, domain),
        }),
        _ if could.fits => None,
        _ => Some(Reason::NoPoolOffers {
            unit: unit.unit.clone(),
            wants: wants(work, class),
        }),
    }
}

/// Where its units go.
fn placed(work: &Work<'_>, places: &Places, class: usize, reasons: &mut Vec<Reason>) {
    let now = work.input.now;
    let (mut units, mut nodes, mut joining) = (0, 0, false);
    let mut asked: BTreeMap<usize, (u32, UnixMs)> = BTreeMap::new();
    for bin in places.bins[class].iter().map(|b| &work.bins[*b]) {
        let here: u32 = bin
            .placed
            .iter()
            .filter(|p| p.class == class)
            .map(|p| p.units)
            .sum();
        if here == 0 {
            continue;
        }
        match (bin.at, bin.tier, bin.pool) {
            (At::Coming(l, _), _, Some(p)) => {
                let launch = &work.input.launches[l];
                let boot = work.input.pools[p]
                    .offerings
                    .iter()
                    .find(|o| o.id == launch.offering)
                    .map(|o| o.boot);
                let ready = launch.asked.after(boot.unwrap_or_default()).max(now);
                let slot = asked.entry(p).or_insert((0, ready));
                *slot = (slot.0 + 1, slot.1.min(ready));
            }
            (_, Tier::Coming, _) => joining = true,
            _ => {
                units += here;
                nodes += 1;
            }
        }
    }
    let groups = places.groups[class].iter().map(|g| &work.groups[*g]);
    for group in groups.filter(|g| g.units(class) > 0) {
        let offer = &work.offers[group.offer];
        if !offer.would {
            let ready = UnixMs(now.0.saturating_add(offer.boot));
            let slot = asked.entry(offer.pool).or_insert((0, ready));
            *slot = (slot.0 + group.nodes, slot.1.min(ready));
        }
    }
    if nodes > 0 {
        reasons.push(Reason::FitsNow { units, nodes });
    }
    if joining {
        reasons.push(Reason::NotReady);
    }
    for (p, (nodes, ready)) in asked {
        reasons.push(Reason::AskedFor {
            pool: work.input.pools[p].id.clone(),
            nodes,
            ready,
        });
    }
}

/// A pool whose template is not known.
fn unread_reason(pool: &PoolInput) -> Reason {
    let why = match stale(pool) {
        Some(Stop::Stale { why, .. }) => why.clone(),
        _ => "what it offers is not known".to_owned(),
    };
    Reason::PoolUnread {
        pool: pool.id.clone(),
        why,
    }
}

/// Gangs whose held part would serve it.
fn kept_for_gangs(work: &Work<'_>, class: usize, reasons: &mut Vec<Reason>) {
    if !work.holds && work.partial.is_empty() {
        return;
    }
    let bins = work.bins.iter().filter(|b| !b.would && b.placed.is_empty());
    let mut holders: BTreeSet<usize> = BTreeSet::new();
    for bin in bins.filter(|b| work.matches(class, b.kind)) {
        let At::Node(n) = bin.at else { continue };
        let node = &work.input.nodes[n];
        let by = gangs::holding(work, bin);
        if by.is_empty() || by.contains(&class) {
            continue;
        }
        let mut lent = bin.clone();
        lent.free.size = bin.total.minus(&work.names.size(&node.used));
        lent.free.shares.clone_from(&node.gpu_shares);
        lent.empty = bin.idle || node.used.is_zero();
        lent.held.clear();
        if work.room_by(&work.tally, class, &lent) > work.room_by(&work.tally, class, bin) {
            holders.extend(by);
        }
    }
    for holder in holders {
        reasons.push(gangs::kept(work, holder));
    }
}

/// Why more cannot be had, pool by pool.
fn not_placed(work: &Work<'_>, missing: &Missing<'_>, class: usize, reasons: &mut Vec<Reason>) {
    let unit = &work.input.classes[class];
    for &p in work.pool_index.values() {
        let pool = &work.input.pools[p];
        let id = || pool.id.clone();
        let template = work.offers_of[p].iter().any(|o| {
            let offer = &work.offers[*o];
            work.matches(class, offer.kind) && offer.times(unit) > 0
        });
        let away = missing.reasons(work, class, p, template);
        let out = !away.is_empty();
        reasons.extend(away);
        let mut said = false;
        let mut differs = None;
        for &o in &work.offers_of[p] {
            let offer = &work.offers[o];
            if let Some(what) = work.kinds[offer.kind].differs(&unit.constraints) {
                differs = Some(what.to_string());
                continue;
            }
            let Some(alloc) = &offer.alloc else {
                push(reasons, offer.closed.clone());
                said = true;
                continue;
            };
            if work.plain[class] && alloc.gpus > 0 {
                differs = Some("it has GPUs, and none is wanted".to_owned());
                continue;
            }
            if offer.times(unit) == 0 {
                differs = Some(too_small(&unit.unit, alloc));
                continue;
            }
            said = true;
            push(reasons, Some(limit_reason(work, o)).flatten());
        }
        if said {
            continue;
        }
        let nodes = work.shapes.iter().filter(|((_, at, _), _)| *at == Some(p));
        let mut room = false;
        for ((kind, _, size), _) in nodes {
            match work.kinds[*kind].differs(&unit.constraints) {
                Some(what) => differs = differs.or_else(|| Some(what.to_string())),
                None if fits_ever(unit, size) => room = true,
                None => differs = Some(too_small(&unit.unit, size)),
            }
        }
        if pool.offerings.is_empty() && unread(pool) && !room {
            push(reasons, Some(unread_reason(pool)));
        } else if room {
            push(reasons, Some(Reason::NoRoom { pool: id() }));
        } else if !out {
            let what = differs
                .unwrap_or_else(|| "it has no nodes and nothing can be asked of it".to_owned());
            push(reasons, Some(Reason::PoolDiffers { pool: id(), what }));
        }
    }
}

/// What keeps an offer that would do from being asked (more).
pub(super) fn limit_reason(work: &Work<'_>, o: usize) -> Option<Reason> {
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

pub(super) fn push(reasons: &mut Vec<Reason>, reason: Option<Reason>) {
    if let Some(reason) = reason
        && !reasons.contains(&reason)
    {
        reasons.push(reason);
    }
}

fn fits_ever(class: &crate::model::Class, size: &Resources) -> bool {
    class.unit.fits(size)
}

fn too_small(unit: &Resources, size: &Resources) -> String {
    let mut what = Vec::new();
    if unit.gpus > size.gpus {
        what.push(format!(
            "{} GPUs wanted, a node has {}",
            unit.gpus, size.gpus
        ));
    }
    if unit.cpu > size.cpu {
        what.push(format!(
            "{} milli-CPU wanted, a node has {}",
            unit.cpu.0, size.cpu.0
        ));
    }
    if unit.memory > size.memory {
        what.push(format!(
            "{} MiB wanted, a node has {}",
            unit.memory.0 >> 20,
            size.memory.0 >> 20
        ));
    }
    for (name, amount) in &unit.extended {
        let have = size.extended.get(name).copied().unwrap_or(0);
        if *amount > have {
            what.push(format!("{amount} {name} wanted, a node has {have}"));
        }
    }
    if what.is_empty() {
        "its nodes are too small".to_owned()
    } else {
        what.join(", ")
    }
}

/// What a class asks besides its amounts.
fn wants(work: &Work<'_>, class: usize) -> String {
    let c = &work.input.classes[class].constraints;
    let mut all = Vec::new();
    if !c.gpu_model.is_empty() {
        all.push(format!("a GPU like \"{}\"", c.gpu_model));
    }
    if !c.pools.is_empty() {
        let names: Vec<&str> = c.pools.iter().map(crate::model::PoolId::as_str).collect();
        all.push(format!("pool {}", names.join(" or ")));
    }
    all.extend(c.requirements.iter().map(matching::words));
    if !c.any_of.is_empty() {
        all.push(matching::words_of_any(&c.any_of));
    }
    all.join(", ")
}
