//! Check: the invariants, read off the input and the plan alone. An action that violates one is dropped together with
//! what depends on it, loudly; the rest goes on. Called by `plan` before any plan leaves the core, and by tests and the
//! simulator through `violations`. **Invariant:** shares no bookkeeping with the planner; what it shares is
//! `matching` (what a label rule means).

mod actions;
mod budgets;
mod cheapest;
mod facts;
mod near;
mod removals;
mod runs;
mod standing;
mod taken;

use crate::model::{
    Action, ClassOutcome, Dropped, Lifecycle, NodeId, NodeOutcome, PlanInput, Planned, PoolOutcome,
    Reason, Run, Target,
};
use facts::Facts;
use std::collections::{BTreeMap, BTreeSet};

/// Names of the invariants, as in DESIGN 3, of two habits of DESIGN 9, and of what demand states.
pub(super) mod names {
    pub const I1: &str = "I1 no_job_killed";
    pub const I3: &str = "I3 never_beyond_limits";
    pub const I4: &str = "I4 ask_once";
    pub const I5: &str = "I5 mine_only";
    pub const I6: &str = "I6 silence_is_not_death";
    pub const I7: &str = "I7 undo_only_own";
    pub const I8: &str = "I8 gang_whole";
    pub const I9: &str = "I9 always_explained";
    pub const I11: &str = "I11 bounded_retry";
    pub const I12: &str = "I12 cheapest_first";
    pub const I13: &str = "I13 idle_needs_witnesses";
    pub const MODE: &str = "pool mode";
    pub const STOP: &str = "pool stopped";
    pub const DEADLINE: &str = "deadline";
}

/// What is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Culprit {
    /// Index in the plan's actions.
    Action(usize),
    /// Index in the plan's runs.
    Run(usize),
    /// The report lacks something.
    Report,
}

/// One violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name, as in DESIGN 3.
    pub invariant: &'static str,
    /// Why, for people.
    pub why: String,
    /// What is at fault.
    pub culprit: Culprit,
}

/// All that a plan violates; empty for a plan that may be executed.
#[must_use]
pub fn violations(input: &PlanInput, planned: &Planned) -> Vec<Violation> {
    let facts = Facts::new(input, planned);
    let mut found = runs::check(&facts);
    found.extend(actions::check(&facts));
    found.extend(budgets::check(&facts));
    found.extend(report(input, planned));
    found
}

/// Drops what violates an invariant, with what depends on it. Pure.
#[must_use]
pub fn check(input: &PlanInput, mut planned: Planned) -> Planned {
    let mut reasons: BTreeMap<u32, Reason> = BTreeMap::new();
    // Each round removes at least one action or run, or ends. Of a class that is at fault again and again twice as many
    // runs go each time, so that there are few rounds, however many runs there are.
    let rounds = planned.plan.actions.len() + planned.plan.runs.len() + 2;
    let mut changed = false;
    for round in 0..rounds {
        let found = violations(input, &planned);
        if found.is_empty() {
            break;
        }
        let mut bad_actions: BTreeMap<usize, &Violation> = BTreeMap::new();
        let mut bad_runs: BTreeMap<usize, &Violation> = BTreeMap::new();
        for violation in &found {
            match violation.culprit {
                Culprit::Action(a) => drop(bad_actions.entry(a).or_insert(violation)),
                Culprit::Run(r) => drop(bad_runs.entry(r).or_insert(violation)),
                Culprit::Report => {}
            }
        }
        if bad_actions.is_empty() && bad_runs.is_empty() {
            break;
        }
        changed = true;
        let more = (1_usize << round.min(40)) - 1;
        with_those_before(&planned.plan.runs, &mut bad_runs, more);
        drop_bad(&mut planned, &bad_actions, &bad_runs, &mut reasons);
    }
    if changed {
        recount(input, &mut planned, &reasons);
    }
    complete(input, &mut planned);
    planned
}

/// Adds, for each class, so many of its runs before the first that is at fault.
fn with_those_before<'v>(runs: &[Run], bad: &mut BTreeMap<usize, &'v Violation>, more: usize) {
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

fn drop_bad(
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
fn recount(input: &PlanInput, planned: &mut Planned, reasons: &BTreeMap<u32, Reason>) {
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

/// I9: a report without a gap.
fn report(input: &PlanInput, planned: &Planned) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |why: String| {
        found.push(Violation {
            invariant: names::I9,
            why,
            culprit: Culprit::Report,
        })
    };
    let report = &planned.report;
    if report.classes.len() != input.classes.len() {
        say(format!(
            "{} classes, {} outcomes",
            input.classes.len(),
            report.classes.len()
        ));
    }
    for (i, outcome) in report.classes.iter().enumerate() {
        if outcome.reasons.is_empty() || outcome.reasons.contains(&Reason::Unexplained) {
            say(format!("class {i} has no reason"));
        }
    }
    let pools: BTreeSet<_> = report
        .pools
        .iter()
        .filter(|p| !p.reasons.is_empty())
        .map(|p| &p.pool)
        .collect();
    for pool in input.pools.iter().filter(|p| !pools.contains(&p.id)) {
        say(format!("pool {} has no reason", pool.id));
    }
    let nodes: BTreeSet<_> = report.nodes.iter().map(|n| &n.node).collect();
    for node in input.nodes.iter().filter(|n| !nodes.contains(&n.id)) {
        say(format!("node {} has no reason", node.id));
    }
    found
}

/// Fills the gaps that `report` finds with a reason that shows the fault.
fn complete(input: &PlanInput, planned: &mut Planned) {
    let report = &mut planned.report;
    for class in input.classes.iter().skip(report.classes.len()) {
        report.classes.push(ClassOutcome {
            source: class.source.clone(),
            fitted: 0,
            coming: 0,
            grown: 0,
            unplaced: class.count,
            reasons: Vec::new(),
            impossible: false,
            held: 0,
        });
    }
    for outcome in report.classes.iter_mut().filter(|o| o.reasons.is_empty()) {
        outcome.reasons.push(Reason::Unexplained);
    }
    for outcome in report.pools.iter_mut().filter(|o| o.reasons.is_empty()) {
        outcome.reasons.push(Reason::Unexplained);
    }
    let pools: BTreeSet<_> = report.pools.iter().map(|p| p.pool.clone()).collect();
    for pool in input.pools.iter().filter(|p| !pools.contains(&p.id)) {
        report.pools.push(PoolOutcome {
            demanded: None,
            pool: pool.id.clone(),
            reasons: vec![Reason::Unexplained],
        });
    }
    let nodes: BTreeSet<_> = report.nodes.iter().map(|n| n.node.clone()).collect();
    for node in input.nodes.iter().filter(|n| !nodes.contains(&n.id)) {
        report.nodes.push(NodeOutcome {
            node: node.id.clone(),
            reason: Reason::Unexplained,
        });
    }
}
