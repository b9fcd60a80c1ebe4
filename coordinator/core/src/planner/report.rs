//! Puts the run's state into the plan and its report. Called once per run, after shrink. Decides nothing.

use super::ledger::spent;
use super::shrink::Shrunk;
use super::state::{Put, Work};
use super::supply::{At, Tier};
use super::{away, why, why_fleet};
use crate::model::{
    Action, ClassOutcome, Mode, NodeId, PLAN_VERSION, Plan, Planned, Reason, Report, Run, Source,
    Target,
};
use std::collections::{BTreeMap, BTreeSet};

/// Sources named in one reason at most.
const NAMED: usize = 10;

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
    uncordons(work, &mut plan, &mut done);
    for (request, reason) in &work.releases {
        plan.actions.push(Action::Release {
            request: request.clone(),
            reason: reason.clone(),
        });
    }
    let mut runs: Vec<(Put, Target)> = Vec::new();
    let cost = launches(work, &mut plan, &mut runs, &mut done);
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

fn uncordons(work: &Work<'_>, plan: &mut Plan, done: &mut Done) {
    for bin in work.bins.iter().filter(|b| b.tier == Tier::OwnCordoned) {
        let At::Node(n) = bin.at else { continue };
        let free = work.kept_free.get(&n);
        if bin.placed.is_empty() && !work.kept_standing.contains(&n) && free.is_none() {
            continue;
        }
        let reason = if bin.placed.is_empty() {
            free.cloned().unwrap_or(Reason::KeptAsSpare)
        } else {
            let units = bin.placed.iter().map(|p| p.units).sum();
            Reason::Demand {
                sources: sources(work, bin.placed.iter().map(|p| p.class)),
                units,
                minimum: 0,
                spare: 0,
                headroom: 0,
            }
        };
        done.uncordoned.insert(n);
        let action = Action::Uncordon {
            node: work.input.nodes[n].id.clone(),
            reason,
        };
        if bin.would {
            plan.would.push(action)
        } else {
            plan.actions.push(action)
        }
    }
}

/// One launch per offer; returns the cost per hour after the plan.
fn launches(
    work: &Work<'_>,
    plan: &mut Plan,
    runs: &mut Vec<(Put, Target)>,
    done: &mut Done,
) -> u64 {
    let (mut cost, _) = spent(work);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (g, group) in work.groups.iter().enumerate() {
        groups.entry(group.offer).or_default().push(g);
    }
    for (o, offer) in work.offers.iter().enumerate() {
        let own = groups.get(&o).map_or(&[] as &[usize], Vec::as_slice);
        let for_demand: u32 = own.iter().map(|g| work.groups[*g].nodes).sum();
        let (minimum, spare) = work.standing.get(&o).copied().unwrap_or_default();
        let probes = work.probes.get(&o).copied().unwrap_or(0);
        let (kept, headroom) = work.headroom.get(&o).copied().unwrap_or_default();
        let count = for_demand + minimum + spare + kept + probes;
        if count == 0 {
            continue;
        }
        let list = if offer.would {
            &plan.would
        } else {
            &plan.actions
        };
        let action = to_u32(list.len());
        let mut units = 0;
        let mut node = 0;
        for g in own {
            let group = &work.groups[*g];
            for _ in 0..group.nodes {
                for put in &group.placed {
                    let target = Target::New {
                        action,
                        would: offer.would,
                        node,
                    };
                    runs.push((*put, target));
                    units += put.units;
                }
                node += 1;
            }
        }
        let whose = own
            .iter()
            .flat_map(|g| work.groups[*g].placed.iter().map(|p| p.class));
        let reason = match offer.probe {
            Some(failure) => Reason::Probe { failure },
            None => Reason::Demand {
                sources: sources(work, whose),
                units,
                minimum,
                spare,
                headroom,
            },
        };
        let pool = &work.input.pools[offer.pool];
        let launch = Action::Launch {
            pool: pool.id.clone(),
            offering: offer.id.clone(),
            count,
            for_demand: for_demand + probes,
            reason,
        };
        *done.launched.entry(offer.pool).or_insert(0) += count;
        if offer.would {
            plan.would.push(launch);
        } else {
            cost = cost.saturating_add(offer.price.saturating_mul(u64::from(count)));
            plan.actions.push(launch);
        }
    }
    cost.saturating_add(elsewhere(work, plan, done))
}

/// Launches for gangs that have a part in another place: their units have no runs yet. Returns their cost per hour.
fn elsewhere(work: &Work<'_>, plan: &mut Plan, done: &mut Done) -> u64 {
    let mut cost: u64 = 0;
    for ((o, class), (count, place)) in &work.elsewhere {
        let offer = &work.offers[*o];
        let unit = &work.input.classes[*class];
        plan.actions.push(Action::Launch {
            pool: work.input.pools[offer.pool].id.clone(),
            offering: offer.id.clone(),
            count: *count,
            for_demand: *count,
            reason: Reason::AsksElsewhere {
                source: unit.source.clone(),
                units: unit.gang.as_ref().map_or(0, |g| g.min),
                place: place.clone(),
            },
        });
        *done.launched.entry(offer.pool).or_insert(0) += count;
        cost = cost.saturating_add(offer.price.saturating_mul(u64::from(*count)));
    }
    cost
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

/// Distinct sources of classes, the first ten.
fn sources(work: &Work<'_>, classes: impl Iterator<Item = usize>) -> Vec<Source> {
    let distinct: BTreeSet<usize> = classes.collect();
    let mut named: Vec<Source> = Vec::new();
    for class in distinct {
        let source = &work.input.classes[class].source;
        if !named.contains(source) {
            named.push(source.clone());
        }
        if named.len() == NAMED {
            break;
        }
    }
    named
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
