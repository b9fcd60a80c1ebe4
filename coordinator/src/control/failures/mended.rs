//! What ends the stop of a pool without a person: time, another recipe, a reading that shows it over (DESIGN 5).
//!
//! Called by `control/failures` in each cycle, after what failed was learnt.

use super::learn_one;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::tx::Tx;
use crate::ports::actuate::{PoolReading, Recipe};
use crate::records::PoolRecord;
use drover_core::model::{FailureKind, Millis, OfferingId, PoolId, Stop};
use drover_core::rules::capacity::Event;
use drover_core::rules::launch::MISSES_TO_PAUSE;

/// What is mended elsewhere is tried again after this.
const HOURLY: Millis = Millis::minutes(60);
/// A suspended group is looked at again after this.
const SUSPENDED: Millis = Millis::minutes(10);
/// Takes back what stopped a pool once its nodes are made from something else, and says what that is: each recipe gets its
/// own tries. What never joined is laid to the template alone.
fn other_recipe(record: &mut PoolRecord, now: &Recipe, back: bool) -> Option<String> {
    if now.template.is_empty() {
        return None;
    }
    let moved = |before: &Recipe| {
        (before.template != now.template).then(|| {
            let (new, old) = (&now.template, &before.template);
            format!("its nodes are made from {new} now, not from {old}")
        })
    };
    let mut why = None;
    let other = record
        .unlike
        .iter()
        .filter_map(|one| one.recipe.as_ref())
        .find_map(moved);
    if let Some(text) = other {
        let kept = |one: &Recipe| one.template == now.template;
        record
            .unlike
            .retain(|one| one.recipe.as_ref().is_none_or(kept));
        why = Some(text);
    }
    let config = matches!(record.failed, Some((FailureKind::Config, ..)));
    if let (true, Some(before)) = (config, &record.failed_with) {
        let regrouped = || (before.group != now.group).then(|| "its group was changed".to_owned());
        let returned = || back.then(|| "its group is there again".to_owned());
        let over = moved(before).or_else(regrouped).or_else(returned);
        if over.is_some() {
            why = over;
            (record.failed, record.failed_with) = (None, None);
        }
    }
    let missed = record.misses >= MISSES_TO_PAUSE;
    let missed_with = record.missed_with.as_ref().filter(|_| missed);
    if let Some(text) = missed_with.and_then(moved) {
        (record.misses, record.missed_with) = (0, None);
        why = Some(text);
    }
    why
}

/// Takes back a stop by a suspended Launch once a later reading shows none: whoever suspended it has resumed it.
fn launches_again(record: &mut PoolRecord, reading: &PoolReading) -> Option<String> {
    let suspended = |stop: &Stop| {
        matches!(
            stop,
            Stop::Failed {
                failure: FailureKind::Suspended,
                ..
            }
        )
    };
    match record.failed {
        Some((FailureKind::Suspended, _, since))
            if reading.read_at > since && !reading.stops.iter().any(suspended) =>
        {
            (record.failed, record.failed_with) = (None, None);
            Some("Launch is not suspended any more".to_owned())
        }
        _ => None,
    }
}

/// After how long a pool that was stopped by such a failure is tried again by itself.
pub(super) const fn tried_again(failure: FailureKind) -> Option<Millis> {
    match failure {
        FailureKind::Permission => Some(HOURLY),
        FailureKind::Suspended => Some(SUSPENDED),
        _ => None,
    }
}

impl Control {
    /// What is mended elsewhere is tried again; memory that nobody probed for long is forgotten.
    pub(super) async fn mend_pools(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let due: Vec<PoolId> = round
            .ledger
            .pools
            .iter()
            .filter(|(_, held)| {
                held.value.failed.as_ref().is_some_and(|(kind, _, since)| {
                    let pause = tried_again(*kind);
                    pause.is_some_and(|pause| round.now.since(*since) >= pause)
                })
            })
            .map(|(pool, _)| pool.clone())
            .collect();
        for pool in due {
            let (mut settings, _) = round.ledger.pool(&pool);
            (settings.failed, settings.failed_with) = (None, None);
            let mut tx = Tx::new();
            tx.put_pool(&round.ledger, &pool, settings);
            let why = "it is tried again".to_owned();
            tx.event(Happening::PoolClear { pool, why });
            self.commit(round, tx).await?;
        }
        let read: Vec<PoolId> = round.read.iter().cloned().collect();
        for pool in read {
            let back = self.pools.watch(&pool).is_some_and(|watch| watch.back);
            let (mut settings, _) = round.ledger.pool(&pool);
            let why = round.readings.get(&pool).and_then(|reading| {
                let launches = launches_again(&mut settings, reading);
                launches.or_else(|| other_recipe(&mut settings, &reading.recipe, back))
            });
            if let Some(why) = why {
                let mut tx = Tx::new();
                tx.put_pool(&round.ledger, &pool, settings);
                tx.event(Happening::PoolClear { pool, why });
                self.commit(round, tx).await?;
            }
        }
        let offerings: Vec<OfferingId> = round.ledger.memory.keys().cloned().collect();
        let mut tx = Tx::new();
        for offering in offerings {
            if tx.room() > 1 {
                learn_one(round, &mut tx, &offering, &Event::Tick);
            }
        }
        self.commit(round, tx).await?;
        Ok(())
    }
}
