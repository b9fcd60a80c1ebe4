//! Placements: capacity is counted once (I4), only on what takes work (I6, I7), where the rules allow (I5), gangs whole
//! and together (I8).

use super::facts::Facts;
use super::names;
use super::near::Replay;
use super::{Culprit, Violation};
use crate::model::{Action, Class, Locality, NodeInput, Resources, Run, Source, Target};
use crate::planner::matching::Place;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut taken: BTreeMap<&Target, Taken<'_>> = BTreeMap::new();
    let mut units: BTreeMap<u32, u64> = BTreeMap::new();
    let mut replay = Replay::new(facts);
    let mut last_of: BTreeMap<u32, usize> = BTreeMap::new();
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
        let slot = match taken.entry(&run.target) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(slot) => match target(facts, run) {
                Ok((place, room, empty)) => slot.insert(Taken::new(place, room, empty)),
                Err((invariant, why)) => {
                    say(invariant, why);
                    continue;
                }
            },
        };
        if let Some(differs) = slot.place.differs(&class.constraints) {
            say(names::I5, format!("may not go there: {differs}"));
            continue;
        }
        let assigned = match &run.target {
            Target::Node(id) => facts.nodes.get(id).map_or(0, |n| Facts::assigned(n, class)),
            _ => 0,
        };
        if let Err(why) = slot.put(run, class, assigned) {
            say(names::I4, why);
        }
        if let Err((of, why)) = replay.end_of_batch(Some(run.class)) {
            found.extend(uneven(&last_of, of, why));
        }
        last_of.insert(run.class, i);
        if let Err(why) = replay.place(run, class, &slot.place) {
            found.push(Violation {
                invariant: names::I5,
                why: format!("may not go there: {why}"),
                culprit: Culprit::Run(i),
            });
        }
    }
    if let Err((of, why)) = replay.end_of_batch(None) {
        found.extend(uneven(&last_of, of, why));
    }
    found.extend(gangs(facts));
    found
}

/// A class is spread unevenly: its last run is at fault.
fn uneven(last_of: &BTreeMap<u32, usize>, class: u32, why: String) -> Option<Violation> {
    last_of.get(&class).map(|run| Violation {
        invariant: names::I5,
        why: format!("spread: {why}"),
        culprit: Culprit::Run(*run),
    })
}

/// Room of one target, used up run by run.
struct Taken<'a> {
    place: Place<'a>,
    room: Resources,
    /// Free thousandths of GPUs that are used in part.
    shares: Vec<u32>,
    empty: bool,
    per_class: BTreeMap<u32, u32>,
}

impl<'a> Taken<'a> {
    fn new(place: Place<'a>, (room, shares): Room, empty: bool) -> Self {
        Self {
            place,
            room,
            shares,
            empty,
            per_class: BTreeMap::new(),
        }
    }

    /// `assigned`: units of the class that are there already.
    fn put(&mut self, run: &Run, class: &Class, assigned: u32) -> Result<(), String> {
        if class.whole_node {
            if !self.empty || run.count != 1 || !class.unit.fits(&self.room) {
                return Err("wants a whole node, which is not free".to_owned());
            }
            self.room = Resources::default();
        } else {
            if run.count > most_of(&class.unit, &self.room) {
                return Err("more units than fit on the node".to_owned());
            }
            self.room.take(&class.unit, run.count);
            let shares = if class.unit.gpu_milli > 0 {
                run.count
            } else {
                0
            };
            for _ in 0..shares {
                if !share(&mut self.room, &mut self.shares, class.unit.gpu_milli) {
                    return Err("more shares than the GPUs of the node have".to_owned());
                }
            }
        }
        self.empty = false;
        let here = self.per_class.entry(run.class).or_insert(0);
        *here = here.saturating_add(run.count);
        let most = class.constraints.max_per_node;
        if most > 0 && here.saturating_add(assigned) > most {
            return Err(format!("more than {most} units on one node"));
        }
        Ok(())
    }
}

/// Units that fit, shares of a GPU aside.
fn most_of(unit: &Resources, room: &Resources) -> u32 {
    if unit.gpu_milli == 0 {
        return unit.times(room);
    }
    let beside = Resources {
        gpu_milli: 0,
        ..unit.clone()
    };
    beside.times(room)
}

/// Takes a part of one GPU: of the smallest free part that is enough, else of a whole one. False when there is none.
pub(super) fn share(room: &mut Resources, shares: &mut Vec<u32>, milli: u32) -> bool {
    if milli == 0 {
        return true;
    }
    let enough = shares
        .iter()
        .enumerate()
        .filter(|(_, free)| **free >= milli);
    let left = match enough.min_by_key(|(_, free)| **free) {
        Some((at, _)) => shares.swap_remove(at) - milli,
        None if room.gpus > 0 && milli <= 1_000 => {
            room.gpus -= 1;
            1_000 - milli
        }
        None => return false,
    };
    if left > 0 {
        shares.push(left);
    }
    true
}

/// Room in whole GPUs, and the parts of others.
pub(super) type Room = (Resources, Vec<u32>);

type Found<'a> = Result<(Place<'a>, Room, bool), (&'static str, String)>;

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
            Ok((facts.new_place(pool, offering), (size, Vec::new()), true))
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
            Ok((facts.new_place(pool, offering), (size, Vec::new()), true))
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
        let class = facts.class(run);
        let gang = class.is_some_and(|c| c.gang.is_some());
        if gang && !matches!(run.target, Target::New { would: true, .. }) {
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
    match locality {
        Locality::Any => return true,
        Locality::Node => return runs.iter().all(|(_, run)| run.target == runs[0].1.target),
        Locality::Pool | Locality::Zone | Locality::Site => {}
    }
    let mut homes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (_, run) in runs {
        // New nodes of one action are in one place.
        let like = match &run.target {
            Target::New { action, .. } => Some(*action),
            _ => None,
        };
        if like.is_some_and(|action| !seen.insert(action)) {
            continue;
        }
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
