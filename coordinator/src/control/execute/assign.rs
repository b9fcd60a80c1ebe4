//! What requests hold: units on nodes that exist or come, and since when a gang holds a part.

use crate::control::cycle::{Control, CycleError, Round};
use crate::control::launches::joined_count;
use crate::control::requests::assigned;
use crate::control::tx::Tx;
use crate::records::{AssignmentRecord, AssignmentTarget, LaunchRecord, RequestRecord};
use drover_core::model::{PlanInput, Planned, RequestName, Resources, Run, Source, Target};
use std::collections::BTreeMap;

impl Control {
    /// Units of requests on nodes that exist or come: sticky from now on. One commit per request.
    pub(super) async fn assign(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        let mut wishes: BTreeMap<RequestName, Vec<&Run>> = BTreeMap::new();
        for run in &planned.plan.runs {
            if let Some(name) = request_of(input, run)
                && !matches!(run.target, Target::New { .. })
            {
                wishes.entry(name.clone()).or_default().push(run);
            }
        }
        for (name, runs) in wishes {
            let Some(held) = round.ledger.requests.get(&name) else {
                continue;
            };
            let mut request = held.value.clone();
            for run in runs {
                let (target, whole) = match &run.target {
                    Target::Node(id) => {
                        let Some(node) = round.node(id) else { continue };
                        (AssignmentTarget::Node(id.clone()), node.allocatable.clone())
                    }
                    Target::Coming(launch, n) => {
                        let Some(held) = round.ledger.launches.get(launch) else {
                            continue;
                        };
                        let joined = joined_count(&held.value);
                        let place = AssignmentTarget::Launch(launch.clone(), joined + n);
                        (place, offered(input, &held.value))
                    }
                    Target::New { .. } => continue,
                };
                add(&mut request, target, run.count, &whole);
            }
            if request == held.value || assigned(&request) > request.spec.units {
                continue;
            }
            let mut tx = Tx::new();
            tx.put_request(&round.ledger, &name, request);
            self.commit(round, tx).await?;
            round.again = true;
        }
        Ok(())
    }

    /// Since when a gang holds partial capacity; kept until it is whole or gone.
    pub(super) async fn hold(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        for (class, outcome) in input.classes.iter().zip(&planned.report.classes) {
            let Source::Request(name) = &class.source else {
                continue;
            };
            let Some(held) = round.ledger.requests.get(name) else {
                continue;
            };
            if outcome.held == 0 || held.value.holding_since.is_some() || class.gang.is_none() {
                continue;
            }
            let mut request = held.value.clone();
            request.holding_since = Some(round.now);
            let mut tx = Tx::new();
            tx.put_request(&round.ledger, name, request);
            self.commit(round, tx).await?;
        }
        Ok(())
    }
}

/// The request behind a run.
pub(super) fn request_of<'i>(input: &'i PlanInput, run: &Run) -> Option<&'i RequestName> {
    let class = input.classes.get(usize::try_from(run.class).ok()?)?;
    match &class.source {
        Source::Request(name) => Some(name),
        Source::Scheduler(_) => None,
    }
}

/// What one node of a launch offers.
pub(super) fn offered(input: &PlanInput, launch: &LaunchRecord) -> Resources {
    let flying = input.launches.iter().find(|found| found.id == launch.id);
    let offering = flying.map_or(&launch.offering, |found| &found.offering);
    input
        .pools
        .iter()
        .find(|pool| pool.id == launch.pool)
        .and_then(|pool| pool.offerings.iter().find(|found| found.id == *offering))
        .and_then(|offering| offering.allocatable.clone())
        .unwrap_or_default()
}

/// Adds units to what a request holds in one place. A whole node is held with all it offers.
pub(in crate::control) fn add(
    request: &mut RequestRecord,
    target: AssignmentTarget,
    units: u32,
    whole: &Resources,
) {
    let amount = |units: u32| {
        if request.spec.whole_nodes {
            whole.clone()
        } else {
            request.spec.unit.scaled(units)
        }
    };
    let here = request
        .assignments
        .iter()
        .position(|found| found.target == target);
    let before = here
        .and_then(|at| request.assignments.get(at))
        .map_or(0, |found| found.units);
    let record = AssignmentRecord {
        amount: amount(before.saturating_add(units)),
        units: before.saturating_add(units),
        target,
    };
    match here.and_then(|at| request.assignments.get_mut(at)) {
        Some(found) => *found = record,
        None => request.assignments.push(record),
    }
}
