//! Why, and why not: the reasons of classes, pools and nodes (I9). Called by `report`. Reads the run's state, changes
//! nothing, renders nothing.

use super::gangs;
use super::matching::Place;
use super::report::{Done, to_u32};
use super::shrink::kept_for;
use super::state::{At, Tier, Work, growth_stop, removal_stop};
use crate::model::{
    Busy, ClassOutcome, Cordon, Lifecycle, Locality, Mode, NodeInput, NodeOutcome, PoolOutcome,
    Reason, Resources, UnixMs,
};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons listed for one class or pool at most.
const LISTED: usize = 40;

/// Reasons of one class whose figures are known.
pub(super) fn class(work: &Work<'_>, class: usize, outcome: &mut ClassOutcome) {
    let unit = &work.input.classes[class];
    let mut reasons: Vec<Reason> = unit
        .constraints
        .unsupported
        .iter()
        .map(|rule| Reason::UnsupportedRule { rule: rule.clone() })
        .collect();
    reasons.extend(work.notes.get(&class).into_iter().flatten().cloned());
    placed(work, class, &mut reasons);
    if outcome.unplaced > 0 && unit.constraints.unsupported.is_empty() {
        let could = could_ever(work, class);
        let least = unit.gang.as_ref().map_or(1, |g| g.min.max(1));
        if could.units == 0 {
            outcome.impossible = true;
            let first = if work.input.pools.is_empty() {
                Reason::NoPools
            } else {
                Reason::NoPoolOffers {
                    unit: unit.unit.clone(),
                    wants: wants(work, class),
                }
            };
            reasons.insert(0, first);
        } else if could.units < least {
            outcome.impossible = true;
            reasons.insert(
                0,
                Reason::GangShort {
                    min: least,
                    could: could.units,
                    place: could.place,
                },
            );
        }
        not_placed(work, class, &mut reasons);
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

/// Where its units go.
fn placed(work: &Work<'_>, class: usize, reasons: &mut Vec<Reason>) {
    let now = work.input.now;
    let (mut units, mut nodes, mut joining) = (0, 0, false);
    let mut asked: BTreeMap<usize, (u32, UnixMs)> = BTreeMap::new();
    for bin in work.bins.iter().filter(|b| !b.would) {
        let here: u32 = bin
            .placed
            .iter()
            .filter(|p| p.0 == class)
            .map(|p| p.1)
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
    for group in work.groups.iter().filter(|g| g.units(class) > 0) {
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

/// Why more cannot be had, pool by pool.
fn not_placed(work: &Work<'_>, class: usize, reasons: &mut Vec<Reason>) {
    let unit = &work.input.classes[class];
    for &p in work.pool_index.values() {
        let pool = &work.input.pools[p];
        let id = || pool.id.clone();
        let mut said = false;
        let mut differs = None;
        for (o, offer) in work.offers.iter().enumerate().filter(|(_, o)| o.pool == p) {
            if let Some(what) = work.kinds[offer.kind].differs(&unit.constraints) {
                differs = Some(what.to_string());
                continue;
            }
            let Some(alloc) = &offer.alloc else {
                push(reasons, offer.closed.clone());
                said = true;
                continue;
            };
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
        if room {
            push(reasons, Some(Reason::NoRoom { pool: id() }));
        } else {
            let what = differs
                .unwrap_or_else(|| "it has no nodes and nothing can be asked of it".to_owned());
            push(reasons, Some(Reason::PoolDiffers { pool: id(), what }));
        }
    }
}

/// What keeps an offer that would do from being asked (more).
fn limit_reason(work: &Work<'_>, o: usize) -> Option<Reason> {
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

fn push(reasons: &mut Vec<Reason>, reason: Option<Reason>) {
    if let Some(reason) = reason {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
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
    for r in &c.requirements {
        let any: Vec<&str> = r.any_of.iter().map(String::as_str).collect();
        all.push(format!("{}={}", r.key, any.join("|")));
    }
    all.join(", ")
}

struct Could {
    units: u32,
    place: String,
}

/// Most units of a class that its best domain could ever hold, were everything idle and every limit but the pools'
/// maximum away.
fn could_ever(work: &Work<'_>, class: usize) -> Could {
    let unit = &work.input.classes[class];
    let locality = unit.gang.as_ref().map_or(Locality::Any, |g| g.locality);
    let fits = |size: &Resources| -> u32 {
        let n = if unit.whole_node {
            u32::from(unit.unit.fits(size))
        } else {
            unit.unit.times(size)
        };
        if unit.constraints.max_per_node == 0 {
            n
        } else {
            n.min(unit.constraints.max_per_node)
        }
    };
    // Per (domain, pool): units on nodes that exist, and on a pool grown to its maximum.
    let mut sums: BTreeMap<(gangs::Domain, Option<usize>), (u32, u32)> = BTreeMap::new();
    let mut best_node = 0;
    let domain = |place: &Place<'_>| match locality {
        Locality::Any | Locality::Node => Some(gangs::Domain::Any),
        Locality::Site => Some(gangs::Domain::Site(place.site?.to_string())),
        Locality::Zone if place.zone.is_empty() => None,
        Locality::Zone => Some(gangs::Domain::Zone(
            place.site?.to_string(),
            place.zone.to_owned(),
        )),
        Locality::Pool => work
            .pool_index
            .get(place.pool?)
            .map(|p| gangs::Domain::Pool(*p)),
    };
    for ((kind, pool, size), nodes) in &work.shapes {
        let place = &work.kinds[*kind];
        if let (true, Some(d)) = (work.matches(class, *kind), domain(place)) {
            let slot = sums.entry((d, *pool)).or_default();
            slot.0 = slot.0.saturating_add(fits(size).saturating_mul(*nodes));
            best_node = best_node.max(fits(size));
        }
    }
    for offer in &work.offers {
        let place = &work.kinds[offer.kind];
        let pool = &work.input.pools[offer.pool];
        if pool.max == 0 || !work.matches(class, offer.kind) {
            continue;
        }
        // An unknown type might do.
        let each = if offer.alloc.is_some() {
            offer.times(unit)
        } else {
            u32::MAX
        };
        let stock = pool
            .offerings
            .iter()
            .find(|o| o.id == *offer.id)
            .and_then(|o| o.available);
        let most = stock.map_or(pool.max, |n| {
            pool.max
                .min(work.counts[offer.pool].present.saturating_add(n))
        });
        if let Some(d) = domain(place) {
            let slot = sums.entry((d, Some(offer.pool))).or_default();
            slot.1 = slot.1.max(each.saturating_mul(most));
            best_node = best_node.max(each);
        }
    }
    let mut by_domain: BTreeMap<gangs::Domain, u32> = BTreeMap::new();
    for ((d, _), (have, grown)) in sums {
        let slot = by_domain.entry(d).or_insert(0);
        *slot = slot.saturating_add(have.max(grown));
    }
    if locality == Locality::Node {
        return Could {
            units: best_node,
            place: "one node".to_owned(),
        };
    }
    let best = by_domain
        .into_iter()
        .max_by_key(|(d, n)| (*n, std::cmp::Reverse(d.clone())));
    best.map_or(
        Could {
            units: 0,
            place: String::new(),
        },
        |(d, units)| Could {
            units,
            place: gangs::name(work, &d),
        },
    )
}

/// Every pool's current reasons.
pub(super) fn pools(work: &Work<'_>, done: &Done) -> Vec<PoolOutcome> {
    let mut quota: BTreeMap<usize, u32> = BTreeMap::new();
    let mut removed: BTreeMap<usize, u32> = BTreeMap::new();
    for (node, why) in &done.stays {
        if let (Reason::QuotaUsed { quota: q }, Some(p)) = (why, work.node_pool[*node]) {
            quota.insert(p, *q);
        }
    }
    for node in done.removed.keys() {
        if let Some(p) = work.node_pool[*node] {
            *removed.entry(p).or_insert(0) += 1;
        }
    }
    let mut all = Vec::with_capacity(work.input.pools.len());
    for (p, pool) in work.input.pools.iter().enumerate() {
        let mut reasons: Vec<Reason> = Vec::new();
        reasons.extend(
            work.bad_pools
                .get(&p)
                .into_iter()
                .flatten()
                .map(|w| Reason::BadInput { what: w.clone() }),
        );
        reasons.extend(
            pool.stops
                .iter()
                .map(|s| Reason::Stopped { stop: s.clone() }),
        );
        for offer in work.offers.iter().filter(|o| o.pool == p) {
            if let Some(r @ (Reason::UnknownType { .. } | Reason::OutOfCapacity { .. })) =
                &offer.closed
            {
                push(&mut reasons, Some(r.clone()));
            }
        }
        if let Some((minimum, spare)) = work.below.get(&p) {
            reasons.push(Reason::BelowTarget {
                minimum: *minimum,
                spare: *spare,
            });
        }
        if pool.max > 0 && work.ledger.pool.get(p) == Some(&0) {
            reasons.push(Reason::AtMaximum {
                pool: pool.id.clone(),
                max: pool.max,
            });
        }
        if let Some(q) = quota.get(&p) {
            reasons.push(Reason::QuotaUsed { quota: *q });
        }
        if let Some(n) = done.launched.get(&p) {
            reasons.push(Reason::Growing { nodes: *n });
        }
        if let Some(n) = removed.get(&p) {
            reasons.push(Reason::Shrinking { nodes: *n });
        }
        if pool.mode != Mode::Full {
            reasons.push(Reason::ModeForbids { mode: pool.mode });
        }
        if reasons.is_empty() {
            reasons.push(Reason::Settled);
        }
        reasons.truncate(LISTED);
        all.push(PoolOutcome {
            pool: pool.id.clone(),
            reasons,
        });
    }
    all
}

/// Every node's current reason.
pub(super) fn nodes(work: &Work<'_>, done: &Done) -> Vec<NodeOutcome> {
    let kept: BTreeSet<usize> = work
        .bins
        .iter()
        .filter(|b| !b.placed.is_empty() || !b.held.is_empty())
        .filter_map(|b| {
            if let At::Node(n) = b.at {
                Some(n)
            } else {
                None
            }
        })
        .collect();
    let all = work.input.nodes.iter().enumerate();
    all.map(|(i, node)| NodeOutcome {
        node: node.id.clone(),
        reason: node_reason(work, done, &kept, i, node),
    })
    .collect()
}

fn node_reason(
    work: &Work<'_>,
    done: &Done,
    kept: &BTreeSet<usize>,
    i: usize,
    node: &NodeInput,
) -> Reason {
    if let Some(what) = work.bad_nodes.get(&i) {
        return Reason::BadInput { what: what.clone() };
    }
    let Some(p) = work.node_pool[i] else {
        return Reason::Foreign;
    };
    let pool = &work.input.pools[p];
    match node.lifecycle {
        Lifecycle::Leaving | Lifecycle::Gone | Lifecycle::Off => return Reason::NotThere,
        Lifecycle::Requested | Lifecycle::Launched => return Reason::NotJoined,
        _ => {}
    }
    if node.unreachable {
        return Reason::Unreachable;
    }
    if let Some(what) = &node.faulty {
        return Reason::Faulty { what: what.clone() };
    }
    if let Some(Cordon::Person { who, .. }) = &node.cordon {
        return Reason::CordonedByPerson { who: who.clone() };
    }
    if done.uncordoned.contains(&i) {
        return kept_for(work, i);
    }
    if let Some(reason) = done.removed.get(&i) {
        return reason.clone();
    }
    if let (Lifecycle::Drained, Some(why)) = (node.lifecycle, done.stays.get(&i)) {
        return why.clone();
    }
    if let Some(drain) = &node.drain {
        return Reason::Draining {
            reason: drain.reason.clone(),
        };
    }
    if !node.reserved.is_empty() {
        return Reason::HeldBy {
            requests: node
                .reserved
                .iter()
                .map(|r| r.request.to_string())
                .collect(),
        };
    }
    match &node.busy {
        Busy::Unknown { why } => Reason::WitnessMissing { why: why.clone() },
        Busy::Working { what, .. } if under_used(node) => {
            Reason::UnderUsedOccupied { what: what.clone() }
        }
        Busy::Working { what, .. } => Reason::Working { what: what.clone() },
        Busy::Idle { since } => {
            if kept.contains(&i) {
                kept_for(work, i)
            } else if node.lifecycle == Lifecycle::Joined {
                Reason::NotReady
            } else if let Some(why) = done.stays.get(&i) {
                why.clone()
            } else if !pool.removable {
                Reason::Free
            } else if let Some(stop) = removal_stop(pool).or_else(|| growth_stop(pool)) {
                Reason::Stopped { stop: stop.clone() }
            } else {
                Reason::IdleUntil {
                    until: since.after(pool.idle_after),
                }
            }
        }
    }
}

/// Works on less than half of what it has.
fn under_used(node: &NodeInput) -> bool {
    let (used, all) = (&node.used, &node.allocatable);
    if all.gpus > 0 {
        used.gpus.saturating_mul(2) < all.gpus
    } else {
        used.cpu.0.saturating_mul(2) < all.cpu.0
    }
}
