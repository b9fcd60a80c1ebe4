//! Places of requests that wait on nodes which are not ready: which, in what order, and what is left when one is given up.
//!
//! Called by `swap`. Changes no record but the copies that it is given.

use super::Rank;
use crate::control::cycle::Round;
use crate::records::{AssignmentTarget, RequestRecord, RequestState};
use drover_core::model::{LaunchId, Lifecycle, PoolId, RequestName, SiteId, Source, UnixMs};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Where a place is that units are to leave.
pub(super) struct Home {
    pub(super) pool: Option<PoolId>,
    pub(super) site: Option<SiteId>,
    pub(super) zone: String,
    /// In words.
    pub(super) name: String,
}

/// Requests with units on nodes that are not ready, the first in rank first.
pub(super) fn waiting(round: &Round) -> Vec<(Rank, RequestName)> {
    let open = round.ledger.requests.iter().filter(|(_, held)| {
        matches!(
            held.value.state,
            RequestState::Pending | RequestState::Served
        )
    });
    let mut all: Vec<(Rank, RequestName)> = open
        .filter(|(_, held)| {
            let mut places = held.value.assignments.iter();
            places.any(|found| is_waiting(round, &found.target))
        })
        .map(|(name, held)| {
            let priority = Reverse(held.value.spec.priority);
            let source = Source::Request(name.clone());
            ((priority, held.value.submitted, source), name.clone())
        })
        .collect();
    all.sort();
    all
}

/// Nothing can have started there: it has not joined, or was never ready.
fn is_waiting(round: &Round, target: &AssignmentTarget) -> bool {
    match target {
        AssignmentTarget::Launch(..) => true,
        AssignmentTarget::Node(id) => round.node(id).is_some_and(|node| {
            let record = node.record.as_ref();
            let once = record.is_none_or(|record| record.ready_at.is_some());
            !once && !node.serves() && node.lifecycle < Lifecycle::Leaving
        }),
    }
}

/// The places of a request that wait: what has not even joined first, the newest ask first.
pub(super) fn places(round: &Round, name: &RequestName) -> Vec<AssignmentTarget> {
    let Some(held) = round.ledger.requests.get(name) else {
        return Vec::new();
    };
    let found = held.value.assignments.iter().map(|found| &found.target);
    let mut all: Vec<AssignmentTarget> = found
        .filter(|target| is_waiting(round, target))
        .cloned()
        .collect();
    all.sort_by_key(|target| match target {
        AssignmentTarget::Launch(id, place) => {
            let launch = round.ledger.launches.get(id);
            let asked = launch.map_or(UnixMs(0), |held| held.value.asked);
            (0, Reverse((asked, *place)))
        }
        AssignmentTarget::Node(id) => {
            let record = round.node(id).and_then(|node| node.record.as_ref());
            let joined = record.map_or(UnixMs(0), |record| record.joined);
            (1, Reverse((joined, 0)))
        }
    });
    all
}

/// Takes a place's units out of a request.
pub(super) fn take_out(request: &mut RequestRecord, target: &AssignmentTarget) -> Option<u32> {
    let mut all = request.assignments.iter();
    let at = all.position(|found| found.target == *target)?;
    Some(request.assignments.remove(at).units)
}

pub(super) fn home(round: &Round, target: &AssignmentTarget) -> Home {
    match target {
        AssignmentTarget::Node(id) => {
            let node = round.node(id);
            Home {
                pool: node.and_then(|node| node.pool.clone()),
                site: node.and_then(|node| node.site.clone()),
                zone: node.map_or_else(String::new, |node| node.zone.clone()),
                name: node.map_or_else(|| id.0.clone(), |node| node.name.clone()),
            }
        }
        AssignmentTarget::Launch(id, _) => {
            let launch = round.ledger.launches.get(id).map(|held| &held.value);
            let reading = launch.and_then(|launch| round.readings.get(&launch.pool));
            let offering = reading.and_then(|reading| {
                let mut all = reading.offerings.iter();
                all.find(|found| launch.is_some_and(|launch| launch.offering == found.id))
            });
            let pool = launch.map(|launch| launch.pool.clone());
            let mut fleet = round.fleet.iter();
            let near = fleet.find(|node| node.pool == pool && node.pool.is_some());
            Home {
                site: near.and_then(|node| node.site.clone()),
                zone: offering.map_or_else(String::new, |found| found.zone.clone()),
                name: pool.as_ref().map_or_else(
                    || id.0.clone(),
                    |pool| format!("a node of {pool} that is asked for"),
                ),
                pool,
            }
        }
    }
}

/// Places of a launch are taken from the first on: the last that is held takes over one that was given up.
pub(super) fn close_gap(
    round: &Round,
    changed: &mut BTreeMap<RequestName, RequestRecord>,
    launch: &LaunchId,
    gap: u32,
) {
    let of = |found: &AssignmentTarget| match found {
        AssignmentTarget::Launch(id, place) if id == launch => Some(*place),
        _ => None,
    };
    let others = round.ledger.requests.iter();
    let mut all: BTreeMap<RequestName, RequestRecord> = others
        .map(|(name, held)| (name.clone(), &held.value))
        .filter(|(_, request)| {
            let mut places = request.assignments.iter();
            places.any(|found| of(&found.target).is_some())
        })
        .map(|(name, request)| (name, request.clone()))
        .collect();
    all.extend(changed.clone());
    let places = all.values().flat_map(|request| &request.assignments);
    let held: Vec<u32> = places.filter_map(|found| of(&found.target)).collect();
    let Some(last) = held.iter().max().copied().filter(|last| *last > gap) else {
        return;
    };
    if held.contains(&gap) {
        return;
    }
    for (name, mut request) in all {
        let mut places = request.assignments.iter_mut();
        let Some(found) = places.find(|found| of(&found.target) == Some(last)) else {
            continue;
        };
        found.target = AssignmentTarget::Launch(launch.clone(), gap);
        changed.insert(name, request);
    }
}
