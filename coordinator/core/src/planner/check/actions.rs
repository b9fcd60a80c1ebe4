//! Actions: what is undone is ours (I7), what is bought is within limits and not bought twice (I3, I4, I11, I12). What is
//! removed: see `removals`.

use super::cheapest::Rooms;
use super::facts::Facts;
use super::names;
use super::removals;
use super::standing::once;
use super::{Culprit, Violation};
use crate::model::{
    Action, FailureKind, Mode, NodeId, NodeInput, OfferingId, PoolId, PoolInput, Reason, Stop,
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Verdict = Result<(), (&'static str, String)>;

/// What the actions accepted so far add up to.
#[derive(Default)]
pub(super) struct Tally<'a> {
    touched: BTreeSet<&'a NodeId>,
    launched: BTreeMap<&'a PoolId, u64>,
    asked: BTreeMap<&'a OfferingId, u64>,
    cost: u128,
    gpus: u64,
    /// Nodes asked for headroom.
    headroom: u64,
    /// Once something is bought.
    rooms: Option<Rooms<'a>>,
    pub removed: BTreeMap<&'a PoolId, u64>,
    /// Of them those that counted as staying.
    pub sound: BTreeMap<&'a PoolId, u64>,
}

pub(super) fn check<'a>(facts: &'a Facts<'a>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut tally = Tally::default();
    let (mut cost, mut gpus) = (0, 0);
    for pool in facts.pools.values() {
        let (c, g) = standing(facts, pool);
        cost += c;
        gpus += g;
    }
    (tally.cost, tally.gpus) = (cost, gpus);
    for (i, action) in facts.planned.plan.actions.iter().enumerate() {
        let verdict = match action {
            Action::Uncordon { node, .. } => uncordon(facts, &mut tally, node),
            Action::Release { .. } => Ok(()),
            Action::Launch {
                pool,
                offering,
                count,
                for_demand,
                reason,
            } => {
                let ask = Ask {
                    index: i,
                    pool,
                    offering,
                    count: *count,
                    for_demand: *for_demand,
                    reason,
                };
                launch(facts, &mut tally, &ask)
            }
            Action::Drain { node, reason, how } => {
                removals::drain(facts, &mut tally, node, reason, *how)
            }
            Action::Leave { node, .. } => removals::leave(facts, &mut tally, node),
        };
        if let Err((invariant, why)) = verdict {
            found.push(Violation {
                invariant,
                why,
                culprit: Culprit::Action(i),
            });
        }
    }
    found
}

pub(super) fn ensure(
    holds: bool,
    invariant: &'static str,
    why: impl FnOnce() -> String,
) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err((invariant, why()))
    }
}

/// A node of a pool of ours, not touched by another action.
pub(super) fn mine<'a>(
    facts: &'a Facts<'a>,
    tally: &mut Tally<'a>,
    id: &'a NodeId,
) -> Result<(&'a NodeInput, &'a PoolInput), (&'static str, String)> {
    let node = facts
        .nodes
        .get(id)
        .copied()
        .ok_or_else(|| (names::I5, format!("no node {id}")))?;
    let pool = facts
        .pool_of(node)
        .ok_or_else(|| (names::I5, format!("{id} is in no pool of ours")))?;
    for stop in &pool.stops {
        ensure(!matches!(stop, Stop::NotOurs { .. }), names::I5, || {
            format!("{} is not ours", pool.id)
        })?;
        ensure(*stop != Stop::SiteSilent, names::I6, || {
            format!("the site of {} is silent", pool.id)
        })?;
        ensure(!matches!(stop, Stop::Frozen { .. }), names::STOP, || {
            format!("{} is frozen", pool.id)
        })?;
    }
    ensure(tally.touched.insert(id), names::I4, || {
        format!("{id} is acted on twice")
    })?;
    Ok((node, pool))
}

fn uncordon<'a>(facts: &'a Facts<'a>, tally: &mut Tally<'a>, id: &'a NodeId) -> Verdict {
    let (node, pool) = mine(facts, tally, id)?;
    ensure(Facts::may_uncordon(node), names::I7, || {
        format!("{id} carries no cordon that we may take back")
    })?;
    ensure(pool.mode != Mode::Observe, names::MODE, || {
        format!("{} is only observed", pool.id)
    })
}

/// One launch of the plan.
pub(super) struct Ask<'a> {
    pub index: usize,
    pool: &'a PoolId,
    offering: &'a OfferingId,
    pub count: u32,
    pub for_demand: u32,
    pub reason: &'a Reason,
}

