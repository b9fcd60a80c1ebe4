//! Launches in flight: asking (I4), what the answer was, who joined, who never did.
//!
//! Called by the cycle. An intent is committed before it is asked; an answer that was lost is settled with the same token
//! while it is young, and by looking when it is older.

mod joins;

use super::cycle::{Control, CycleError, Round};
use super::deeds::Deed;
use super::events::Happening;
use super::failures;
use super::requests::drop_assignments;
use super::tx::Tx;
use crate::ports::actuate::{
    ActuateError, LaunchOrder, LaunchOutcome, NO_CREDENTIALS, NO_SUCH_GROUP, NOT_ASKED,
    ProviderFailure,
};
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState};
use drover_core::model::{FailureKind, InstanceId, LaunchId, Millis, PoolId};
use drover_core::rules::launch::{Act, Event, Launch, MISSES_TO_PAUSE, Stage, step};

/// A call whose outcome is unknown is repeated after this pause.
const RETRY: Millis = Millis(2_000);

/// A provider that throttles is not asked for this pool for so long, doubled each time.
const THROTTLED: Millis = Millis(5_000);
/// The longest such time.
const THROTTLED_LONGEST: Millis = Millis(120_000);

/// What a launch call gave.
pub(super) struct Answer {
    pub(super) result: Result<LaunchOutcome, ActuateError>,
    /// It was not the first call for its launch.
    pub(super) again: bool,
}

/// As the rules know it.
pub(super) fn life(launch: &LaunchRecord) -> Launch {
    Launch {
        stage: match launch.state {
            LaunchState::Intended => Stage::Intended,
            LaunchState::Asked => Stage::Asked,
            LaunchState::Missed => Stage::Missed,
        },
        count: launch.count,
        granted: launch.granted,
        joined: joined_count(launch),
        seen: !launch.instances.is_empty() || !launch.joined.is_empty(),
        asked: launch.asked,
        deadline: launch.deadline,
    }
}

/// The ask of a record.
pub(super) fn order(launch: &LaunchRecord) -> LaunchOrder {
    LaunchOrder {
        id: launch.id.clone(),
        token: launch.token.clone(),
        pool: launch.pool.clone(),
        offering: launch.offering.clone(),
        count: launch.count,
        asked: launch.asked,
        hosts: launch.hosts.clone(),
    }
}

impl Control {
    /// Settles intents whose answer was lost: a crash, a time-out.
    pub(super) async fn settle_launches(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let open: Vec<LaunchRecord> = round
            .ledger
            .launches
            .values()
            .filter(|held| held.value.state == LaunchState::Intended)
            .map(|held| held.value.clone())
            .collect();
        self.take_answers(round).await?;
        for launch in open {
            let at_work = self.asks.flying().any(|id| *id == launch.id);
            let settled = round
                .ledger
                .launches
                .get(&launch.id)
                .is_none_or(|held| held.value.state != LaunchState::Intended);
            let withdrawing = self.is_at_work(&Deed::Withdraw(launch.pool.clone()));
            if at_work || settled || withdrawing {
                continue;
            }
            let due = self.seen.retry.get(&launch.id);
            if due.is_some_and(|due| *due > round.mono) {
                continue;
            }
            let Some(pool) = self.config.pool(&launch.pool) else {
                continue;
            };
            let Some(actuator) = self.pools.actuator(pool.kind()) else {
                continue;
            };
            let (_, due) = step(life(&launch), Event::Tick, round.now);
            let young = !due.contains(&Act::Settle);
            if young && self.is_frozen(round, &launch.pool) {
                continue;
            }
            let order = order(&launch);
            let known = others(round, &launch);
            let now = round.now;
            self.asks.begin(launch.id, async move {
                let result = if young {
                    actuator.launch(&order).await
                } else {
                    actuator.settle(&order, &known, now).await
                };
                Answer {
                    result,
                    again: true,
                }
            });
        }
        self.take_answers(round).await
    }

    /// Writes down the answers that have come. A call without an answer yet goes on; its launch stays intended.
    pub(super) async fn take_answers(&mut self, round: &mut Round) -> Result<(), CycleError> {
        for (id, answer) in self.asks.ended().await {
            if let (true, Ok(outcome)) = (answer.again, &answer.result)
                && let Some(held) = round.ledger.launches.get(&id)
            {
                round.events.push(Happening::LaunchSettled {
                    pool: held.value.pool.clone(),
                    launch: id.clone(),
                    granted: outcome.granted,
                });
            }
            self.record_answer(round, &id, answer.result).await?;
        }
        Ok(())
    }

