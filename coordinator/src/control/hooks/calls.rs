//! Drains for hooks, and the calls: heartbeats and completions, each in the background and with a pause after one that
//! failed.
//!
//! Part of following hooks.

use super::super::cycle::{Control, CycleError, Round};
use super::super::deeds::{Deed, Done};
use super::super::events::{Happening, policy_word};
use super::super::fleet::FleetNode;
use super::super::notices::{begin, move_requests};
use super::super::orders::{DROVER, OWN_DRAIN};
use super::super::tx::Tx;
use crate::config::PoolConfig;
use crate::ports::actuate::{ActuateError, Actuator, InstanceState};
use crate::records::{
    DrainPolicy, DrainRecord, DrainStep, HookOn, HookRecord, HookState, NoticeRecord, Then,
};
use drover_core::model::{DrainId, Millis, Mode, PoolId, UnixMs};
use std::sync::Arc;

/// A call is made again after this when its effect is not known.
const CALL_AGAIN: Millis = Millis::seconds(10);
/// A forced drain ends so long before the hook is completed.
const MARGIN: Millis = Millis::seconds(15);

/// What a call gave.
pub(in crate::control) struct HookDone {
    key: String,
    /// When it was begun.
    at: UnixMs,
    is_beat: bool,
    result: Result<bool, ActuateError>,
}

impl Control {
    /// Empties a node that its group ends, once.
    pub(super) fn drain_for_hook(
        &self,
        round: &Round,
        tx: &mut Tx,
        record: &HookRecord,
        node: &FleetNode,
    ) {
        let held = Self::terminating(node).and_then(|key| {
            let held = round.ledger.notices.get(&key)?;
            Some((key, held.value.clone()))
        });
        let Some((key, notice)) = held else { return };
        let (Some(deadline), None, None) = (record.deadline, &notice.drain, &node.drain) else {
            return;
        };
        let Some(config) = self.config.pool(&record.pool) else {
            return;
        };
        // Growing ends nobody's work, whatever the policy.
        let policy = match self.mode(round, &record.pool) {
            Mode::Full => record.policy,
            Mode::Grow | Mode::Observe => DrainPolicy::Wait,
        };
        let ends = match policy {
            DrainPolicy::Force => UnixMs(deadline.0.saturating_sub(MARGIN.0)),
            DrainPolicy::Wait | DrainPolicy::Evict => deadline,
        };
        let drain = DrainRecord {
            id: DrainId(format!("{OWN_DRAIN}{:016x}", self.chance.next())),
            node: node.id.clone(),
            policy,
            by: DROVER.to_owned(),
            reason: format!(
                "its group terminates it (hook {}, policy {})",
                record.hook,
                policy_word(policy)
            ),
            own_idle: false,
            since: round.now,
            deadline: Some(ends.max(round.now)),
            grace: config.grace,
            then: Then::Cordoned,
            step: DrainStep::Requested,
            moving: None,
            before: node.order.clone().map(Box::new),
        };
        let noted = NoticeRecord {
            drain: Some(drain.id.clone()),
            ..notice
        };
        tx.put_notice(&round.ledger, &key, noted);
        tx.event(Happening::HookWaits {
            node: node.id.clone(),
            hook: record.hook.clone(),
        });
        begin(round, tx, node, drain);
        if policy != DrainPolicy::Wait {
            move_requests(round, tx, node, "its group terminates the node");
        }
    }

    fn hook_driver(&self, pool: &PoolId) -> Option<Arc<dyn Actuator>> {
        let kind = self.config.pool(pool).map(PoolConfig::kind)?;
        self.pools.actuator(kind)
    }

    fn may_call(&mut self, round: &Round, key: &str) -> bool {
        let lately = self
            .seen
            .hook_called
            .get(key)
            .is_some_and(|at| round.mono.0.saturating_sub(at.0) < CALL_AGAIN.0);
        if lately || self.is_at_work(&Deed::Hook(key.to_owned())) {
            return false;
        }
        self.seen.hook_called.insert(key.to_owned(), round.mono);
        true
    }

    pub(super) fn call_beat(&mut self, round: &Round, key: &str, record: &HookRecord) {
        self.call_hook(round, key, record, true);
    }

