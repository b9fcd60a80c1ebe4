//! I4: nodes that are asked for without demand are missing: for a pool's minimum and spare, for the headroom, or for a
//! gang that has its part elsewhere. Called by `actions` for each launch.

use super::actions::{Ask, ensure};
use super::facts::Facts;
use super::names;
use super::shares::{Room, share};
use crate::model::{
    Action, Busy, Cordon, Headroom, Lifecycle, NodeInput, PoolInput, Reason, Resources, Run, Target,
};

/// Every node asked for demand carries demand, the rest is missing. `before`: nodes that earlier actions ask for headroom;
/// returns the same after this one.
pub(super) fn once(
    facts: &Facts<'_>,
    pool: &PoolInput,
    ask: &Ask<'_>,
    before: u64,
) -> Result<u64, (&'static str, String)> {
    let index = u32::try_from(ask.index).unwrap_or(u32::MAX);
    let carrying = facts.on_new.range((index, 0)..=(index, u32::MAX)).count() as u64;
    let probe = matches!(ask.reason, Reason::Probe { .. });
    let elsewhere = for_gang(facts, ask);
    ensure(
        probe || elsewhere || carrying == u64::from(ask.for_demand),
        names::I4,
        || {
            format!(
                "{} nodes asked for demand, {carrying} carry any",
                ask.for_demand
            )
        },
    )?;
    let standing = u64::from(ask.count - ask.for_demand);
    let targets = if standing == 0 {
        0
    } else {
        targets(facts, pool)
    };
    let beyond = standing.saturating_sub(targets);
    if beyond == 0 {
        return Ok(before);
    }
    let missing = headroom(facts);
    ensure(before + beyond <= missing, names::I4, || {
        format!(
            "{standing} for minimum, spare and headroom, {} missing",
            targets + missing.saturating_sub(before)
        )
    })?;
    Ok(before + beyond)
}

/// Nodes that are missing for the minimum and the spare of a pool.
fn targets(facts: &Facts<'_>, pool: &PoolInput) -> u64 {
    let input = facts.input;
    let coming: u64 = input
        .launches
        .iter()
        .filter(|l| l.pool == pool.id && l.deadline > input.now)
        .map(|l| u64::from(l.count))
        .sum();
    let stay = |n: &NodeInput| {
        Facts::exists(n)
            && n.faulty.is_none()
            && !facts.leaving(n)
            && (n.cordon != Some(Cordon::Drover) || facts.uncordoned.contains(&n.id))
    };
    let staying = facts.nodes_of(pool).filter(|n| stay(n)).count() as u64 + coming;
    let idle = facts
        .nodes_of(pool)
        .filter(|n| {
            let free = n.lifecycle == Lifecycle::Ready || facts.uncordoned.contains(&n.id);
            free && facts.room(n).is_some()
                && matches!(n.busy, Busy::Idle { .. })
                && n.reserved.is_empty()
                && !facts.on_node.contains_key(&n.id)
                && !facts.held.contains(&n.id)
        })
        .count() as u64;
    let minimum = u64::from(pool.min).saturating_sub(staying);
    let spare = u64::from(pool.spare.max(likely(facts, pool))).saturating_sub(idle);
    minimum.max(spare)
}

/// Idle nodes that a pool may want since demand has just taken an idle or a new one, or waits for one.
fn likely(facts: &Facts<'_>, pool: &PoolInput) -> u32 {
    let Some(anticipate) = &pool.anticipate else {
        return 0;
    };
    let input = facts.input;
    let idle = |node: &NodeInput| {
        node.pool.as_ref() == Some(&pool.id)
            && (matches!(node.busy, Busy::Idle { .. }) || node.lifecycle == Lifecycle::Joined)
    };
    let takes = |run: &Run| match &run.target {
        Target::Node(id) => facts.nodes.get(id).is_some_and(|n| idle(n)),
        Target::Coming(id, _) => facts.launches.get(id).is_some_and(|l| l.pool == pool.id),
        Target::New { would: true, .. } => false,
        Target::New { action, .. } => matches!(
            facts.planned.plan.actions.get(*action as usize),
            Some(Action::Launch { pool: of, .. }) if *of == pool.id
        ),
    };
    let runs = facts.planned.plan.runs.iter().filter(|run| takes(run));
    let now = runs.filter_map(|run| Some(facts.class(run)?.submitted));
    let before = input.learnt.demanded.get(&pool.id).map(|d| d.at);
    let recent = now
        .chain(before)
        .any(|at| input.now < at.after(anticipate.spare_for));
    if recent { anticipate.spare } else { 0 }
}

/// Most nodes that are missing for headroom: a node for each unit. With one headroom those that nodes have room for are
/// taken off; several may share the same room, so there all of them count.
fn headroom(facts: &Facts<'_>) -> u64 {
    match facts.input.policy.headroom.as_slice() {
        [one] => u64::from(one.count).saturating_sub(room(facts, one)),
        all => all.iter().map(|h| u64::from(h.count)).sum(),
    }
}

/// Units that nodes that take work have room for after the plan's runs.
fn room(facts: &Facts<'_>, headroom: &Headroom) -> u64 {
    let most = match headroom.constraints.max_per_node {
        _ if !headroom.constraints.host_ports.is_empty() => 1,
        0 => u32::MAX,
        most => most,
    };
    let supply = facts
        .nodes
        .values()
        .filter(|n| n.lifecycle == Lifecycle::Ready && !facts.held.contains(&n.id));
    supply
        .filter_map(|node| {
            let mut room = facts.room(node)?;
            facts.take_runs(node, &mut room);
            let units = units(&headroom.unit, room, most.min(headroom.count));
            let may = units > 0 && facts.node_place(node).allows(&headroom.constraints);
            may.then_some(u64::from(units))
        })
        .sum()
}

/// Units that fit there, at most so many.
fn units(unit: &Resources, (mut room, mut shares): Room, most: u32) -> u32 {
    let beside = Resources {
        gpu_milli: 0,
        ..unit.clone()
    };
    if unit.gpu_milli == 0 {
        return beside.times(&room).min(most);
    }
    let mut fit = 0;
    while fit < most && beside.fits(&room) && share(&mut room, &mut shares, unit.gpu_milli) {
        room = room.minus(&beside);
        fit += 1;
    }
    fit
}

/// Asked for a request whose gang has a part and is not whole, at most a node for each unit of its minimum.
fn for_gang(facts: &Facts<'_>, ask: &Ask<'_>) -> bool {
    let Reason::AsksElsewhere { source, .. } = ask.reason else {
        return false;
    };
    facts.input.classes.iter().any(|class| {
        class.source == *source
            && class
                .gang
                .as_ref()
                .is_some_and(|g| g.assigned > 0 && g.assigned < g.min && ask.count <= g.min)
    })
}
