//! What failures teach: capacity memory per offering with a doubling pause, or a stop of the whole pool (DESIGN 5).
//!
//! Called with every answer of a provider. The only writer of the memory.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::tx::Tx;
use crate::ports::actuate::ProviderFailure;
use crate::records::MemoryRecord;
use drover_core::model::{FailureKind, MemoryEntry, Millis, OfferingId, PoolId, UnixMs};

/// Pause before the n-th probe of a shortage, minutes.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 16, 30];
/// Pause before a probe of what a person has to mend elsewhere.
const HOURLY: Millis = Millis::minutes(60);
/// Pause before a suspended group is tried again.
const SUSPENDED: Millis = Millis::minutes(10);
/// How many records of a provider are remembered as taken.
const TAKEN: usize = 200;

/// A full success of a probe opens the ration again.
pub(super) const fn success_clears(memory: &MemoryRecord) -> bool {
    memory.failures > 0 || memory.entry.ration > 0
}

/// Pause after so many failures in a row, up to a tenth more, told apart by offering so that probes do not march in step.
fn pause(kind: FailureKind, failures: u32, offering: &OfferingId) -> Millis {
    let base = match kind {
        FailureKind::Quota | FailureKind::Permission => HOURLY,
        FailureKind::Suspended => SUSPENDED,
        _ => {
            let step = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
            Millis::minutes(PAUSES[step.min(PAUSES.len() - 1)])
        }
    };
    let spread = offering
        .as_str()
        .bytes()
        .fold(u64::from(failures), |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
    let tenth = (base.0 / 10).max(1);
    Millis(base.0 + spread % tenth)
}

/// The entry after one more failure. Several failures of one moment count once.
fn next(
    before: Option<&MemoryRecord>,
    failure: &ProviderFailure,
    offering: &OfferingId,
    now: UnixMs,
) -> MemoryRecord {
    let failures = match before {
        Some(before) if before.entry.next_probe > now => before.failures,
        Some(before) => before.failures.saturating_add(1),
        None => 1,
    };
    let failures = failures.max(1);
    MemoryRecord {
        entry: MemoryEntry {
            offering: offering.clone(),
            kind: failure.kind,
            failed: now,
            next_probe: now.after(pause(failure.kind, failures, offering)),
            ration: 1,
            message: failure.message.clone(),
        },
        failures,
    }
}

/// Adds what failures teach to a change. `asked` is the offering that was asked for, when it was our call.
pub(super) fn learn(
    round: &Round,
    tx: &mut Tx,
    pool: &PoolId,
    asked: Option<&OfferingId>,
    failures: &[ProviderFailure],
) {
    let mut learnt: Vec<OfferingId> = Vec::new();
    let mut stopped = false;
    for failure in failures {
        let offerings: Vec<OfferingId> = match failure.offering.as_ref().or(asked) {
            Some(offering) => vec![offering.clone()],
            // A failure of the whole pool closes each of its offerings.
            None => round
                .readings
                .get(pool)
                .map(|reading| {
                    reading
                        .offerings
                        .iter()
                        .map(|found| found.id.clone())
                        .collect()
                })
                .unwrap_or_default(),
        };
        match failure.kind {
            FailureKind::Throttle | FailureKind::Transient => {
                tracing::warn!(pool = %pool, kind = ?failure.kind, message = failure.message, "passing trouble of a provider");
            }
            FailureKind::Config | FailureKind::Permission => {
                if !stopped {
                    let (mut record, _) = round.ledger.pool(pool);
                    record.failed = Some((failure.kind, failure.message.clone(), round.now));
                    tx.put_pool(&round.ledger, pool, record);
                    tx.event(Happening::PoolStopped {
                        pool: pool.clone(),
                        why: failure.message.clone(),
                    });
                }
                stopped = true;
            }
            _ => {
                for offering in offerings {
                    if learnt.contains(&offering) {
                        continue;
                    }
                    let before = round.ledger.memory.get(&offering).map(|held| &held.value);
                    let record = next(before, failure, &offering, round.now);
                    tx.put_memory(&round.ledger, &offering, record);
                    tx.event(Happening::LaunchFailed {
                        pool: pool.clone(),
                        offering: offering.clone(),
                        kind: failure.kind,
                        message: failure.message.clone(),
                    });
                    learnt.push(offering);
                }
            }
        }
    }
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
            learn(round, &mut tx, &pool, None, &failures);
            if self.commit(round, tx).await?.is_none() && failures.iter().any(teaches) {
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
        self.mend_pools(round).await
    }

    /// What is mended elsewhere is tried again hourly.
    async fn mend_pools(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let due: Vec<PoolId> = round
            .ledger
            .pools
            .iter()
            .filter(|(_, held)| {
                matches!(&held.value.failed, Some((FailureKind::Permission, _, since))
                    if round.now.since(*since) >= HOURLY)
            })
            .map(|(pool, _)| pool.clone())
            .collect();
        for pool in due {
            let (mut settings, _) = round.ledger.pool(&pool);
            settings.failed = None;
            let mut tx = Tx::new();
            tx.put_pool(&round.ledger, &pool, settings);
            tx.event(Happening::PoolClear { pool });
            self.commit(round, tx).await?;
        }
        Ok(())
    }
}

const fn teaches(failure: &ProviderFailure) -> bool {
    !matches!(failure.kind, FailureKind::Throttle | FailureKind::Transient)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: FailureKind) -> ProviderFailure {
        ProviderFailure {
            id: "a".into(),
            offering: None,
            kind,
            message: "none".into(),
            at: UnixMs(0),
        }
    }

    #[test]
    fn sc_04_the_pause_doubles_up_to_half_an_hour() {
        let offering = OfferingId::from("p/t/z/on-demand");
        let mut now = UnixMs(1_000_000);
        let mut record = None;
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            let next = next(
                record.as_ref(),
                &failure(FailureKind::Shortage),
                &offering,
                now,
            );
            let waited = next.entry.next_probe.since(now);
            let base = Millis::minutes(minutes);
            assert!(
                waited >= base && waited.0 <= base.0 + base.0 / 10,
                "{minutes}: {waited:?}"
            );
            assert_eq!(next.entry.ration, 1);
            now = next.entry.next_probe;
            record = Some(next);
        }
    }

    #[test]
    fn several_failures_of_one_moment_count_once() {
        let offering = OfferingId::from("p/t/z/on-demand");
        let now = UnixMs(1_000_000);
        let first = next(None, &failure(FailureKind::Shortage), &offering, now);
        let second = next(
            Some(&first),
            &failure(FailureKind::Shortage),
            &offering,
            now,
        );
        assert_eq!(second.failures, 1);
    }

    #[test]
    fn a_quota_is_probed_hourly() {
        let offering = OfferingId::from("p/t/z/on-demand");
        let found = next(None, &failure(FailureKind::Quota), &offering, UnixMs(0));
        assert!(found.entry.next_probe.0 >= HOURLY.0);
    }
}