    pub(super) fn call_complete(&mut self, round: &Round, key: &str, record: &HookRecord) {
        self.call_hook(round, key, record, false);
    }

    /// One call for a hook, beside the cycle.
    fn call_hook(&mut self, round: &Round, key: &str, record: &HookRecord, is_beat: bool) {
        let Some(actuator) = self.hook_driver(&record.pool) else {
            return;
        };
        if !self.may_call(round, key) {
            return;
        }
        let (key, record, at) = (key.to_owned(), record.clone(), round.now);
        self.deeds.begin(Deed::Hook(key.clone()), async move {
            let HookRecord {
                pool,
                hook,
                instance,
                ..
            } = &record;
            let result = if is_beat {
                actuator.beat(pool, hook, instance).await
            } else {
                actuator.complete(pool, hook, instance).await
            };
            Done::Hook(HookDone {
                key,
                at,
                is_beat,
                result,
            })
        });
    }

    /// Writes down what a call gave.
    pub(in crate::control) async fn hook_called(
        &mut self,
        round: &mut Round,
        done: HookDone,
    ) -> Result<(), CycleError> {
        let Some(record) = round
            .ledger
            .hooks
            .get(&done.key)
            .map(|held| held.value.clone())
        else {
            return Ok(());
        };
        let answered = match done.result {
            Ok(answered) => answered,
            Err(error) => {
                let what = if done.is_beat { "held" } else { "completed" };
                self.hook_failed(round, &record, what, &error);
                return Ok(());
            }
        };
        let mut next = record.clone();
        let mut tx = Tx::new();
        match (done.is_beat, answered) {
            (true, true) => {
                next.beat = Some(done.at);
                next.beats += 1;
                self.seen.hook_called.remove(&done.key);
                tracing::info!(instance = %record.instance, hook = record.hook, beats = next.beats, "hook held");
            }
            // On its way in it may not have come to its hook yet.
            (_, false) if self.is_booting(round, &record) => return Ok(()),
            (true, false) => {
                next.state = HookState::Over;
                next.why = "it does not wait there".to_owned();
            }
            // Without an answer of before, this one says that nobody waits any more: it was taken.
            (false, _) => {
                next.state = HookState::Over;
                let node = round
                    .fleet
                    .iter()
                    .find(|node| node.instance_id.as_ref() == Some(&record.instance));
                if let Some(node) = node {
                    tx.event(Happening::HookCompleted {
                        node: node.id.clone(),
                        hook: record.hook.clone(),
                        why: record.why.clone(),
                    });
                }
                self.pools.stale(&record.pool);
            }
        }
        tx.put_hook(&round.ledger, &done.key, next);
        self.commit(round, tx).await?;
        Ok(())
    }

    fn is_booting(&self, round: &Round, record: &HookRecord) -> bool {
        let reading = round.readings.get(&record.pool);
        let mut instances = reading.iter().flat_map(|reading| &reading.instances);
        record.on == HookOn::Launching
            && instances.any(|instance| {
                instance.id == record.instance && instance.state == InstanceState::Pending
            })
    }

    /// Takes what was read of a group's hooks.
    pub(in crate::control) fn hooks_read(
        &mut self,
        round: &mut Round,
        pool: PoolId,
        result: Result<Vec<crate::ports::hooks::Hook>, ActuateError>,
    ) {
        let hooks = match result {
            Ok(hooks) => Some(hooks),
            Err(error) => {
                let message = format!("its lifecycle hooks cannot be read: {error}");
                self.warn_once(round, &pool, message);
                None
            }
        };
        self.seen.hooks.insert(pool, (round.mono, hooks));
    }

    fn hook_failed(
        &mut self,
        round: &mut Round,
        record: &HookRecord,
        what: &str,
        error: &ActuateError,
    ) {
        tracing::warn!(instance = %record.instance, hook = record.hook, %error, "hook not {what}");
        let message = format!(
            "hook {} of {} could not be {what}: {error}",
            record.hook, record.instance
        );
        self.warn_once(round, &record.pool, message);
    }

    fn warn_once(&mut self, round: &mut Round, pool: &PoolId, message: String) {
        if self.seen.warned.insert((pool.clone(), message.clone())) {
            round.events.push(Happening::PoolWarning {
                pool: pool.clone(),
                message,
            });
        }
    }
}
