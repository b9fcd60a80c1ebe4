//! What failures teach, by `rules::capacity`: memory per offering, or a stop of the whole pool (DESIGN 5).
//!
//! Called with every answer of a provider. The only writer of the memory.

mod mended;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::tx::Tx;
use super::upkeep::give_up_unfilled;
use crate::ports::actuate::{ProviderFailure, Recipe};
use crate::records::MemoryRecord;
use drover_core::model::{FailureKind, LaunchId, OfferingId, PoolId};
use drover_core::rules::capacity::{Act, Event, Known, step};
use mended::tried_again;

/// How many records of a provider are remembered as taken.
const TAKEN: usize = 200;

fn known(round: &Round, offering: &OfferingId) -> Option<Known> {
    round.ledger.memory.get(offering).map(|held| Known {
        entry: held.value.entry.clone(),
        failures: held.value.failures,
    })
}

/// Takes one step of an offering's memory into a change.
fn learn_one(round: &Round, tx: &mut Tx, offering: &OfferingId, event: &Event) -> Vec<Act> {
    let before = known(round, offering);
    let jitter = round.chance.upto(1_000);
    let (after, acts) = step(before.clone(), offering, event, round.now, jitter);
    match after {
        Some(after) if before.as_ref() != Some(&after) => {
            let record = MemoryRecord {
                entry: after.entry,
                failures: after.failures,
            };
            tx.put_memory(&round.ledger, offering, record);
        }
        Some(_) => {}
        None => tx.delete_memory(&round.ledger, offering),
    }
    acts
}

/// An ask gave all that was asked.
pub(super) fn gave(round: &Round, tx: &mut Tx, offering: &OfferingId, nodes: u32) {
    learn_one(round, tx, offering, &Event::Gave { nodes });
}

/// Whose failures are that are learnt from.
#[derive(Clone, Copy)]
pub(super) enum Whose<'l> {
    /// A call of ours.
    Ours(Asked<'l>),
    /// The provider reported them by itself: the launch of each, where that is known.
    Reported(&'l [Option<LaunchId>]),
}

/// A call of ours that failed, wholly or in part.
#[derive(Clone, Copy)]
pub(super) struct Asked<'l> {
    pub(super) launch: &'l LaunchId,
    pub(super) offering: &'l OfferingId,
    /// Nodes that it gave all the same.
    pub(super) granted: u32,
}

/// Adds what failures teach to a change.
pub(super) fn learn(
    round: &Round,
    tx: &mut Tx,
    pool: &PoolId,
    whose: Whose<'_>,
    failures: &[ProviderFailure],
) {
    let mut learnt: Vec<(OfferingId, Option<LaunchId>)> = Vec::new();
    let mut stopped = false;
    for (n, failure) in failures.iter().enumerate() {
        let (asked, launch) = match whose {
            Whose::Ours(asked) => (Some(asked), Some(asked.launch)),
            Whose::Reported(of) => (None, of.get(n).and_then(Option::as_ref)),
        };
        let offerings: Vec<OfferingId> = match (&failure.offering, asked) {
            (Some(offering), _) => vec![offering.clone()],
            (None, Some(asked)) => vec![asked.offering.clone()],
            // A failure of the whole pool closes each of its offerings.
            (None, None) => round
                .readings
                .get(pool)
                .map(|reading| {
                    let all = reading.offerings.iter();
                    all.map(|found| found.id.clone()).collect()
                })
                .unwrap_or_default(),
        };
        for offering in offerings {
            let taught = learnt.iter().any(|(of, _)| *of == offering);
            if learnt.contains(&(offering.clone(), launch.cloned())) {
                continue;
            }
            let event = Event::Failed {
                kind: failure.kind,
                unsupported: failure.message.contains("Unsupported"),
                granted: asked.map_or(0, |asked| asked.granted),
                message: failure.message.clone(),
            };
            let acts = if taught {
                Vec::new()
            } else {
                learn_one(round, tx, &offering, &event)
            };
            if acts.iter().any(|act| matches!(act, Act::StopPool { .. })) && !stopped {
                stopped = true;
                stop_pool(round, tx, pool, failure);
            }
            tx.event(Happening::LaunchFailed {
                pool: pool.clone(),
                launch: launch.cloned(),
                offering: offering.clone(),
                kind: failure.kind,
                message: failure.message.clone(),
            });
            learnt.push((offering, launch.cloned()));
        }
    }
}

