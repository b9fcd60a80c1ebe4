//! Offerings of one pool that are the same capacity under another name: a group offers its zones where they can be chosen,
//! else itself, and the way that it is asked may change at any time. What was learnt of one holds for the other.
//!
//! Called when launches are answered, when a plan goes elsewhere, and with each reading. Asks for nothing.

use super::cycle::{Control, CycleError, Round};
use super::tx::Tx;
use crate::ports::actuate::PoolReading;
use crate::records::MemoryRecord;
use drover_core::model::{OfferingId, PoolId};
use std::collections::BTreeSet;

/// What a group as a whole was asked for when an order named one zone of it.
pub(super) fn whole_of(round: &Round, pool: &PoolId, offering: &OfferingId) -> OfferingId {
    let whole = round
        .readings
        .get(pool)
        .and_then(|reading| reading.parts.get(offering));
    whole.unwrap_or(offering).clone()
}

/// Whether one is the other, or a zone of it.
pub(super) fn is_same_capacity(
    round: &Round,
    pool: &PoolId,
    one: &OfferingId,
    other: &OfferingId,
) -> bool {
    let whole = |of: &OfferingId| whole_of(round, pool, of);
    one == other || whole(one) == *other || whole(other) == *one
}

impl Control {
    /// What is remembered of an offering that is not offered any more goes over to those that took its place.
    pub(super) async fn carry_memory(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let read: Vec<PoolId> = round.read.iter().cloned().collect();
        for pool in read {
            let Some(reading) = round.readings.get(&pool).cloned() else {
                continue;
            };
            let wholes: BTreeSet<&OfferingId> = reading.parts.values().collect();
            for whole in wholes {
                let mut tx = Tx::new();
                if offers(&reading, whole) {
                    into_whole(round, &mut tx, &reading, whole);
                } else {
                    into_parts(round, &mut tx, &reading, whole);
                }
                self.commit(round, tx).await?;
            }
        }
        Ok(())
    }
}

fn offers(reading: &PoolReading, offering: &OfferingId) -> bool {
    reading.offerings.iter().any(|found| found.id == *offering)
}

fn parts<'r>(reading: &'r PoolReading, whole: &OfferingId) -> impl Iterator<Item = &'r OfferingId> {
    let all = reading.parts.iter();
    all.filter_map(move |(part, of)| (of == whole).then_some(part))
}

/// Only when each of its zones had failed: a group may have in one zone what another lacks. It is tried when the first of
/// them would be.
fn into_whole(round: &Round, tx: &mut Tx, reading: &PoolReading, whole: &OfferingId) {
    let memory = &round.ledger.memory;
    let known: Option<Vec<&MemoryRecord>> = parts(reading, whole)
        .map(|part| memory.get(part).map(|held| &held.value))
        .collect();
    let first = known.and_then(|all| all.into_iter().min_by_key(|of| of.entry.next_probe));
    let Some(first) = first.filter(|_| !memory.contains_key(whole)) else {
        return;
    };
    let mut record = first.clone();
    record.entry.offering = whole.clone();
    tx.put_memory(&round.ledger, whole, record);
    for part in parts(reading, whole) {
        tx.delete_memory(&round.ledger, part);
    }
}

fn into_parts(round: &Round, tx: &mut Tx, reading: &PoolReading, whole: &OfferingId) {
    let memory = &round.ledger.memory;
    let Some(held) = memory.get(whole) else {
        return;
    };
    let offered: Vec<&OfferingId> = parts(reading, whole)
        .filter(|part| offers(reading, part))
        .collect();
    if offered.is_empty() {
        return;
    }
    for part in offered {
        if !memory.contains_key(part) {
            let mut record = held.value.clone();
            record.entry.offering = part.clone();
            tx.put_memory(&round.ledger, part, record);
        }
    }
    tx.delete_memory(&round.ledger, whole);
}
