//! Puts the run's state into the plan and its report. Called once per run, after shrink. What is asked for and
//! uncordoned is in `actions`. Decides nothing.

mod actions;

use super::shrink::Shrunk;
use super::state::{Put, Work};
use super::supply::{At, Tier};
use super::{away, why, why_fleet};
use crate::model::{
    Action, ClassOutcome, Mode, NodeId, PLAN_VERSION, Plan, Planned, Reason, Report, Run, Target,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the plan does, indexed for the reasons.
#[derive(Default)]
pub(super) struct Done {
    pub uncordoned: BTreeSet<usize>,
    /// Drains and departures per node, with their reason.
    pub removed: BTreeMap<usize, Reason>,
    /// Why idle nodes stay.
    pub stays: BTreeMap<usize, Reason>,
    /// Nodes asked for, per pool.
    pub launched: BTreeMap<usize, u32>,
}

/// The whole result.
pub(super) fn assemble(work: &Work<'_>, shrunk: Shrunk) -> Planned {
    let mut plan = Plan::default();
    let mut done = Done {
        stays: shrunk.stays,
        ..Done::default()
    };
    actions::uncordons(work, &mut plan, &mut done);
    for (request, reason) in &work.releases {
        plan.actions.push(Action::Release {
            request: request.clone(),
            reason: reason.clone(),
        });
    }
    let mut runs: Vec<(Put, Target)> = Vec::new();
    let cost = actions::launches(work, &mut plan, &mut runs, &mut done);
    existing_runs(work, &mut runs);
    plan.runs = in_order(runs);
    for removal in shrunk.removals {
        let node = &work.input.nodes[removal.node];
        let (id, reason) = (node.id.clone(), removal.reason);
        done.removed.insert(removal.node, reason.clone());
        let action = if removal.leave {
            Action::Leave { node: id, reason }
        } else {
            Action::Drain {
                node: id,
                reason,
                how: removal.how,
            }
        };
        let mode = work.node_pool[removal.node].map(|p| work.input.pools[p].mode);
        if mode == Some(Mode::Full) {
            plan.actions.push(action)
        } else {
            plan.would.push(action)
        }
    }
    let mut report = Report {
        classes: Vec::new(),
        pools: why_fleet::pools(work, &done),
        nodes: why_fleet::nodes(work, &done),
        dropped: Vec::new(),
        cost: crate::model::MicroUsd(cost),
    };
    report.classes = classes(work, &plan);
    Planned {
        version: PLAN_VERSION,
        plan,
        report,
    }
}

/// Runs in the order in which the units were placed: in this order the rules between units hold, as the check sees.
fn in_order(mut runs: Vec<(Put, Target)>) -> Vec<Run> {
    runs.sort_by(|(a, at), (b, to)| (a.step, at).cmp(&(b.step, to)));
    let mut all: Vec<Run> = Vec::with_capacity(runs.len());
    for (put, target) in runs {
        let class = to_u32(put.class);
        match all.last_mut() {
            Some(last) if last.class == class && last.target == target => last.count += put.units,
            _ => all.push(Run {
                class,
                target,
                count: put.units,
            }),
        }
    }
    all
}

fn existing_runs(work: &Work<'_>, runs: &mut Vec<(Put, Target)>) {
    for bin in work.bins.iter().filter(|b| !b.would) {
        let target = match bin.at {
            At::Node(n) => Target::Node(work.input.nodes[n].id.clone()),
            At::Coming(l, n) => Target::Coming(work.input.launches[l].id.clone(), n),
        };
        runs.extend(bin.placed.iter().map(|put| (*put, target.clone())));
    }
}

fn classes(work: &Work<'_>, plan: &Plan) -> Vec<ClassOutcome> {
    let input = work.input;
    let joining: BTreeSet<&NodeId> = work
        .bins
        .iter()
        .filter(|b| b.tier == Tier::Coming)
        .filter_map(|b| match b.at {
            At::Node(n) => Some(&input.nodes[n].id),
            At::Coming(..) => None,
        })
        .collect();
    let mut outcomes: Vec<ClassOutcome> = input
        .classes
        .iter()
        .map(|class| ClassOutcome {
            source: class.source.clone(),
            fitted: 0,
            coming: 0,
            grown: 0,
            unplaced: class.count,
            reasons: Vec::new(),
            impossible: false,
            held: 0,
        })
        .collect();
    for run in &plan.runs {
        let Some(outcome) = outcomes.get_mut(run.class as usize) else {
            continue;
        };
        let slot = match &run.target {
            Target::New { would: true, .. } => continue,
            Target::New { .. } => &mut outcome.grown,
            Target::Coming(..) => &mut outcome.coming,
            Target::Node(id) if joining.contains(id) => &mut outcome.coming,
            Target::Node(_) => &mut outcome.fitted,
        };
        *slot += run.count;
        outcome.unplaced = outcome.unplaced.saturating_sub(run.count);
    }
    let held = |class: usize| -> u32 {
        let notes = work
            .notes
            .get(&class)
            .map_or(&[] as &[Reason], Vec::as_slice);
        notes
            .iter()
            .map(|r| {
                if let Reason::GangHolds { units, .. } = r {
                    *units
                } else {
                    0
                }
            })
            .sum()
    };
    let missing = away::missing(work);
    let places = why::Places::new(work);
    for (class, outcome) in outcomes.iter_mut().enumerate() {
        outcome.held = held(class);
        why::class(work, &places, &missing, class, outcome);
    }
    outcomes
}

pub(super) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
