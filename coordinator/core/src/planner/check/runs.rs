//! Placements: capacity is counted once (I4), only on what takes work (I6, I7), where the rules allow (I5), gangs whole
//! and together (I8).

use super::facts::Facts;
use super::names;
use super::{Culprit, Violation};
use crate::model::{Action, Class, Locality, NodeInput, Resources, Run, Source, Target};
use crate::planner::matching::Place;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut taken: BTreeMap<&Target, Taken> = BTreeMap::new();
    let mut units: BTreeMap<u32, u64> = BTreeMap::new();
    for (i, run) in facts.planned.plan.runs.iter().enumerate() {
        let mut say = |invariant, why: String| {
            found.push(Violation {
                invariant,
                why,
                culprit: Culprit::Run(i),
            })
        };
        let Some(class) = facts.class(run) else {
            say(names::I4, format!("no class {}", run.class));
            continue;
        };
        let sum = units.entry(run.class).or_insert(0);
        if *sum + u64::from(run.count) > u64::from(class.count) {
            say(
                names::I4,
                format!("more units placed than the {} that wait", class.count),
            );
            continue;
        }
        *sum += u64::from(run.count);
        if !class.constraints.unsupported.is_empty() {
            say(
                names::I9,
                "the class has rules that Drover does not know".to_owned(),
            );
            continue;
        }
        if matches!(run.target, Target::New { would: true, .. }) {
            continue;
        }
        let (place, room, empty) = match target(facts, run) {
            Ok(found) => found,
            Err((invariant, why)) => {
                say(invariant, why);
                continue;
            }
        };
        if let Some(differs) = place.differs(&class.constraints) {
            say(names::I5, format!("may not go there: {differs}"));
            continue;
        }
        let slot = taken
            .entry(&run.target)
            .or_insert_with(|| Taken::new(room, empty));
        if let Err(why) = slot.put(run, class) {
            say(names::I4, why);
        }
    }
    found.extend(gangs(facts));
    found
}

/// Room of one target, used up run by run.
struct Taken {
    room: Resources,
    empty: bool,
    per_class: BTreeMap<u32, u32>,
}

impl Taken {
    fn new(room: Resources, empty: bool) -> Self {
        Self {
            room,
            empty,
            per_class: BTreeMap::new(),
        }
    }

    fn put(&mut self, run: &Run, class: &Class) -> Result<(), String> {
        if class.whole_node {
            if !self.empty || run.count != 1 || !class.unit.fits(&self.room) {
                return Err("wants a whole node, which is not free".to_owned());
            }
            self.room = Resources::default();
        } else {
            let amount = class.unit.scaled(run.count);
            if run.count > class.unit.times(&self.room) {
                return Err("more units than fit on the node".to_owned());
            }
            self.room = self.room.minus(&amount);
        }
        self.empty = false;
        let here = self.per_class.entry(run.class).or_insert(0);
        *here = here.saturating_add(run.count);
        let most = class.constraints.max_per_node;
        if most > 0 && *here > most {
            return Err(format!("more than {most} units on one node"));
        }
        Ok(())
    }
}