    /// Writes down what a call gave: instances, failures as capacity memory or a pool's stop, assignments that were
    /// dropped; all in one commit.
    pub(super) async fn record_answer(
        &mut self,
        round: &mut Round,
        id: &LaunchId,
        result: Result<LaunchOutcome, ActuateError>,
    ) -> Result<(), CycleError> {
        fail::fail_point!("launch.asked");
        let Some(held) = round.ledger.launches.get(id) else {
            return Ok(());
        };
        let mut launch = held.value.clone();
        self.pools.stale(&launch.pool);
        // Says something about whoever asks, and nothing about what was asked for.
        let mut about_us = false;
        let (granted, reported) = match result {
            Ok(outcome) => {
                launch.way = Some(outcome.way);
                launch.instances = outcome.instances;
                (outcome.granted.min(launch.count), outcome.failures)
            }
            Err(error) if unknown_outcome(&error) => {
                tracing::warn!(launch = %id, pool = %launch.pool, error = %error, "a launch call gave no answer: repeated with the same token");
                let due = Millis(round.mono.0.saturating_add(RETRY.0));
                self.seen.retry.insert(id.clone(), due);
                return Ok(());
            }
            Err(error) => {
                about_us = error.code == NO_CREDENTIALS;
                if error.kind == FailureKind::Throttle {
                    let why = format!("its provider throttles: {}", error.message);
                    self.hold_growth(round, &launch.pool, why);
                } else if about_us {
                    self.hold_growth(round, &launch.pool, error.message.clone());
                }
                // Nothing for a person to resume: the next reading says the same, or that it is back.
                let kind = match error.code.as_str() {
                    NO_SUCH_GROUP => FailureKind::Transient,
                    _ => error.kind,
                };
                (
                    0,
                    vec![ProviderFailure {
                        id: String::new(),
                        offering: None,
                        kind,
                        message: error.message,
                        at: round.now,
                    }],
                )
            }
        };
        let missing = launch.count - granted;
        let (after, _) = step(life(&launch), Event::Granted(granted), round.now);
        launch.granted = after.granted;
        launch.state = LaunchState::Asked;
        let mut tx = Tx::new();
        let reason = reported.first().map_or_else(
            || "less was granted".to_owned(),
            |first| first.message.clone(),
        );
        drop_assignments(
            round,
            &mut tx,
            &reason,
            |target| matches!(target, AssignmentTarget::Launch(launch, n) if launch == id && *n >= granted),
        );
        if about_us {
            for failure in reported {
                tx.event(Happening::LaunchFailed {
                    pool: launch.pool.clone(),
                    offering: launch.offering.clone(),
                    kind: failure.kind,
                    message: failure.message,
                });
            }
        } else if missing == 0 && reported.is_empty() {
            failures::gave(round, &mut tx, &launch.offering, granted);
        } else {
            let mut told = reported;
            if told.is_empty() {
                told.push(ProviderFailure {
                    id: String::new(),
                    offering: None,
                    kind: FailureKind::Shortage,
                    message: format!("{granted} of {} granted", launch.count),
                    at: round.now,
                });
            }
            let asked = Some((&launch.offering, granted));
            failures::learn(round, &mut tx, &launch.pool, asked, &told);
        }
        tx.event(Happening::LaunchGranted {
            pool: launch.pool.clone(),
            launch: id.clone(),
            asked: launch.count,
            granted,
        });
        if missing > 0 {
            self.seen.fell.push((launch.offering.clone(), missing));
            round.again = true;
        }
        if after.stage == Stage::Done {
            tx.delete_launch(&round.ledger, id);
        } else {
            tx.put_launch(&round.ledger, id, launch);
        }
        if self.commit(round, tx).await?.is_some() {
            self.seen.retry.remove(id);
            fail::fail_point!("launch.recorded");
        }
        Ok(())
    }

