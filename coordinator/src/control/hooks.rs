//! Lifecycle hooks in which instances of our pools wait: on the way out their node is drained meanwhile, heartbeats give it
//! time, and each is completed with CONTINUE exactly once; on the way in those that the pool names are completed once the
//! node takes work. ABANDON is never sent.
//!
//! Called by the cycle after notices. `observe` and a freeze make no call. **Invariant:** no heartbeat after the decision to
//! complete, which is committed before its call with the reason (I1): the group's decision cannot be undone, and a hook
//! that nobody answers only delays it.

mod calls;
mod find;

use super::cycle::{Control, CycleError, Round};
use super::events::{Happening, policy_word};
use super::fleet::FleetNode;
use super::tx::Tx;
use crate::ports::actuate::InstanceState;
use crate::records::{DrainStep, HookOn, HookRecord, HookState};
use drover_core::model::{Lifecycle, Millis, Mode, UnixMs};

pub(super) use calls::HookDone;

/// An instance that is nowhere in its pool is gone after this: readings may lag.
const UNFOUND: Millis = Millis::minutes(2);
/// It is told so long before the end of a hook's time, or one heartbeat's time before if that is longer.
const AHEAD: Millis = Millis::minutes(5);

/// What is seen of an instance that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    /// Its node is empty, confirmed.
    drained: bool,
    /// No agent ever spoke for it.
    unknown: bool,
    /// Its node takes work.
    ready: bool,
    /// It is no more.
    gone: bool,
}

/// What is to be done about a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    Nothing,
    /// Another heartbeat.
    Beat,
    /// Complete it, for this reason.
    Complete(String),
    /// Left to what the group does when nobody answers, for this reason.
    LeaveBe(String),
    /// Nothing of it is left.
    Forget,
}

/// Decides on one hook.
fn judge(record: &HookRecord, look: Look, now: UnixMs) -> Act {
    match record.state {
        _ if look.gone => return Act::Forget,
        HookState::Over => return Act::Nothing,
        HookState::Completing => return Act::Complete(record.why.clone()),
        HookState::Waits => {}
    }
    let late = record.deadline.is_some_and(|deadline| now >= deadline);
    match record.on {
        HookOn::Terminating if look.unknown => return Act::Complete("unknown node".to_owned()),
        HookOn::Terminating if look.drained => return Act::Complete("drained".to_owned()),
        HookOn::Terminating if late => {
            let (policy, pool) = (policy_word(record.policy), &record.pool);
            let seconds = now.since(record.since).0 / 1_000;
            return Act::Complete(format!(
                "policy {policy} of pool {pool} gave the drain up after {seconds} s: its group ends it with what runs there"
            ));
        }
        HookOn::Launching if look.ready => {
            return Act::Complete("its node takes work".to_owned());
        }
        HookOn::Launching if late => {
            return Act::LeaveBe("its agent did not join in time".to_owned());
        }
        _ => {}
    }
    let last = record.beat.unwrap_or(record.since);
    match record.timeout {
        Some(timeout) if now.since(last).0 >= timeout.0 / 2 => Act::Beat,
        _ => Act::Nothing,
    }
}

impl Control {
    pub(super) async fn follow_hooks(&mut self, round: &mut Round) -> Result<(), CycleError> {
        self.read_hooks(round).await?;
        self.find_hooks(round).await?;
        self.rejoin(round);
        let keys: Vec<String> = round.ledger.hooks.keys().cloned().collect();
        for key in keys {
            self.follow_hook(round, &key).await?;
        }
        self.take_deeds(round).await?;
        self.rejoin(round);
        Ok(())
    }

    async fn follow_hook(&mut self, round: &mut Round, key: &String) -> Result<(), CycleError> {
        let Some(record) = round.ledger.hooks.get(key).map(|held| held.value.clone()) else {
            return Ok(());
        };
        let pool = &record.pool;
        if self.mode(round, pool) == Mode::Observe || self.is_frozen(round, pool) {
            return Ok(());
        }
        let node = round
            .fleet
            .iter()
            .find(|node| {
                node.pool.as_ref() == Some(pool)
                    && node.instance_id.as_ref() == Some(&record.instance)
            })
            .cloned();
        let look = self.look_at(round, &record, node.as_ref());
        let mut tx = Tx::new();
        if let Some(node) = &node
            && record.state == HookState::Waits
            && record.on == HookOn::Terminating
        {
            self.drain_for_hook(round, &mut tx, &record, node);
        }
        let mut next = record.clone();
        if is_near(&record, round.now) && !look.drained {
            next.warned = true;
            if let (Some(node), Some(at)) = (&node, record.deadline) {
                tx.event(Happening::HookEnds {
                    node: node.id.clone(),
                    hook: record.hook.clone(),
                    at,
                });
            }
        }
        let act = judge(&record, look, round.now);
        match &act {
            Act::Nothing | Act::Beat => {}
            Act::Complete(why) if record.state == HookState::Waits => {
                next.state = HookState::Completing;
                next.why = why.clone();
                tx.audit("hook.complete", record.instance.as_str(), why.clone());
            }
            Act::Complete(_) => {}
            Act::LeaveBe(why) => {
                next.state = HookState::Over;
                next.why = why.clone();
            }
            Act::Forget => {
                tx.delete_hook(&round.ledger, key);
                self.commit(round, tx).await?;
                return Ok(());
            }
        }
        if next != record {
            tx.put_hook(&round.ledger, key, next.clone());
        }
        if !tx.is_empty() && self.commit(round, tx).await?.is_none() {
            return Ok(());
        }
        match act {
            Act::Beat => self.call_beat(round, key, &next),
            Act::Complete(_) => {
                fail::fail_point!("hook.committed");
                self.call_complete(round, key, &next);
            }
            Act::Nothing | Act::LeaveBe(_) | Act::Forget => {}
        }
        Ok(())
    }

    fn look_at(&self, round: &Round, record: &HookRecord, node: Option<&FleetNode>) -> Look {
        let read = round.readings.contains_key(&record.pool);
        let shown = node.and_then(|node| node.instance.as_ref());
        let is_gone = match shown {
            Some(instance) => instance.state == InstanceState::Gone,
            None => round.now.since(record.since) > UNFOUND,
        };
        // A launched instance that serves has left its hook behind.
        let served = record.on == HookOn::Launching
            && shown.is_some_and(|instance| instance.state == InstanceState::Running)
            && record.state == HookState::Over;
        Look {
            drained: node
                .and_then(|node| node.drain.as_ref())
                .is_some_and(|drain| drain.step >= DrainStep::Drained),
            // Agents have had time to return, and none of them speaks for it.
            unknown: read && self.seen.settled && node.is_none_or(|node| !node.joined()),
            ready: node.is_some_and(|node| {
                node.lifecycle == Lifecycle::Ready && node.is_heard() && node.faulty.is_none()
            }),
            gone: read && (is_gone || served),
        }
    }
}

/// The time of a hook runs out and nobody was told.
fn is_near(record: &HookRecord, now: UnixMs) -> bool {
    let ahead = record.timeout.unwrap_or(AHEAD).max(AHEAD);
    record.state == HookState::Waits
        && record.on == HookOn::Terminating
        && !record.warned
        && record
            .deadline
            .is_some_and(|deadline| now.after(ahead) >= deadline)
}

#[cfg(test)]
mod tests;
