//! Notices from queues: each about an instance, which is looked up in the pools that are ours.
//!
//! Called by the cycle. What is about nobody of ours is settled and forgotten (I5), an instance that is not known yet is
//! waited for a moment, since a pool's reading may be older than the message: others' messages must not fill the place
//! that is kept for what is not settled, so nothing waits that need not.

use super::super::cycle::{Control, CycleError, Round};
use super::super::events::Happening;
use super::super::tx::Tx;
use super::Word;
use crate::config::PoolSource;
use crate::ports::notices::{CloudNotice, CloudWord, NoticeSource};
use crate::records::{HookOn, HookRecord, HookState, NoticeKind, hook_key};
use drover_core::model::{Millis, PoolId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// AWS tells of spot interruptions so long ahead.
const SPOT_LEAD: Millis = Millis::minutes(2);
/// An instance that nobody knows is waited for, from when it was told of.
const UNKNOWN: Millis = Millis::minutes(2);

impl Control {
    /// Also hears what comes in here from now on.
    pub fn hear_from(&mut self, source: Arc<dyn NoticeSource>) {
        self.notices = Some(source);
    }

    pub(super) async fn take_queues(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let Some(source) = self.notices.clone() else {
            return Ok(());
        };
        self.watch_queues(round, &source);
        let mut settled = Vec::new();
        let mut waiting = BTreeSet::new();
        for notice in source.take() {
            let since = *self
                .seen
                .unplaced
                .entry(notice.id.clone())
                .or_insert(round.mono);
            let mut tx = Tx::new();
            let placed = self.place(round, &mut tx, &notice);
            let waited = Millis(round.mono.0.saturating_sub(since.0));
            if !placed && waited < UNKNOWN && !self.is_overtaken(round, &notice) {
                waiting.insert(notice.id);
                continue;
            }
            if !placed {
                tracing::debug!(instance = %notice.instance, queue = notice.by, "a notice about nobody of ours");
            }
            if tx.is_empty() || self.commit(round, tx).await?.is_some() {
                settled.push(notice.id);
            }
        }
        self.seen.unplaced.retain(|id, _| waiting.contains(id));
        if !settled.is_empty() {
            source.settle(&settled);
        }
        Ok(())
    }

    /// Every pool has been read, long after this was said: who is not there is not ours.
    fn is_overtaken(&self, round: &Round, notice: &CloudNotice) -> bool {
        let mut pools = self.config.pools.iter();
        notice.at.is_some_and(|at| round.now.since(at) >= UNKNOWN)
            && pools.all(|pool| round.readings.contains_key(&pool.name))
    }

    /// Adds to a change what a notice makes of records. False: about nobody that is known.
    fn place(&mut self, round: &Round, tx: &mut Tx, notice: &CloudNotice) -> bool {
        let node = round
            .fleet
            .iter()
            .find(|node| node.pool.is_some() && node.instance_id.as_ref() == Some(&notice.instance))
            .cloned();
        let word = |kind, event: &str, ends, withdrawn| Word {
            kind,
            event: event.to_owned(),
            ends,
            withdrawn,
            by: notice.by.clone(),
            message: notice.message.clone(),
        };
        let word = match &notice.word {
            CloudWord::Hook { group, hook, on } => {
                let by_name = || self.pool_of(&notice.region, group);
                let Some(pool) = node
                    .as_ref()
                    .and_then(|node| node.pool.clone())
                    .or_else(by_name)
                else {
                    return false;
                };
                self.begin_hook(round, tx, pool, notice, hook, *on);
                if *on == HookOn::Launching {
                    return true;
                }
                word(NoticeKind::LifecycleTerminating, hook, None, false)
            }
            CloudWord::State { .. } => {
                if let Some(pool) = node.as_ref().and_then(|node| node.pool.as_ref()) {
                    self.pools.stale(pool);
                }
                // The next reading shows it, whosever it is.
                return true;
            }
            CloudWord::Spot { ends } => {
                let at = notice.at.unwrap_or(round.now);
                let ends = ends.unwrap_or(at.after(SPOT_LEAD));
                word(NoticeKind::SpotInterruption, "", Some(ends), false)
            }
            CloudWord::Rebalance => word(NoticeKind::Rebalance, "", None, false),
            CloudWord::Maintenance {
                event,
                begins,
                withdrawn,
            } => word(NoticeKind::ScheduledEvent, event, *begins, *withdrawn),
        };
        let Some(node) = node else {
            // A hook of a known group is taken whether or not the instance is seen yet.
            return matches!(notice.word, CloudWord::Hook { .. });
        };
        self.hear(round, tx, &node, word);
        true
    }

    /// The pool that drives a group.
    fn pool_of(&self, region: &str, group: &str) -> Option<PoolId> {
        let mut pools = self.config.pools.iter();
        let found = pools.find(|pool| match &pool.source {
            PoolSource::Asg(asg) => asg.group == group && asg.region == region,
            PoolSource::Sim(_) | PoolSource::Static(_) => false,
        });
        found.map(|pool| pool.name.clone())
    }

    fn begin_hook(
        &self,
        round: &Round,
        tx: &mut Tx,
        pool: PoolId,
        notice: &CloudNotice,
        hook: &str,
        on: HookOn,
    ) {
        let ours = on == HookOn::Terminating
            || self
                .config
                .pool(&pool)
                .is_some_and(|pool| pool.notices.launch_hooks.iter().any(|name| name == hook));
        let key = hook_key(&notice.instance, hook);
        let open = round
            .ledger
            .hooks
            .get(&key)
            .is_some_and(|held| held.value.state != HookState::Over);
        if !ours || open {
            return;
        }
        // The message may have been under way for some time: the hook's clock began with it.
        let since = notice.at.map_or(round.now, |at| at.min(round.now));
        let record = HookRecord {
            pool,
            instance: notice.instance.clone(),
            hook: hook.to_owned(),
            on,
            since,
            by: notice.by.clone(),
            timeout: None,
            limit: None,
            deadline: None,
            policy: crate::records::DrainPolicy::Wait,
            beat: None,
            beats: 0,
            warned: false,
            state: HookState::Waits,
            why: String::new(),
        };
        tx.put_hook(&round.ledger, &key, record);
    }

    /// Tells once of a queue that cannot be read, and of its return.
    fn watch_queues(&mut self, round: &mut Round, source: &Arc<dyn NoticeSource>) {
        let troubles = source.troubles();
        self.seen.deaf.retain(|queue| {
            let still = troubles.iter().any(|(name, _)| name == queue);
            if !still {
                round.events.push(Happening::NoticesReadable {
                    queue: queue.clone(),
                });
            }
            still
        });
        for (queue, message) in troubles {
            if self.seen.deaf.insert(queue.clone()) {
                round
                    .events
                    .push(Happening::NoticesUnreadable { queue, message });
            }
        }
    }
}
