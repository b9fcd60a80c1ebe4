//! Removals: ours, idle by evidence or all of its work movable, within the quota, the disruption budgets and the pool's
//! minimum (I1, I3, I5, I6, I7, I13). Called by `actions` for each drain and each departure.

use super::actions::{Tally, Verdict, ensure, mine};
use super::facts::Facts;
use super::names;
use crate::model::{
    Busy, Cordon, Emptying, Lifecycle, Mode, NodeId, NodeInput, PoolInput, PoolKind, Quota, Reason,
    Stop,
};

type Found<'a> = Result<(&'a NodeInput, &'a PoolInput), (&'static str, String)>;

/// A node that may be removed at all, as far as its pool and its state go.
fn removable<'a>(facts: &'a Facts<'a>, tally: &mut Tally<'a>, id: &'a NodeId) -> Found<'a> {
    let (node, pool) = mine(facts, tally, id)?;
    ensure(pool.mode == Mode::Full, names::MODE, || {
        format!("{} may not be shrunk", pool.id)
    })?;
    ensure(pool.removable, names::I5, || {
        format!("{} has no way to remove a node", pool.id)
    })?;
    let held = pool
        .stops
        .iter()
        .any(|s| matches!(s, Stop::Stale { .. } | Stop::NoRemoval { .. }));
    ensure(!held, names::STOP, || {
        format!("removal from {} holds", pool.id)
    })?;
    ensure(!node.unreachable, names::I6, || format!("{id} is silent"))?;
    ensure(
        !matches!(node.cordon, Some(Cordon::Person { .. })),
        names::I7,
        || format!("{id} is cordoned by a person"),
    )?;
    ensure(node.reserved.is_empty(), names::I1, || {
        format!("{id} is held by a request")
    })?;
    ensure(!facts.on_node.contains_key(id), names::I1, || {
        format!("{id} gets work in this plan")
    })?;
    Ok((node, pool))
}

pub(super) fn leave<'a>(facts: &'a Facts<'a>, tally: &mut Tally<'a>, id: &'a NodeId) -> Verdict {
    let (node, _) = removable(facts, tally, id)?;
    idle(node)?;
    let ours = node.cordon == Some(Cordon::Drover)
        && (node.faulty.is_some() || node.drain.as_ref().is_some_and(|d| d.own_idle));
    ensure(
        ours && node.lifecycle == Lifecycle::Drained,
        names::I1,
        || format!("{id} is not drained by us"),
    )
}

pub(super) fn drain<'a>(
    facts: &'a Facts<'a>,
    tally: &mut Tally<'a>,
    id: &'a NodeId,
    reason: &Reason,
    how: Emptying,
) -> Verdict {
    let (node, pool) = removable(facts, tally, id)?;
    ensure(
        node.drain.is_none() && matches!(node.lifecycle, Lifecycle::Ready | Lifecycle::Joined),
        names::I4,
        || format!("{id} is on its way out already"),
    )?;
    let now = facts.input.now;
    let expired = pool
        .expire_after
        .zip(node.launched)
        .is_some_and(|(age, born)| born.after(age) <= now);
    if how == Emptying::Evict {
        moves(facts, node)?;
    } else {
        let since = idle(node)?;
        if node.faulty.is_some() {
            ensure(pool.kind != PoolKind::Static, names::I5, || {
                format!("{id} is physical and faulty: a person's")
            })?;
        } else {
            ensure(
                expired || since.after(pool.idle_after) <= now,
                names::I13,
                || format!("{id} is not idle for long enough"),
            )?;
        }
    }
    quota(facts, tally, pool, reason)?;
    if node.faulty.is_none() && node.cordon.is_none() && !expired {
        minimum(facts, tally, pool)?;
    }
    Ok(())
}

/// I13: idle by evidence; I1: not at work.
fn idle(node: &NodeInput) -> Result<crate::model::UnixMs, (&'static str, String)> {
    match &node.busy {
        Busy::Idle { since } => Ok(*since),
        Busy::Working { .. } => Err((names::I1, format!("{} works", node.id))),
        Busy::Unknown { why } => Err((names::I13, format!("{}: {why}", node.id))),
    }
}

/// I1: only work that says so is moved, and only where the policy consolidates.
fn moves(facts: &Facts<'_>, node: &NodeInput) -> Verdict {
    ensure(facts.input.policy.consolidate, names::I1, || {
        "the policy moves no work".to_owned()
    })?;
    let all_move = matches!(node.busy, Busy::Working { movable: true, .. })
        && node.workloads.iter().all(|w| w.movable);
    ensure(all_move, names::I1, || {
        format!("not all work on {} says that it can move", node.id)
    })?;
    ensure(
        node.lifecycle == Lifecycle::Ready && node.cordon.is_none() && node.faulty.is_none(),
        names::I1,
        || format!("{} is not in service", node.id),
    )
}

/// What disruption budgets call the strategy behind a reason.
fn strategy(reason: &Reason) -> &'static str {
    match reason {
        Reason::Faulty { .. } => "faulty",
        Reason::ExpiredAt { .. } => "expired",
        Reason::IdleSince { .. } => "empty",
        Reason::Surplus { .. } => "surplus",
        Reason::Replaceable { .. } => "replaceable",
        _ => "",
    }
}

/// I3: the removal quota and the disruption budgets.
fn quota<'a>(
    facts: &'a Facts<'a>,
    tally: &mut Tally<'a>,
    pool: &'a PoolInput,
    reason: &Reason,
) -> Verdict {
    let all: Vec<&NodeInput> = facts.nodes_of(pool).filter(|n| Facts::exists(n)).collect();
    let size = all.len() as u64;
    let under_way = all.iter().filter(|n| facts.leaving(n)).count() as u64;
    let most = |quota: Quota| match quota {
        Quota::Count(n) => u64::from(n),
        Quota::Percent(p) => (size * u64::from(p)).div_ceil(100),
    };
    let begun = tally.removed.entry(&pool.id).or_insert(0);
    ensure(under_way + *begun < most(pool.quota), names::I3, || {
        format!(
            "more than {} nodes of {} at once",
            most(pool.quota),
            pool.id
        )
    })?;
    for budget in &pool.disruption {
        let over = budget.until.is_some_and(|at| at <= facts.input.now);
        let meant = budget.strategies.is_empty() || budget.strategies.contains(strategy(reason));
        ensure(
            over || !meant || under_way + *begun < most(budget.most),
            names::I3,
            || format!("more than disruption budget {} allows", budget.name),
        )?;
    }
    *begun += 1;
    Ok(())
}

/// I3: the pool's minimum.
fn minimum<'a>(facts: &'a Facts<'a>, tally: &mut Tally<'a>, pool: &'a PoolInput) -> Verdict {
    let stay = |n: &&NodeInput| {
        Facts::exists(n)
            && n.faulty.is_none()
            && !facts.leaving(n)
            && (n.cordon != Some(Cordon::Drover) || facts.uncordoned.contains(&n.id))
    };
    let staying = facts.nodes_of(pool).filter(stay).count() as u64;
    let begun = tally.sound.entry(&pool.id).or_insert(0);
    ensure(
        staying > u64::from(pool.least()) + *begun,
        names::I3,
        || format!("{} is at its minimum", pool.id),
    )?;
    *begun += 1;
    Ok(())
}
