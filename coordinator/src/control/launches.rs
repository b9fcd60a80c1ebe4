//! Launches in flight: asking (I4), what the answer was, who joined, who never did.
//!
//! Called by the cycle. An intent is committed before it is asked; an answer that was lost is settled with the same token
//! while it is young, and by looking when it is older.

mod answers;
mod joins;
mod likeness;
mod losses;
mod misses;
mod shown;
mod ties;
mod trails;
mod unready;

pub(super) use answers::Answer;
pub(super) use likeness::{as_found, told as told_unlike};
pub(super) use shown::seen;
pub(super) use ties::{open_places, young};
pub(super) use trails::{Trail, may_be_of, unseen};

use super::cycle::{Control, CycleError, Round};
use super::deeds::Deed;
use super::upkeep::CLOCK_SLACK;
use crate::ports::actuate::{Instance, LaunchOrder};
use crate::records::{LaunchRecord, LaunchState};
use drover_core::model::{InstanceId, UnixMs};
use drover_core::rules::launch::{Act, Event, Launch, Stage, step};

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
    // Noted as there at the ask, or older than any clock explains: providers tell launches to the second only.
    let from = UnixMs(launch.asked.0.saturating_sub(CLOCK_SLACK.0));
    if let Some(reading) = round.readings.get(&launch.pool) {
        let old = |found: &&Instance| found.launched.is_some_and(|at| at < from);
        let there = |found: &&Instance| launch.before.contains(&found.id) || old(found);
        let all = reading.instances.iter();
        known.extend(all.filter(there).map(|found| found.id.clone()));
    }
    known
}
