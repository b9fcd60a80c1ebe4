//! I3 for teams, and deadlines: nothing is launched for a team beyond its budget, nor for units that it would reach too
//! late. Called by `check` for the runs on new nodes.

use super::facts::Facts;
use super::names;
use super::{Culprit, Violation};
use crate::model::{Action, Class, NodeInput, Offering, Run, Target};
use crate::planner::teams::{Use, running, share};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (i, run) in facts.planned.plan.runs.iter().enumerate() {
        let hurried = facts.class(run).filter(|c| c.deadline.is_some());
        let Some(class) = hurried else { continue };
        let Some((_, offering)) = new(facts, run) else {
            continue;
        };
        let ready = facts.input.now.after(offering.boot);
        if class.deadline.is_some_and(|d| ready > d) {
            found.push(Violation {
                invariant: names::DEADLINE,
                why: "it would be ready after the deadline".to_owned(),
                culprit: Culprit::Run(i),
            });
        }
    }
    found.extend(teams(facts));
    found
}

/// The action and the offering of a run on a new node.
fn new<'a>(facts: &Facts<'a>, run: &Run) -> Option<(usize, &'a Offering)> {
    let Target::New {
        action,
        would: false,
        ..
    } = run.target
    else {
        return None;
    };
    match facts.planned.plan.actions.get(action as usize)? {
        Action::Launch { pool, offering, .. } => {
            let pool = facts.pools.get(pool)?;
            Some((action as usize, facts.offering(pool, offering)?))
        }
        _ => None,
    }
}

/// Per team and priority: what runs, what new nodes carry of this priority and above, and what goes to existing nodes of
/// higher priority.
fn teams(facts: &Facts<'_>) -> Vec<Violation> {
    let limits = &facts.input.policy.teams;
    if limits.is_empty() {
        return Vec::new();
    }
    let used = running(facts.input);
    let mut found = Vec::new();
    for (team, limit) in limits {
        let mine: Vec<(&Run, &Class)> = facts
            .planned
            .plan
            .runs
            .iter()
            .filter_map(|run| Some((run, facts.class(run)?)))
            .filter(|(_, class)| class.team == *team)
            .collect();
        let grown: BTreeMap<i32, usize> = mine
            .iter()
            .filter_map(|(run, class)| Some((class.priority, new(facts, run)?.0)))
            .collect();
        for (priority, action) in grown {
            let mut there = used.get(team.as_str()).copied().unwrap_or_default();
            let mut more = Use::default();
            for (run, class) in &mine {
                let amount = amount(facts, run, class);
                if new(facts, run).is_none() {
                    if class.priority > priority {
                        there = there.plus(amount);
                    }
                } else if class.priority >= priority {
                    more = more.plus(amount);
                }
            }
            if let Some(what) = there.beyond(more, limit) {
                found.push(Violation {
                    invariant: names::I3,
                    why: format!("the limit of {what} of team {team}"),
                    culprit: Culprit::Action(action),
                });
            }
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|v: &Violation| seen.insert(v.culprit));
    found
}

/// What a run takes of its node.
fn amount(facts: &Facts<'_>, run: &Run, class: &Class) -> Use {
    let each = |gpus, cpu, price| share(&class.unit, class.whole_node, gpus, cpu, price);
    let of = |offering: &Offering| {
        let size = offering.allocatable.as_ref();
        size.map(|s| each(s.gpus, s.cpu.0, offering.price.0))
    };
    let use_of = match &run.target {
        Target::Node(id) => facts.nodes.get(id).map(|node: &&NodeInput| {
            let size = &node.allocatable;
            each(size.gpus, size.cpu.0, node.price.0)
        }),
        Target::Coming(id, _) => facts.launches.get(id).and_then(|launch| {
            let pool = facts.pools.get(&launch.pool)?;
            of(facts.offering(pool, &launch.offering)?)
        }),
        Target::New { .. } => new(facts, run).and_then(|(_, offering)| of(offering)),
    };
    use_of.unwrap_or_default().times(run.count)
}
