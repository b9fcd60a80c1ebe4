//! What launch calls gave: written down with what it teaches. An answer that says nothing leaves its launch intended, to
//! be settled.

use super::life;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::failures;
use crate::control::parts::whole_of;
use crate::control::requests::drop_assignments;
use crate::control::tx::Tx;
use crate::ports::actuate::{
    ActuateError, LaunchOutcome, NO_CREDENTIALS, NO_SUCH_GROUP, NOT_ASKED, ProviderFailure, Trace,
    Way,
};
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState};
use drover_core::model::{FailureKind, LaunchId, Millis, PoolId};
use drover_core::rules::launch::{Event, Stage, step};

/// A call whose outcome is unknown is repeated after this pause.
const RETRY: Millis = Millis(2_000);

/// A provider that throttles is not asked for this pool for so long, doubled each time.
const THROTTLED: Millis = Millis(5_000);
/// The longest such time.
const THROTTLED_LONGEST: Millis = Millis(120_000);

/// What a launch call gave.
pub(in crate::control) struct Answer {
    pub(in crate::control) result: Result<LaunchOutcome, ActuateError>,
    /// It was not the first call for its launch.
    pub(in crate::control) again: bool,
}

impl Control {
    /// Writes down the answers that have come. A call without an answer yet goes on; its launch stays intended.
    pub(in crate::control) async fn take_answers(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        for (id, answer) in self.asks.ended().await {
            self.record_answer(round, &id, answer).await?;
        }
        Ok(())
    }

    /// Writes down what a call gave: instances, failures as capacity memory or a pool's stop, assignments that were
    /// dropped; all in one commit.
    pub(in crate::control) async fn record_answer(
        &mut self,
        round: &mut Round,
        id: &LaunchId,
        answer: Answer,
    ) -> Result<(), CycleError> {
        fail::fail_point!("launch.asked");
        let Some(held) = round.ledger.launches.get(id) else {
            return Ok(());
        };
        let mut launch = held.value.clone();
        self.pools.stale(&launch.pool);
        // Says something about whoever asks, and nothing about what was asked for.
        let mut about_us = false;
        let (granted, reported) = match answer.result {
            Ok(outcome) => {
                launch.way = Some(outcome.way);
                launch.raised = outcome.raised;
                if outcome.way == Way::SetDesiredCapacity {
                    // The group as a whole was asked, whatever zone the order named.
                    launch.offering = whole_of(round, &launch.pool, &launch.offering);
                }
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
                        trace: Trace::Absent,
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
                    launch: Some(id.clone()),
                    offering: launch.offering.clone(),
                    kind: failure.kind,
                    message: failure.message,
                });
            }
        } else if missing == 0 && reported.is_empty() {
            // What only names a size gives when instances are seen.
            if !launch.tells_no_ids() {
                failures::gave(round, &mut tx, &launch.offering, granted);
                // A probe that was granted opens its offering for what else waits.
                round.again |= round.ledger.memory.contains_key(&launch.offering);
            }
        } else {
            let mut told = reported;
            if told.is_empty() {
                told.push(ProviderFailure {
                    id: String::new(),
                    offering: None,
                    kind: FailureKind::Shortage,
                    message: format!("{granted} of {} granted", launch.count),
                    at: round.now,
                    trace: Trace::Absent,
                });
            }
            let asked = failures::Asked {
                launch: id,
                offering: &launch.offering,
                granted,
            };
            let whose = failures::Whose::Ours(asked);
            failures::learn(round, &mut tx, &launch.pool, whose, &told);
        }
        // What failed wholly is told as its failure.
        if granted > 0 {
            tx.event(outcome_of(&launch, granted, answer.again));
        }
        if missing > 0 {
            let fell = (launch.pool.clone(), launch.offering.clone(), missing);
            self.seen.fell.push(fell);
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
}

/// What is told of an ask that gave something: once.
fn outcome_of(launch: &LaunchRecord, granted: u32, again: bool) -> Happening {
    let (pool, id) = (launch.pool.clone(), launch.id.clone());
    let asked = launch.count;
    if again {
        Happening::LaunchSettled {
            pool,
            launch: id,
            asked,
            granted,
        }
    } else if launch.tells_no_ids() {
        Happening::LaunchAccepted {
            pool,
            launch: id,
            count: granted,
        }
    } else {
        Happening::LaunchGranted {
            pool,
            launch: id,
            asked,
            granted,
        }
    }
}

/// The call may or may not have taken effect.
fn unknown_outcome(error: &ActuateError) -> bool {
    matches!(error.kind, FailureKind::Throttle | FailureKind::Transient)
        && ![NOT_ASKED, NO_CREDENTIALS].contains(&error.code.as_str())
}
