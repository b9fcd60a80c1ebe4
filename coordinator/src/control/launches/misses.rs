//! What did not come until its deadline: no longer coming. What was seen and never joined is a miss of its pool; what was
//! granted and never seen is a shortage of its offering, and no fault of the template.
//!
//! Called by the cycle once joins and losses were taken. It gives nothing back: that follows, since nobody waits for it.

use super::{life, seen, trails};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::failures;
use crate::control::requests::drop_assignments;
use crate::control::tx::Tx;
use crate::ports::actuate::{ProviderFailure, Trace};
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState};
use drover_core::model::{FailureKind, PoolId, Stop};
use drover_core::rules::launch::{Act, Event, MISSES_TO_PAUSE, Stage, step};

impl Control {
    /// A launch's nodes that did not come in time: no longer coming, counted as a miss or a shortage (DESIGN 5).
    pub(in crate::control) async fn take_misses(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
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
            let nothing_came = acts.contains(&Act::NothingCame);
            let mut tx = Tx::new();
            let id = launch.id.clone();
            drop_assignments(
                round,
                &mut tx,
                "the nodes that they were to run on never joined",
                |target| matches!(target, AssignmentTarget::Launch(launch, _) if *launch == id),
            );
            let unseen = match launch.tells_no_ids() {
                _ if nothing_came => missing,
                true => trails::unseen(&launch),
                false => 0,
            };
            if unseen > 0 {
                learn_shortage(round, &mut tx, &launch, nothing_came);
                let fell = (launch.pool.clone(), launch.offering.clone(), unseen);
                self.seen.fell.push(fell);
            }
            if nothing_came {
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

/// What was granted and never seen is a shortage of its offering, unless somebody has suspended launches there: then that
/// is why, and it is told already.
fn learn_shortage(round: &Round, tx: &mut Tx, launch: &LaunchRecord, nothing_came: bool) {
    if is_suspended(round, &launch.pool) {
        return;
    }
    let (some, all) = (seen(launch), launch.granted.unwrap_or(launch.count));
    let doubt = if launch.ambiguous || nothing_came {
        ", and nobody can tell whose they are"
    } else {
        ""
    };
    let failure = ProviderFailure {
        id: String::new(),
        offering: Some(launch.offering.clone()),
        kind: FailureKind::Shortage,
        message: match some {
            0 => "accepted, but no instance appeared".to_owned(),
            some => format!("accepted, but only {some} of {all} appeared{doubt}"),
        },
        at: round.now,
        trace: Trace::Absent,
    };
    let asked = failures::Asked {
        launch: &launch.id,
        offering: &launch.offering,
        granted: if nothing_came { 0 } else { some },
    };
    let whose = failures::Whose::Ours(asked);
    failures::learn(round, tx, &launch.pool, whose, &[failure]);
}

/// Whether the provider says that nothing is launched there, and not since we are giving something back.
fn is_suspended(round: &Round, pool: &PoolId) -> bool {
    let Some(reading) = round.readings.get(pool) else {
        return false;
    };
    let mut stops = reading.stops.iter();
    !reading.withdrawing
        && stops.any(|stop| {
            matches!(stop, Stop::Failed { failure, .. } if *failure == FailureKind::Suspended)
        })
}

/// One more launch of the pool that never joined, or of which nothing was ready in its time.
pub(super) fn count_miss(round: &Round, tx: &mut Tx, pool: &PoolId) {
    let (mut record, _) = round.ledger.pool(pool);
    record.misses = record.misses.saturating_add(1);
    if record.misses >= MISSES_TO_PAUSE {
        tx.event(Happening::PoolStopped {
            pool: pool.clone(),
            why: format!(
                "{} launches in a row never joined or were never ready",
                record.misses
            ),
            next: failures::way_on(round, pool, None),
        });
    }
    if record.misses == MISSES_TO_PAUSE {
        record.missed_with = failures::recipe(round, pool);
    }
    tx.put_pool(&round.ledger, pool, record);
}
