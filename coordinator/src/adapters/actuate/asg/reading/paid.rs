//! What is paid for already, as offerings: reservations and capacity blocks at price zero while they last; and the warm
//! pool, as words and as instances that count for nothing.
//!
//! Called by `reading` and `offerings`. Pure.

use std::collections::BTreeMap;

use drover_aws::{MemberState, Reservation, ReservationKind, ReservationUse, WarmPool};
use drover_core::model::{InstanceId, OfferingId, ReservationId, ReservedRoom, UnixMs};

use super::Read;
use crate::adapters::actuate::asg::convert;
use crate::adapters::actuate::asg::paid::ends;
use crate::ports::actuate::{Instance, InstanceState};

/// Reservations that launches of this group use, by type and zone, in the order of their ids.
pub(super) fn usable<'a>(read: &Read<'a>) -> Vec<&'a Reservation> {
    let types = |r: &Reservation| read.facts.types.iter().any(|t| t.name == r.instance_type);
    let fits = |r: &&Reservation| types(r) && read.group.zones.contains(&r.zone);
    let all = read.paid.reservations.iter().filter(fits);
    match &read.facts.reservations {
        ReservationUse::Only(id) => all.filter(|r| r.id == *id).collect(),
        ReservationUse::Open if !read.facts.spot => all
            .filter(|r| r.kind == ReservationKind::OnDemand && !r.targeted)
            .collect(),
        ReservationUse::Open | ReservationUse::None => Vec::new(),
    }
}

/// Whether the group launches into reservations only: beside them there is nothing to be had.
pub(super) fn only(read: &Read<'_>) -> bool {
    matches!(read.facts.reservations, ReservationUse::Only(_))
}

/// How many more a reservation takes now. One that has not begun, or that ends before an hour of work is done, takes none.
pub(super) fn room(reservation: &Reservation, now: UnixMs) -> u32 {
    const LEAST: u64 = 3_600_000;
    let short = ends(reservation).is_some_and(|end| end.0 < now.0.saturating_add(LEAST));
    if !reservation.active || short {
        return 0;
    }
    reservation.available
}

/// Reservations with their room by type and zone, zero included: a reservation that is full is an offering all the same,
/// for those in it. Groups of several pools may use the same one: by its id the planner counts its room once.
pub(super) fn rooms<'a>(read: &Read<'a>) -> BTreeMap<(&'a str, &'a str), Vec<ReservedRoom>> {
    let mut rooms: BTreeMap<_, Vec<ReservedRoom>> = BTreeMap::new();
    for reservation in usable(read) {
        let key = (
            reservation.instance_type.as_str(),
            reservation.zone.as_str(),
        );
        rooms.entry(key).or_default().push(ReservedRoom {
            reservation: ReservationId::new(reservation.id.as_str()),
            nodes: room(reservation, read.now),
        });
    }
    rooms
}

/// Id of the offering of reservations of a type in a zone.
pub(super) fn id(read: &Read<'_>, instance_type: &str, zone: &str) -> OfferingId {
    convert::offering_id(&read.pool.pool, instance_type, zone, "reserved")
}

/// What a person is told of reservations and the warm pool.
pub(super) fn remarks(read: &Read<'_>) -> Vec<String> {
    let mut said: Vec<String> = usable(read)
        .into_iter()
        .map(|r| {
            let kind = match r.kind {
                ReservationKind::CapacityBlock => "capacity block",
                ReservationKind::OnDemand | ReservationKind::Other(_) => "reservation",
            };
            let end = r.end_unix_ms.and_then(convert::unix_ms);
            let end = end.map_or_else(String::new, |end| format!(", until {}", moment(end)));
            format!(
                "{kind} {} of {} in {}: {} of {} free ({}){end}",
                r.id, r.instance_type, r.zone, r.available, r.total, r.state
            )
        })
        .collect();
    if let ReservationUse::Only(id) = &read.facts.reservations
        && usable(read).is_empty()
    {
        said.push(format!(
            "the launch template names the reservation {id}, which AWS does not show for the group's types and zones"
        ));
    }
    if let Some(warm) = &read.paid.warm {
        said.extend(warm_words(warm));
    }
    said.extend(read.paid.troubles.iter().cloned());
    said
}

fn moment(at: UnixMs) -> String {
    i64::try_from(at.0)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(
            || "an unknown time".to_owned(),
            |at| at.strftime("%F %H:%M UTC").to_string(),
        )
}

fn warm_words(warm: &WarmPool) -> Vec<String> {
    let mut by_state: BTreeMap<&str, u32> = BTreeMap::new();
    for member in &warm.members {
        if let MemberState::Warmed(state) = &member.state {
            let state = state.strip_prefix("Warmed:").unwrap_or(state);
            *by_state.entry(state).or_default() += 1;
        }
    }
    let counted: Vec<String> = by_state
        .iter()
        .map(|(state, count)| format!("{count} {}", state.to_lowercase()))
        .collect();
    let counted = if counted.is_empty() {
        "empty".to_owned()
    } else {
        counted.join(", ")
    };
    let mut said = vec![format!(
        "warm pool: {counted}; growth takes from it first, by a raised desired capacity"
    )];
    if warm.max_prepared.is_none() {
        said.push(
            "the warm pool's size is the group's maximum less the desired capacity, so each removal refills it: set \
             MaxGroupPreparedCapacity"
                .to_owned(),
        );
    }
    if warm.reuses {
        said.push("nodes that leave go back to the warm pool (ReuseOnScaleIn)".to_owned());
    }
    if warm.state == "Stopped" || warm.state == "Hibernated" {
        said.push(
            "stopped instances hold no capacity: they may meet a shortage when they start"
                .to_owned(),
        );
    }
    said
}

/// Instances of the warm pool: known, so that nobody takes them for strangers, and no capacity.
pub(super) fn warm(read: &Read<'_>) -> Vec<Instance> {
    let Some(warm) = &read.paid.warm else {
        return Vec::new();
    };
    let there = |id: &drover_aws::InstanceId| read.group.members.iter().any(|m| m.id == *id);
    warm.members
        .iter()
        .filter(|member| !there(&member.id))
        .map(|member| Instance {
            id: InstanceId::new(member.id.as_str()),
            state: InstanceState::Warm,
            offering: None,
            zone: member.zone.clone().unwrap_or_default(),
            instance_type: member.instance_type.clone().unwrap_or_default(),
            protected: None,
            launched: None,
            ends: None,
        })
        .collect()
}
