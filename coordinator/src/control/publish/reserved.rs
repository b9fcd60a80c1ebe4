//! Reservations that groups of several pools may use: their room is one, however many pools show it.
//!
//! Called for the view of a pool. Decides nothing: the planner counts by the reservation's id.

use crate::control::cycle::Round;
use crate::ports::actuate::PoolReading;
use drover_core::model::{PoolId, ReservationId};
use std::collections::BTreeMap;

/// What a person is told of the reservations that this pool shares with others.
pub(super) fn shared(round: &Round, pool: &PoolId) -> Vec<String> {
    let Some(own) = round.readings.get(pool) else {
        return Vec::new();
    };
    let told = rooms(own).into_iter().filter_map(|(id, room)| {
        let mut least = room;
        let mut others: Vec<String> = Vec::new();
        for (name, reading) in round.readings.iter().filter(|(name, _)| *name != pool) {
            if let Some(room) = rooms(reading).get(&id) {
                least = least.min(*room);
                others.push(name.to_string());
            }
        }
        let noun = if others.len() == 1 { "pool" } else { "pools" };
        (!others.is_empty()).then(|| {
            format!(
                "what is free of {id} ({least}) is there once: it is shared with {noun} {}",
                others.join(", ")
            )
        })
    });
    told.collect()
}

/// Nodes that each reservation of a pool's offerings takes; of rooms that differ the least counts.
fn rooms(reading: &PoolReading) -> BTreeMap<ReservationId, u32> {
    let mut rooms: BTreeMap<ReservationId, u32> = BTreeMap::new();
    let all = reading.offerings.iter().flat_map(|of| &of.reservations);
    for one in all {
        let room = rooms.entry(one.reservation.clone()).or_insert(one.nodes);
        *room = (*room).min(one.nodes);
    }
    rooms
}
