//! The actions of a plan that serve demand and targets, with their reasons: nodes uncordoned, nodes asked for. Called by
//! `assemble`; removals are put in there.

use super::{Done, to_u32};
use crate::model::{Action, Plan, Reason, Source, Target};
use crate::planner::ledger::spent;
use crate::planner::state::{Put, Work};
use crate::planner::supply::{At, Tier};
use std::collections::BTreeSet;

/// Sources named in one reason at most.
const NAMED: usize = 10;

pub(super) fn uncordons(work: &Work<'_>, plan: &mut Plan, done: &mut Done) {
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
pub(super) fn launches(
    work: &Work<'_>,
    plan: &mut Plan,
    runs: &mut Vec<(Put, Target)>,
    done: &mut Done,
) -> u64 {
    let (mut cost, _) = spent(work);
    for (o, offer) in work.offers.iter().enumerate() {
        let own = work.groups.of(o);
        let for_demand: u32 = own.iter().map(|g| g.nodes).sum();
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
        for group in own {
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
        let whose = own.iter().flat_map(|g| g.placed.iter().map(|p| p.class));
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
