//! I12: nothing is bought for a unit that still fits on a node that takes work, or that we cordoned and may take back.

use super::actions::Verdict;
use super::facts::Facts;
use super::names;
use crate::model::{Action, Mode, NodeInput, Resources, Stop};
use crate::planner::matching::Place;
use std::collections::{BTreeMap, BTreeSet};

/// Room that is left on one node after the plan's runs.
struct Spot<'a> {
    node: &'a NodeInput,
    place: Place<'a>,
    room: Resources,
    per_class: BTreeMap<u32, u32>,
}

/// All room that is left; empty for a plan that buys nothing.
pub(super) struct Spots<'a>(Vec<Spot<'a>>);

impl<'a> Spots<'a> {
    pub fn of(facts: &'a Facts<'a>) -> Self {
        let buys = |a: &Action| matches!(a, Action::Launch { .. });
        if !facts.planned.plan.actions.iter().any(buys) {
            return Self(Vec::new());
        }
        let spots = facts
            .nodes
            .values()
            .filter(|n| !facts.held.contains(&n.id))
            .filter_map(|node| spot(facts, node));
        Self(spots.collect())
    }

    /// None of the classes that the launch with this index serves fits on what is there.
    pub fn none_fits(&self, facts: &Facts<'_>, index: usize) -> Verdict {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let served: BTreeSet<u32> = facts
            .on_new
            .range((index, 0)..=(index, u32::MAX))
            .flat_map(|(_, runs)| runs.iter().map(|r| r.class))
            .collect();
        for at in served {
            let Some(class) = facts.input.classes.get(at as usize) else {
                continue;
            };
            // A gang looks for a whole, not for a hole; units of nothing fit everywhere.
            if class.gang.is_some() || class.whole_node || class.unit.is_zero() {
                continue;
            }
            let most = class.constraints.max_per_node;
            let fits = |spot: &&Spot<'_>| {
                class.unit.fits(&spot.room)
                    && (most == 0 || spot.per_class.get(&at).copied().unwrap_or(0) < most)
                    && spot.place.allows(&class.constraints)
            };
            if let Some(spot) = self.0.iter().find(fits) {
                return Err((
                    names::I12,
                    format!("a unit of class {at} still fits on {}", spot.node.id),
                ));
            }
        }
        Ok(())
    }
}

fn spot<'a>(facts: &Facts<'a>, node: &'a NodeInput) -> Option<Spot<'a>> {
    let untouchable = |s: &Stop| {
        matches!(
            s,
            Stop::Frozen { .. } | Stop::SiteSilent | Stop::NotOurs { .. }
        )
    };
    let back = Facts::may_uncordon(node)
        && node.reserved.is_empty()
        && facts
            .pool_of(node)
            .is_some_and(|p| p.mode != Mode::Observe && !p.stops.iter().any(untouchable));
    let mut room = if back {
        node.allocatable.minus(&node.used)
    } else {
        facts.room(node)?
    };
    let mut per_class = BTreeMap::new();
    for run in facts.on_node.get(&node.id).into_iter().flatten() {
        let Some(class) = facts.class(run) else {
            continue;
        };
        room = if class.whole_node {
            Resources::default()
        } else {
            room.minus(&class.unit.scaled(run.count))
        };
        let here: &mut u32 = per_class.entry(run.class).or_default();
        *here = here.saturating_add(run.count);
    }
    Some(Spot {
        node,
        place: facts.node_place(node),
        room,
        per_class,
    })
}