    /// A provider that is asked too often, or that takes no credentials, is left alone for a while, longer each time; it
    /// says nothing about capacity.
    fn hold_growth(&mut self, round: &Round, pool: &PoolId, why: String) {
        let times = match self.seen.held_growth.get(pool) {
            // Not throttled for long: anew.
            Some((_, times, until)) if round.mono < until.plus(THROTTLED_LONGEST) => times + 1,
            _ => 0,
        };
        let pause = (THROTTLED.0 << times.min(8)).min(THROTTLED_LONGEST.0);
        let jitter = pause / 10 * u64::from(round.chance.upto(1_000)) / 1_000;
        let until = round.mono.plus(Millis(pause + jitter));
        let held = (why, times, until);
        self.seen.held_growth.insert(pool.clone(), held);
    }

    /// A launch's nodes that did not come in time: no longer coming, counted as a miss (DESIGN 5, never joined).
    pub(super) async fn take_misses(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let late: Vec<LaunchRecord> = round
            .ledger
            .launches
            .values()
            .map(|held| held.value.clone())
            .filter(|launch| launch.state == LaunchState::Asked)
            .filter(|launch| step(life(launch), Event::Tick, round.now).0.stage == Stage::Missed)
            .collect();
        for mut launch in late {
            let missing = life(&launch).coming();
            let (_, acts) = step(life(&launch), Event::Tick, round.now);
            let mut tx = Tx::new();
            let id = launch.id.clone();
            drop_assignments(
                round,
                &mut tx,
                "the nodes that they were to run on never joined",
                |target| matches!(target, AssignmentTarget::Launch(launch, _) if *launch == id),
            );
            if acts.contains(&Act::NothingCame) {
                let failure = ProviderFailure {
                    id: String::new(),
                    offering: Some(launch.offering.clone()),
                    kind: FailureKind::Shortage,
                    message: "accepted, but no instance appeared".to_owned(),
                    at: round.now,
                };
                failures::learn(
                    round,
                    &mut tx,
                    &launch.pool,
                    Some((&launch.offering, 0)),
                    &[failure],
                );
                self.seen.fell.push((launch.offering.clone(), missing));
                tx.delete_launch(&round.ledger, &id);
            } else {
                if acts.contains(&Act::Miss) {
                    count_miss(round, &mut tx, &launch.pool);
                }
                launch.state = LaunchState::Missed;
                tx.put_launch(&round.ledger, &id, launch.clone());
            }
            tx.event(Happening::LaunchMissed {
                pool: launch.pool,
                launch: id,
                missing,
            });
            self.commit(round, tx).await?;
            round.again = true;
        }
        Ok(())
    }
}

/// One more launch of the pool that never joined.
fn count_miss(round: &Round, tx: &mut Tx, pool: &PoolId) {
    let (mut record, _) = round.ledger.pool(pool);
    record.misses = record.misses.saturating_add(1);
    if record.misses >= MISSES_TO_PAUSE {
        tx.event(Happening::PoolStopped {
            pool: pool.clone(),
            why: format!("{} launches in a row never joined", record.misses),
            next: failures::way_on(round, pool, None),
        });
    }
    if record.misses == MISSES_TO_PAUSE {
        record.missed_with = failures::recipe(round, pool);
    }
    tx.put_pool(&round.ledger, pool, record);
}

/// The call may or may not have taken effect.
fn unknown_outcome(error: &ActuateError) -> bool {
    matches!(error.kind, FailureKind::Throttle | FailureKind::Transient)
        && ![NOT_ASKED, NO_CREDENTIALS].contains(&error.code.as_str())
}

pub(super) fn joined_count(launch: &LaunchRecord) -> u32 {
    u32::try_from(launch.joined.len()).unwrap_or(u32::MAX)
}

/// Instances that belong to other launches or are spoken for.
fn others(round: &Round, launch: &LaunchRecord) -> Vec<InstanceId> {
    let mut known: Vec<InstanceId> = round
        .ledger
        .launches
        .values()
        .filter(|held| held.value.id != launch.id)
        .flat_map(|held| held.value.instances.clone())
        .collect();
    known.extend(
        round
            .fleet
            .iter()
            .filter(|node| node.joined())
            .filter_map(|node| node.instance_id.clone()),
    );
    // Launched before the intent: there already.
    if let Some(reading) = round.readings.get(&launch.pool) {
        known.extend(
            reading
                .instances
                .iter()
                .filter(|instance| instance.launched.is_some_and(|at| at < launch.asked))
                .map(|instance| instance.id.clone()),
        );
    }
    known
}