type Found<'a> = Result<(Place<'a>, Resources, bool), (&'static str, String)>;

/// Where a run goes: its place, its room, and whether nothing is on it.
fn target<'a>(facts: &Facts<'a>, run: &'a Run) -> Found<'a> {
    match &run.target {
        Target::Node(id) => {
            let node = facts
                .nodes
                .get(id)
                .ok_or((names::I5, format!("no node {id}")))?;
            let room = facts
                .room(node)
                .ok_or_else(|| (no_supply(node), format!("{id} takes no work")))?;
            let empty = node.used.is_zero()
                && node.reserved.is_empty()
                && (matches!(node.busy, crate::model::Busy::Idle { .. })
                    || node.lifecycle == crate::model::Lifecycle::Joined);
            Ok((facts.node_place(node), room, empty))
        }
        Target::Coming(id, n) => {
            let launch = facts
                .launches
                .get(id)
                .ok_or((names::I4, format!("no launch {id}")))?;
            if *n >= launch.count || launch.deadline <= facts.input.now {
                return Err((names::I4, format!("node {n} of launch {id} is not coming")));
            }
            let pool = facts
                .pools
                .get(&launch.pool)
                .ok_or((names::I5, format!("no pool {}", launch.pool)))?;
            let offering = facts.offering(pool, &launch.offering);
            let size = offering.and_then(|o| o.allocatable.clone());
            let (offering, size) = offering
                .zip(size)
                .ok_or((names::I4, format!("launch {id} gives nothing known")))?;
            Ok((facts.new_place(pool, offering), size, true))
        }
        Target::New { action, node, .. } => {
            let Some(Action::Launch {
                pool,
                offering,
                count,
                ..
            }) = facts.planned.plan.actions.get(*action as usize)
            else {
                return Err((names::I4, format!("action {action} launches nothing")));
            };
            if node >= count {
                return Err((names::I4, format!("action {action} has no node {node}")));
            }
            let pool = facts
                .pools
                .get(pool)
                .ok_or((names::I5, format!("no pool {pool}")))?;
            let offering = facts.offering(pool, offering);
            let size = offering.and_then(|o| o.allocatable.clone());
            let (offering, size) = offering
                .zip(size)
                .ok_or((names::I4, "unknown offering".to_owned()))?;
            Ok((facts.new_place(pool, offering), size, true))
        }
    }
}

fn no_supply(node: &NodeInput) -> &'static str {
    if node.unreachable {
        names::I6
    } else if node.cordon.is_some() {
        names::I7
    } else {
        names::I1
    }
}

/// Gangs: all of the minimum or nothing, in one domain.
fn gangs(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut by_class: BTreeMap<u32, Vec<(usize, &Run)>> = BTreeMap::new();
    for (i, run) in facts.planned.plan.runs.iter().enumerate() {
        if !matches!(run.target, Target::New { would: true, .. }) {
            by_class.entry(run.class).or_default().push((i, run));
        }
    }
    for (class, runs) in by_class {
        let Some(gang) = facts
            .input
            .classes
            .get(class as usize)
            .and_then(|c| c.gang.as_ref())
        else {
            continue;
        };
        let placed = runs
            .iter()
            .fold(gang.assigned, |sum, (_, r)| sum.saturating_add(r.count));
        let why = if placed < gang.min {
            Some(format!("{placed} of at least {} units placed", gang.min))
        } else if !together(facts, gang.locality, &runs) {
            Some(format!("units are not in one {:?}", gang.locality).to_lowercase())
        } else {
            None
        };
        if let Some(why) = why {
            let each = |(i, _): &(usize, &Run)| Violation {
                invariant: names::I8,
                why: why.clone(),
                culprit: Culprit::Run(*i),
            };
            found.extend(runs.iter().map(each));
        }
    }
    for (i, action) in facts.planned.plan.actions.iter().enumerate() {
        if let Action::Release { request, .. } = action {
            let held = facts.input.classes.iter().any(|c| {
                c.source == Source::Request(request.clone())
                    && c.gang.as_ref().is_some_and(|g| g.assigned > 0)
            });
            if !held {
                let why = format!("{request} has nothing to release");
                found.push(Violation {
                    invariant: names::I8,
                    why,
                    culprit: Culprit::Action(i),
                });
            }
        }
    }
    found
}

fn together(facts: &Facts<'_>, locality: Locality, runs: &[(usize, &Run)]) -> bool {
    let mut homes = BTreeSet::new();
    for (_, run) in runs {
        let Ok((place, _, _)) = target(facts, run) else {
            continue;
        };
        let site = place.site.map(ToString::to_string);
        homes.insert(match locality {
            Locality::Any => (None, String::new()),
            Locality::Site => (site, String::new()),
            Locality::Zone => (site, place.zone.to_owned()),
            Locality::Pool => (
                None,
                place.pool.map(ToString::to_string).unwrap_or_default(),
            ),
            Locality::Node => (None, format!("{:?}", run.target)),
        });
    }
    homes.len() < 2
}