/// Stops a pool by a failure that a person has to mend.
pub(super) fn stop_pool(round: &Round, tx: &mut Tx, pool: &PoolId, failure: &ProviderFailure) {
    let (mut record, _) = round.ledger.pool(pool);
    record.failed = Some((failure.kind, failure.message.clone(), round.now));
    record.failed_with = recipe(round, pool);
    tx.put_pool(&round.ledger, pool, record);
    tx.event(Happening::PoolStopped {
        pool: pool.clone(),
        why: failure.message.clone(),
        next: way_on(round, pool, Some(failure.kind)),
    });
}

/// What a pool's nodes are made from, where that is known.
pub(super) fn recipe(round: &Round, pool: &PoolId) -> Option<Recipe> {
    let recipe = &round.readings.get(pool)?.recipe;
    (!recipe.template.is_empty()).then(|| recipe.clone())
}

/// How a pool that Drover itself has stopped grows again; `None`: it was stopped by launches that never joined.
pub(super) fn way_on(round: &Round, pool: &PoolId, failure: Option<FailureKind>) -> String {
    let known = recipe(round, pool).is_some();
    match failure.map(|kind| (kind, tried_again(kind))) {
        Some((FailureKind::Suspended, _)) => format!(
            "it grows again by itself once a reading shows Launch resumed, or after `drover pools resume {pool}`"
        ),
        Some((_, Some(pause))) => format!(
            "it is tried again after {} min, or at once after `drover pools resume {pool}`",
            pause.0 / 60_000
        ),
        Some((FailureKind::Config, None)) if known => format!(
            "another version of its launch template, a change of its group, or `drover pools resume {pool}` lets it grow again"
        ),
        Some(_) => {
            format!("once that is mended, `drover pools resume {pool}` lets it grow again")
        }
        None if known => format!(
            "a node of it that joins, another version of its launch template, or `drover pools resume {pool}` lets it grow again"
        ),
        None => {
            format!("a node of it that joins, or `drover pools resume {pool}`, lets it grow again")
        }
    }
}

/// How a pool whose nodes are not what was promised is planned as promised again.
pub(super) fn way_on_unlike(pool: &PoolId) -> String {
    format!(
        "planned with what its nodes have until one joins that is as promised, its launch template is another version, or \
         `drover pools resume {pool}`"
    )
}

impl Control {
    /// Failures that providers report on their own (scaling activities), each once.
    pub(super) async fn take_provider_failures(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        let fresh: Vec<(PoolId, Vec<ProviderFailure>)> = round
            .read
            .iter()
            .filter_map(|pool| {
                let reading = round.readings.get(pool)?;
                let (settings, _) = round.ledger.pool(pool);
                let fresh: Vec<ProviderFailure> = reading
                    .failures
                    .iter()
                    .filter(|failure| !settings.failures_seen.contains(&failure.id))
                    .cloned()
                    .collect();
                (!fresh.is_empty()).then(|| (pool.clone(), fresh))
            })
            .collect();
        for (pool, failures) in fresh {
            let mut tx = Tx::new();
            let of: Vec<Option<LaunchId>> = failures
                .iter()
                .map(|failure| self.blamed(&pool, failure))
                .collect();
            learn(round, &mut tx, &pool, Whose::Reported(&of), &failures);
            let fell = give_up_unfilled(round, &mut tx, &pool, &failures, &of);
            self.seen.fell.extend(fell);
            if self.commit(round, tx).await?.is_none() {
                continue;
            }
            let mut tx = Tx::new();
            let (mut settings, _) = round.ledger.pool(&pool);
            settings
                .failures_seen
                .extend(failures.iter().map(|failure| failure.id.clone()));
            let extra = settings.failures_seen.len().saturating_sub(TAKEN);
            settings.failures_seen.drain(..extra);
            tx.put_pool(&round.ledger, &pool, settings);
            self.commit(round, tx).await?;
            round.again = true;
        }
        self.carry_memory(round).await?;
        self.mend_pools(round).await
    }
}
