//! The plan's hypothesis is followed: pending jobs are bound to the nodes of the plan that are ready. A job of which a
//! part has a node that is still coming waits.

use super::Promised;
use crate::sim::stage::Stage;
use crate::sim::stage::jobs::{Key, Place, SOURCE};
use drover_core::model::{PlanInput, Planned, Source, Target};
use std::collections::BTreeMap;

/// What the plan gives a class.
#[derive(Default)]
struct Given {
    /// Ready nodes with units left for it, in the plan's order.
    ready: Vec<(usize, u32)>,
    /// Units on nodes that are coming.
    coming: u32,
}

pub(super) fn place(stage: &mut Stage, told: &[Key], input: &PlanInput, planned: &Planned) -> bool {
    let mut given = given(stage, told, input, planned);
    if given.values().all(|given| given.ready.is_empty()) {
        return false;
    }
    let mut started = false;
    for job in stage.jobs.queue() {
        if let Some(places) = places(stage, &given, job) {
            for place in &places {
                let key = stage.jobs.standing[job].keys.get(usize::from(place.rest));
                let Some(given) = key.and_then(|key| given.get_mut(key)) else {
                    continue;
                };
                if let Some((_, left)) = given.ready.iter_mut().find(|(n, _)| *n == place.node) {
                    *left = left.saturating_sub(place.units);
                }
            }
            stage.start_job(job, &places);
            started = true;
        }
    }
    started
}

/// The plan's runs, by class. The classes of this source stand in the input in the order in which they were told.
fn given(
    stage: &Stage,
    told: &[Key],
    input: &PlanInput,
    planned: &Planned,
) -> BTreeMap<Key, Given> {
    let ours =
        input.classes.iter().enumerate().filter(
            |(_, class)| matches!(&class.source, Source::Scheduler(name) if name == SOURCE),
        );
    let keys: BTreeMap<usize, &Key> = ours.map(|(at, _)| at).zip(told).collect();
    let mut given: BTreeMap<Key, Given> = BTreeMap::new();
    for run in &planned.plan.runs {
        let class = usize::try_from(run.class).unwrap_or(usize::MAX);
        let Some(key) = keys.get(&class) else {
            continue;
        };
        let slot = given.entry((*key).clone()).or_default();
        match &run.target {
            Target::Node(id) => {
                let open = stage
                    .agents
                    .get(id)
                    .filter(|at| stage.nodes[**at].is_open());
                match open {
                    Some(at) => slot.ready.push((*at, run.count)),
                    None => slot.coming += run.count,
                }
            }
            Target::New { would: true, .. } => {}
            Target::Coming(..) | Target::New { .. } => slot.coming += run.count,
        }
    }
    given
}

/// Where the whole job has room now; `None`: it waits.
fn places(stage: &Stage, given: &BTreeMap<Key, Given>, job: usize) -> Option<Vec<Place>> {
    let standing = &stage.jobs.standing[job];
    let found = &stage.jobs.all[job];
    let mut promised = Promised::default();
    let main = given.get(standing.keys.first()?)?;
    let have = take(stage, &mut promised, main, job, found.units, false);
    let elastic = have >= found.min_units && main.coming == 0;
    if have < found.units && !elastic {
        return None;
    }
    if found.rest.is_some() {
        let rest = given.get(standing.keys.get(1)?)?;
        if take(stage, &mut promised, rest, job, 1, true) == 0 {
            return None;
        }
    }
    Some(promised.0)
}

/// Takes up to `units` from what is given.
fn take(
    stage: &Stage,
    promised: &mut Promised,
    given: &Given,
    job: usize,
    units: u32,
    rest: bool,
) -> u32 {
    let mut have = 0;
    for &(node, left) in &given.ready {
        let here = left
            .min(units - have)
            .min(promised.room(stage, job, node, rest));
        if here > 0 {
            promised.0.push(Place {
                node,
                units: here,
                rest,
            });
            have += here;
        }
        if have == units {
            break;
        }
    }
    have
}
