//! Dead members: instances that their provider still counts although they were ended or stopped behind our back. They go
//! off its books by id and with decrement, so that it replaces none of them: only Drover replaces (DESIGN 5).
//!
//! Called by the cycle after launches were followed. Only in mode full, never for an instance whose agent is heard, and the
//! actuator asks the provider once more before the call (I1: what was ended has no work). What is only stopped may be
//! started again: it is left alone for a while, and then counts as a termination for the breaker.

use super::cycle::{Control, CycleError, Round};
use super::deeds::{Deed, Done};
use super::events::Happening;
use super::tx::Tx;
use crate::ports::actuate::{ActuateError, Dead};
use drover_core::model::{InstanceId, Millis, Mode, NodeId, PoolId};

/// A stopped member is left alone for so long: somebody may be at work on it.
const STOPPED: Millis = Millis::minutes(15);
/// After a refusal it is tried again after this, doubled each time up to [`LONGEST`].
const PAUSE: Millis = Millis::minutes(1);
/// Longest pause.
const LONGEST: Millis = Millis::minutes(30);

impl Control {
    /// Takes dead members off their providers' books.
    pub(super) async fn bury_dead(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut due: Vec<(PoolId, Dead)> = Vec::new();
        for pool in &round.read {
            let Some(reading) = round.readings.get(pool) else {
                continue;
            };
            let allowed = self.mode(round, pool) == Mode::Full
                && !self.is_frozen(round, pool)
                && reading.removable;
            let found = reading.dead.iter().filter(|dead| {
                allowed
                    && self.is_dead(round, dead)
                    && !self.is_at_work(&Deed::Bury(dead.id.clone()))
            });
            due.extend(found.map(|dead| (pool.clone(), dead.clone())));
        }
        // Who is off the books is forgotten.
        let dead = |id: &InstanceId| {
            let mut all = round.readings.values().flat_map(|reading| &reading.dead);
            all.any(|dead| dead.id == *id)
        };
        self.seen.buried.retain(|id, _| dead(id));
        for (pool, dead) in due {
            let kind = self.config.pool(&pool).map(|pool| pool.kind());
            let Some(actuator) = kind.and_then(|kind| self.pools.actuator(kind)) else {
                continue;
            };
            let mut tx = Tx::new();
            let node = NodeId(format!("instance/{}", dead.id));
            if dead.stopped && !self.pass_breaker(round, &mut tx, &pool, &node) {
                self.commit(round, tx).await?;
                continue;
            }
            let what = if dead.stopped { "stopped" } else { "ended" };
            let detail = format!("{} is {what} behind our back: {}", dead.id, dead.why);
            tx.audit("pool.bury", pool.as_str(), detail);
            if self.commit(round, tx).await?.is_none() {
                continue;
            }
            let instance = dead.id;
            self.deeds.begin(Deed::Bury(instance.clone()), async move {
                let result = actuator.bury(&pool, &instance).await;
                Done::Buried(pool, instance, result)
            });
        }
        self.take_deeds(round).await
    }

    /// Writes down what a call gave.
    pub(super) async fn buried(
        &mut self,
        round: &mut Round,
        pool: &PoolId,
        instance: InstanceId,
        result: Result<(), ActuateError>,
    ) -> Result<(), CycleError> {
        self.pools.stale(pool);
        let Err(error) = result else {
            // It shows for a while: not again at once.
            let again = (0, round.mono.plus(PAUSE));
            self.seen.buried.insert(instance.clone(), again);
            let pool = pool.clone();
            round.events.push(Happening::Buried { pool, instance });
            return Ok(());
        };
        let times = self
            .seen
            .buried
            .get(&instance)
            .map_or(0, |(times, _)| *times);
        let pause = Millis((PAUSE.0 << times.min(8)).min(LONGEST.0));
        let next = (times.saturating_add(1), round.mono.plus(pause));
        self.seen.buried.insert(instance.clone(), next);
        let message = format!(
            "{instance} does not run and cannot be taken out of its group: {}",
            error.message
        );
        let pool = pool.clone();
        round.events.push(Happening::PoolWarning { pool, message });
        Ok(())
    }

    /// Neither our own short memory nor an agent speaks against it.
    fn is_dead(&self, round: &Round, dead: &Dead) -> bool {
        let waits = self.seen.buried.get(&dead.id);
        let heard = round.fleet.iter().any(|node| {
            node.instance_id.as_ref() == Some(&dead.id)
                && node.agent.as_ref().is_some_and(|agent| agent.connected)
        });
        let young = dead.stopped && round.now.since(dead.since) < STOPPED;
        !heard && !young && waits.is_none_or(|(_, next)| *next <= round.mono)
    }
}
