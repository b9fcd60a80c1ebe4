//! Takes what is at fault out of a plan, with what depends on it, and counts the report anew. Called by `check`; judges
//! nothing.

use super::Violation;
use crate::model::{Action, Dropped, Lifecycle, NodeId, PlanInput, Planned, Reason, Run, Target};
use std::collections::{BTreeMap, BTreeSet};

/// Adds, for each class, so many of its runs before the first that is at fault.
pub(super) fn with_those_before<'v>(
    runs: &[Run],
    bad: &mut BTreeMap<usize, &'v Violation>,
    more: usize,
) {
    let mut first: BTreeMap<u32, (usize, &'v Violation)> = BTreeMap::new();
    for (at, violation) in bad.iter() {
        if let Some(run) = runs.get(*at) {
            first.entry(run.class).or_insert((*at, violation));
        }
    }
    let mut left: BTreeMap<u32, usize> = first.keys().map(|class| (*class, more)).collect();
    for (at, run) in runs.iter().enumerate().rev() {
        let (Some((end, violation)), Some(left)) =
            (first.get(&run.class), left.get_mut(&run.class))
        else {
            continue;
        };
        if at < *end && *left > 0 {
            *left -= 1;
            bad.insert(at, violation);
        }
    }
}

pub(super) fn drop_bad(
    planned: &mut Planned,
    bad_actions: &BTreeMap<usize, &Violation>,
    bad_runs: &BTreeMap<usize, &Violation>,
    reasons: &mut BTreeMap<u32, Reason>,
) {
    let say = |v: &Violation| Reason::CheckDropped {
        invariant: v.invariant.to_owned(),
        why: v.why.clone(),
    };
    let mut new_index: BTreeMap<usize, u32> = BTreeMap::new();
    let mut kept = Vec::new();
    let mut gone: BTreeMap<usize, Reason> = BTreeMap::new();
    let mut uncordoned = BTreeMap::new();
    for (i, action) in std::mem::take(&mut planned.plan.actions)
        .into_iter()
        .enumerate()
    {
        if let Some(v) = bad_actions.get(&i) {
            gone.insert(i, say(v));
            if let Action::Uncordon { node, .. } = &action {
                uncordoned.insert(node.clone(), say(v));
            }
            let dropped = Dropped {
                action,
                invariant: v.invariant.to_owned(),
                why: v.why.clone(),
            };
            planned.report.dropped.push(dropped);
        } else {
            new_index.insert(i, u32::try_from(kept.len()).unwrap_or(u32::MAX));
            kept.push(action);
        }
    }
    planned.plan.actions = kept;
    let mut runs: Vec<Run> = Vec::new();
    for (i, mut run) in std::mem::take(&mut planned.plan.runs)
        .into_iter()
        .enumerate()
    {
        let why = match &mut run.target {
            Target::New {
                action,
                would: false,
                ..
            } => {
                let old = *action as usize;
                if let Some(new) = new_index.get(&old) {
                    *action = *new;
                }
                gone.get(&old)
            }
            Target::Node(node) => uncordoned.get(node),
            _ => None,
        };
        let why = why.cloned().or_else(|| bad_runs.get(&i).map(|v| say(v)));
        match why {
            Some(reason) => drop(reasons.entry(run.class).or_insert(reason)),
            None => runs.push(run),
        }
    }
    planned.plan.runs = runs;
}

/// Figures of the report after something was dropped.
pub(super) fn recount(input: &PlanInput, planned: &mut Planned, reasons: &BTreeMap<u32, Reason>) {
    let coming: BTreeSet<_> = input
        .nodes
        .iter()
        .filter(|n| n.lifecycle != Lifecycle::Ready && n.drain.is_none())
        .map(|n| &n.id)
        .collect();
    let own_cordoned = |id: &NodeId| {
        input
            .nodes
            .iter()
            .any(|n| n.id == *id && n.cordon.is_some())
    };
    for (i, outcome) in planned.report.classes.iter_mut().enumerate() {
        (outcome.fitted, outcome.coming, outcome.grown) = (0, 0, 0);
        for run in planned.plan.runs.iter().filter(|r| r.class as usize == i) {
            let slot = match &run.target {
                Target::New { would: true, .. } => continue,
                Target::New { .. } => &mut outcome.grown,
                Target::Coming(..) => &mut outcome.coming,
                Target::Node(id) if coming.contains(id) && !own_cordoned(id) => &mut outcome.coming,
                Target::Node(_) => &mut outcome.fitted,
            };
            *slot = slot.saturating_add(run.count);
        }
        let count = input.classes.get(i).map_or(0, |c| c.count);
        let placed = outcome
            .fitted
            .saturating_add(outcome.coming)
            .saturating_add(outcome.grown);
        outcome.unplaced = count.saturating_sub(placed);
        if let Some(reason) = u32::try_from(i).ok().and_then(|i| reasons.get(&i)) {
            outcome.reasons.insert(0, reason.clone());
        }
    }
    for dropped in &planned.report.dropped {
        if let Action::Launch {
            pool,
            offering,
            count,
            ..
        } = &dropped.action
        {
            let pool = input.pools.iter().find(|p| p.id == *pool);
            let price = pool
                .and_then(|p| p.offerings.iter().find(|o| o.id == *offering))
                .map(|o| o.price.0);
            let cost = price.unwrap_or(0).saturating_mul(u64::from(*count));
            planned.report.cost.0 = planned.report.cost.0.saturating_sub(cost);
        }
    }
}
