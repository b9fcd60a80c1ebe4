//! Launches in flight: asking (I4), what the answer was, who joined, who never did.
//!
//! Called by the cycle. An intent is committed before it is asked; an answer that was lost is settled with the same token
//! while it is young, and by looking when it is older.

mod answers;
mod joins;
mod likeness;
mod losses;
mod shown;
mod ties;
mod trails;

pub(super) use answers::Answer;
pub(super) use likeness::{as_found, told as told_unlike};
pub(super) use shown::seen;
pub(super) use ties::{open_places, young};
pub(super) use trails::{Trail, may_be_of, unseen};

use super::cycle::{Control, CycleError, Round};
use super::deeds::Deed;
use super::events::Happening;
use super::failures;
use super::requests::drop_assignments;
use super::tx::Tx;
use crate::ports::actuate::{LaunchOrder, ProviderFailure, Trace};
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState};
use drover_core::model::{FailureKind, InstanceId, PoolId};
use drover_core::rules::launch::{Act, Event, Launch, MISSES_TO_PAUSE, Stage, step};

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
        seen: !launch.instances.is_empty()
            || !launch.joined.is_empty()
            || (launch.appeared > 0 && launch.appeared >= launch.granted.unwrap_or(launch.count)),
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
                    message: match launch.appeared {
                        0 => "accepted, but no instance appeared".to_owned(),
                        some => format!(
                            "accepted, but only {some} of {missing} appeared, and nobody can tell whose they are"
                        ),
                    },
                    at: round.now,
                    trace: Trace::Absent,
                };
                failures::learn(
                    round,
                    &mut tx,
                    &launch.pool,
                    failures::Whose::Ours(failures::Asked {
                        launch: &id,
                        offering: &launch.offering,
                        granted: 0,
                    }),
                    &[failure],
                );
                let fell = (launch.pool.clone(), launch.offering.clone(), missing);
                self.seen.fell.push(fell);
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
