//! The life of requests: their assignments are durable and sticky; served, ended, lost.
//!
//! Called by the cycle. The planner says where units go; only here and in `execute` that becomes an assignment.

mod stay;
mod swap;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::tx::Tx;
use crate::records::{AssignmentTarget, RequestRecord, RequestState};
use drover_core::model::{Millis, RequestName};
use std::collections::BTreeMap;

/// Requests that are over are kept this long.
const KEPT: Millis = Millis::minutes(60 * 24 * 7);

/// Units that have a place.
pub(super) fn assigned(request: &RequestRecord) -> u32 {
    request
        .assignments
        .iter()
        .fold(0_u32, |sum, found| sum.saturating_add(found.units))
}

/// Adds to a change: every request gives up the assignments whose target matches, and says so.
pub(super) fn drop_assignments(
    round: &Round,
    tx: &mut Tx,
    why: &str,
    matches: impl Fn(&AssignmentTarget) -> bool,
) {
    drop_units(round, tx, why, |_, target| matches(target));
}

/// The same, where it matters whose they are.
pub(super) fn drop_units(
    round: &Round,
    tx: &mut Tx,
    why: &str,
    matches: impl Fn(&RequestRecord, &AssignmentTarget) -> bool,
) {
    for (name, held) in &round.ledger.requests {
        let lost: u32 = held
            .value
            .assignments
            .iter()
            .filter(|found| matches(&held.value, &found.target))
            .map(|found| found.units)
            .sum();
        if lost == 0 {
            continue;
        }
        let mut request = held.value.clone();
        request
            .assignments
            .retain(|found| !matches(&held.value, &found.target));
        tx.event(Happening::RequestLost {
            request: name.clone(),
            units: lost,
            why: why.to_owned(),
        });
        tx.put_request(&round.ledger, name, request);
    }
}

impl Control {
    /// Served, ended, lost, purged: one commit per request that changes.
    pub(super) async fn follow_requests(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let names: Vec<RequestName> = round.ledger.requests.keys().cloned().collect();
        for name in names {
            let Some(held) = round.ledger.requests.get(&name) else {
                continue;
            };
            let before = held.value.clone();
            let mut tx = Tx::new();
            match before.state {
                RequestState::Pending | RequestState::Served => {
                    let given_up = |target: &AssignmentTarget| self.given_up(round, target);
                    let after = follow(round, &mut tx, &before, given_up);
                    if after != before {
                        tx.put_request(&round.ledger, &name, after);
                    }
                }
                RequestState::Ended | RequestState::Cancelled => {
                    let over = before
                        .closed
                        .as_ref()
                        .map_or(before.submitted, |(at, _)| *at);
                    if round.now.since(over) > KEPT {
                        tx.delete_request(&round.ledger, &name);
                    }
                }
            }
            if !tx.is_empty() {
                self.commit(round, tx).await?;
            }
        }
        Ok(())
    }
}

fn end(round: &Round, tx: &mut Tx, mut request: RequestRecord, why: &str) -> RequestRecord {
    request.state = RequestState::Ended;
    request.assignments.clear();
    request.holding_since = None;
    request.closed = Some((round.now, why.to_owned()));
    tx.event(Happening::RequestEnded {
        request: request.name.clone(),
        why: why.to_owned(),
    });
    tx.audit("request.end", request.name.as_str(), why);
    request
}

/// `given_up` tells why a place is the request's no more.
fn follow(
    round: &Round,
    tx: &mut Tx,
    before: &RequestRecord,
    given_up: impl Fn(&AssignmentTarget) -> Option<String>,
) -> RequestRecord {
    let mut request = before.clone();
    let mut lost: BTreeMap<String, u32> = BTreeMap::new();
    request.assignments.retain(|found| {
        let why = given_up(&found.target);
        if let Some(why) = &why {
            let units = lost.entry(why.clone()).or_default();
            *units = units.saturating_add(found.units);
        }
        why.is_none()
    });
    for (why, units) in lost {
        tx.event(Happening::RequestLost {
            request: request.name.clone(),
            units,
            why,
        });
    }
    if request.ends.is_some_and(|ends| ends <= round.now) {
        return end(round, tx, request, "its time is over");
    }
    if assigned(&request) >= request.spec.units {
        request.holding_since = None;
    }
    let ready: u32 = request
        .assignments
        .iter()
        .filter(|found| match &found.target {
            AssignmentTarget::Node(node) => round
                .node(node)
                .is_some_and(|node| node.serves() && node.is_heard()),
            AssignmentTarget::Launch(..) => false,
        })
        .map(|found| found.units)
        .sum();
    // Useless when it has not started: a gang by its minimum, others by any unit.
    let least = request.spec.gang_min.unwrap_or(1);
    let late = request.spec.deadline.is_some_and(|at| at <= round.now);
    if request.state == RequestState::Pending && late && ready < least {
        return end(
            round,
            tx,
            request,
            "its deadline passed before it could start",
        );
    }
    if request.state == RequestState::Pending && ready >= request.spec.units {
        request.state = RequestState::Served;
        request.served = Some(round.now);
        request.ends = request.spec.duration.map(|span| round.now.after(span));
        tx.event(Happening::RequestServed {
            request: request.name.clone(),
            ends: request.ends,
        });
    }
    request
}
