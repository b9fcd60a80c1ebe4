//! Launches in flight for the planner: how many nodes are to come, of what, and for whom. Used by `input`.

use crate::control::cycle::Round;
use crate::control::launches::{joined_count, life, seen};
use crate::control::parts::is_same_capacity;
use crate::records::{AssignmentTarget, LaunchRecord, RequestState};
use drover_core::model::{LaunchInFlight, MemoryEntry, OfferingId, RequestName, UnixMs};

/// Nodes of a launch that are still to come.
pub(in crate::control) fn coming(launch: &LaunchRecord) -> u32 {
    life(launch).coming()
}

/// Of them those whose instance the provider has shown.
fn shown(launch: &LaunchRecord) -> u32 {
    let all = match launch.way {
        None => 0,
        Some(_) if launch.tells_no_ids() => seen(launch),
        Some(_) => launch.granted.unwrap_or(0),
    };
    all.saturating_sub(joined_count(launch)).min(coming(launch))
}

/// As the planner sees it, for nobody yet.
fn bare(launch: &LaunchRecord, offering: OfferingId) -> LaunchInFlight {
    LaunchInFlight {
        id: launch.id.clone(),
        pool: launch.pool.clone(),
        offering,
        count: coming(launch),
        shown: shown(launch),
        asked: launch.asked,
        deadline: launch.deadline,
        reserved: Vec::new(),
    }
}

/// It probes an offering that failed, and what came of it is not known.
pub(in crate::control) fn probes(launch: &LaunchRecord, entry: &MemoryEntry, now: UnixMs) -> bool {
    bare(launch, launch.offering.clone()).probing(entry, now) > 0
}

/// `None`: nothing of it is to come any more.
pub(super) fn in_flight(round: &Round, launch: &LaunchRecord) -> Option<LaunchInFlight> {
    if coming(launch) == 0 || launch.deadline <= round.now {
        return None;
    }
    let reserved: Vec<(RequestName, u32)> = round
        .ledger
        .requests
        .values()
        .filter(|held| {
            matches!(
                held.value.state,
                RequestState::Pending | RequestState::Served
            )
        })
        .filter_map(|held| {
            let units: u32 = held
                .value
                .assignments
                .iter()
                .filter(|found| {
                    matches!(&found.target, AssignmentTarget::Launch(id, _) if *id == launch.id)
                })
                .map(|found| found.units)
                .sum();
            (units > 0).then(|| (held.value.name.clone(), units))
        })
        .collect();
    Some(LaunchInFlight {
        reserved,
        ..bare(launch, offering_now(round, launch))
    })
}

/// The offering that the planner knows a launch by. A group that turns out to need another way of asking offers its
/// capacity under other names: a pool's nodes are interchangeable, so any of them tells what is coming.
fn offering_now(round: &Round, launch: &LaunchRecord) -> OfferingId {
    let offerings = round
        .readings
        .get(&launch.pool)
        .map(|reading| reading.offerings.as_slice())
        .unwrap_or_default();
    let known = offerings.iter().any(|found| found.id == launch.offering);
    let alike = |id: &OfferingId| is_same_capacity(round, &launch.pool, id, &launch.offering);
    let same = offerings.iter().find(|found| alike(&found.id));
    match same.or(offerings.first()) {
        Some(first) if !known => first.id.clone(),
        _ => launch.offering.clone(),
    }
}