fn launch<'a>(facts: &'a Facts<'a>, tally: &mut Tally<'a>, ask: &Ask<'a>) -> Verdict {
    let pool = facts
        .pools
        .get(ask.pool)
        .copied()
        .ok_or_else(|| (names::I5, format!("no pool {}", ask.pool)))?;
    let id = &pool.id;
    ensure(pool.mode != Mode::Observe, names::MODE, || {
        format!("{id} is only observed")
    })?;
    for stop in &pool.stops {
        let (invariant, stopped) = match stop {
            Stop::NoRemoval { .. } | Stop::Stale { may_grow: true, .. } => continue,
            Stop::SiteSilent => (names::I6, "its site is silent"),
            Stop::NotOurs { .. } => (names::I5, "it is not ours"),
            Stop::NeverJoined { .. } => (names::I11, "its launches never joined"),
            _ => (names::STOP, "it is stopped"),
        };
        return Err((invariant, format!("no growth of {id}: {stopped}")));
    }
    let offering = facts
        .offering(pool, ask.offering)
        .ok_or_else(|| (names::I5, format!("{id} has no such offering")))?;
    let size = offering
        .allocatable
        .as_ref()
        .ok_or_else(|| (names::I9, "its type is unknown".to_owned()))?;
    memory(facts, tally, ask)?;
    let n = u64::from(ask.count);
    // I3.
    let there = present(facts, pool) + tally.launched.get(id).copied().unwrap_or(0);
    ensure(there + n <= u64::from(pool.max), names::I3, || {
        format!("{id} would have {} nodes, at most {}", there + n, pool.max)
    })?;
    let cost = tally.cost + u128::from(offering.price.0) * u128::from(n);
    let gpus = tally.gpus + u64::from(size.gpus) * n;
    let policy = &facts.input.policy;
    ensure(
        offering.price.0 == 0 || policy.max_cost.is_none_or(|m| cost <= u128::from(m.0)),
        names::I3,
        || "the fleet's limit of USD/h".to_owned(),
    )?;
    ensure(
        size.gpus == 0 || policy.max_gpus.is_none_or(|m| gpus <= u64::from(m)),
        names::I3,
        || "the fleet's limit of GPUs".to_owned(),
    )?;
    ensure(ask.for_demand <= ask.count, names::I4, || {
        "more for demand than in all".to_owned()
    })?;
    tally.headroom = once(facts, pool, ask, tally.headroom)?;
    let rooms = tally.rooms.get_or_insert_with(|| Rooms::new(facts));
    rooms.cheapest(facts, ask.index, size.gpus == 0)?;
    tally.cost = cost;
    tally.gpus = gpus;
    *tally.launched.entry(id).or_insert(0) += n;
    *tally.asked.entry(ask.offering).or_insert(0) += n;
    Ok(())
}

/// I11: no ask before its time, no more than the ration, counting what is under way.
fn memory<'a>(facts: &'a Facts<'a>, tally: &Tally<'a>, ask: &Ask<'a>) -> Verdict {
    let input = facts.input;
    let Some(entry) = input.memory.iter().find(|m| m.offering == *ask.offering) else {
        return Ok(());
    };
    if entry.kind == FailureKind::Throttle {
        return Ok(());
    }
    ensure(entry.next_probe <= input.now, names::I11, || {
        format!("{} is not due", ask.offering)
    })?;
    let under_way: u64 = input
        .launches
        .iter()
        .map(|l| u64::from(l.probing(entry, input.now)))
        .sum();
    let all =
        under_way + tally.asked.get(ask.offering).copied().unwrap_or(0) + u64::from(ask.count);
    ensure(all <= u64::from(entry.ration.max(1)), names::I11, || {
        format!("{} has a ration of {}", ask.offering, entry.ration.max(1))
    })
}

/// Nodes of a pool that count against its maximum.
fn present(facts: &Facts<'_>, pool: &PoolInput) -> u64 {
    let nodes = facts.nodes_of(pool).filter(|n| Facts::exists(n)).count() as u64;
    let coming: u64 = facts
        .input
        .launches
        .iter()
        .filter(|l| l.pool == pool.id)
        .map(|l| u64::from(l.count))
        .sum();
    nodes + coming + u64::from(pool.unmanaged)
}

/// Cost per hour and GPUs of what a pool has and what comes.
fn standing(facts: &Facts<'_>, pool: &PoolInput) -> (u128, u64) {
    let (mut cost, mut gpus) = (0, 0);
    for node in facts.nodes_of(pool).filter(|n| Facts::exists(n)) {
        cost += u128::from(node.price.0);
        gpus += u64::from(node.allocatable.gpus);
    }
    let each = |id: Option<&OfferingId>| {
        let chosen = pool
            .offerings
            .iter()
            .filter(|o| id.is_none_or(|id| o.id == *id));
        let price = chosen.clone().map(|o| o.price.0).max().unwrap_or(0);
        let gpus = chosen
            .filter_map(|o| o.allocatable.as_ref().map(|a| a.gpus))
            .max()
            .unwrap_or(0);
        (u128::from(price), u64::from(gpus))
    };
    let mut add = |(price, g): (u128, u64), count: u32| {
        cost += price * u128::from(count);
        gpus += g * u64::from(count);
    };
    for launch in facts.input.launches.iter().filter(|l| l.pool == pool.id) {
        add(each(Some(&launch.offering)), launch.count);
    }
    add(each(None), pool.unmanaged);
    (cost, gpus)
}
