//! Which instances wait in hooks: those that a notice or a reading says are on their way, with the hooks of their group.
//!
//! Part of following hooks. A group's hooks are read when one of its instances goes, and remembered for a while.

use super::super::cycle::{Control, CycleError, Round};
use super::super::deeds::{Deed, Done};
use super::super::fleet::FleetNode;
use super::super::notices::Word;
use super::super::tx::Tx;
use crate::config::{OnTerminating, PoolConfig};
use crate::ports::actuate::InstanceState;
use crate::ports::hooks::Hook;
use crate::records::{
    DrainPolicy, DrainStep, HookOn, HookRecord, HookState, NoticeKind, hook_key, notice_key,
};
use drover_core::model::{InstanceId, Millis, PoolId, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// A group's hooks are read again after this.
const READ_AGAIN: Millis = Millis::minutes(10);
/// And after a failure.
const FAILED_AGAIN: Millis = Millis::seconds(30);
/// A hook is completed so long before its limit, or a quarter of a heartbeat's time if that is less.
const MARGIN: Millis = Millis::seconds(60);

/// An instance on its way.
struct Sighting {
    on: HookOn,
    since: UnixMs,
    by: String,
}

/// How work is treated on a node that its group ends, as records say it.
pub(super) const fn policy(policy: OnTerminating) -> DrainPolicy {
    match policy {
        OnTerminating::Wait => DrainPolicy::Wait,
        OnTerminating::Evict => DrainPolicy::Evict,
        OnTerminating::Force => DrainPolicy::Force,
    }
}

impl Control {
    /// What is on its way in our pools.
    fn sightings(&self, round: &Round) -> BTreeMap<(PoolId, InstanceId), Sighting> {
        let mut found = BTreeMap::new();
        for (pool, reading) in &round.readings {
            let Some(config) = self.config.pool(pool) else {
                continue;
            };
            for instance in &reading.instances {
                let on = match instance.state {
                    InstanceState::Leaving => HookOn::Terminating,
                    InstanceState::Pending if !config.notices.launch_hooks.is_empty() => {
                        HookOn::Launching
                    }
                    _ => continue,
                };
                let sighting = Sighting {
                    on,
                    since: round.now,
                    by: "the group".to_owned(),
                };
                found.insert((pool.clone(), instance.id.clone()), sighting);
            }
        }
        for held in round.ledger.notices.values() {
            let notice = &held.value;
            if let (NoticeKind::LifecycleTerminating, Some(instance)) =
                (notice.kind, &notice.instance)
            {
                let sighting = Sighting {
                    on: HookOn::Terminating,
                    since: notice.at,
                    by: notice.by.clone(),
                };
                found.insert((notice.pool.clone(), instance.clone()), sighting);
            }
        }
        found
    }

    /// Reads the hooks of groups whose instances are on their way.
    pub(super) async fn read_hooks(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut pools: BTreeSet<PoolId> = self
            .sightings(round)
            .into_keys()
            .map(|(pool, _)| pool)
            .collect();
        let unread = |held: &&super::super::ledger::Held<HookRecord>| {
            held.value.state == HookState::Waits && held.value.timeout.is_none()
        };
        let waiting = round.ledger.hooks.values().filter(unread);
        pools.extend(waiting.map(|held| held.value.pool.clone()));
        for pool in pools {
            let due = self.seen.hooks.get(&pool).is_none_or(|(at, hooks)| {
                let age = round.mono.0.saturating_sub(at.0);
                age >= hooks.as_ref().map_or(FAILED_AGAIN, |_| READ_AGAIN).0
            });
            let kind = self.config.pool(&pool).map(PoolConfig::kind);
            let actuator = kind.and_then(|kind| self.pools.actuator(kind));
            let deed = Deed::Hooks(pool.clone());
            let Some(actuator) = actuator.filter(|_| due && !self.is_at_work(&deed)) else {
                continue;
            };
            self.deeds.begin(deed, async move {
                let result = actuator.hooks(&pool).await;
                Done::Hooks(pool, result)
            });
        }
        self.take_deeds(round).await
    }

    /// Hooks of one way of a pool's group; `None` while they are not known.
    pub(in crate::control) fn known_hooks(&self, pool: &PoolId, on: HookOn) -> Option<Vec<Hook>> {
        let (_, hooks) = self.seen.hooks.get(pool)?;
        let hooks = hooks.as_ref()?.iter().filter(|hook| hook.on == on);
        Some(hooks.cloned().collect())
    }

    /// A record for each hook in which an instance may wait, with its times.
    pub(super) async fn find_hooks(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let sightings = self.sightings(round);
        for ((pool, instance), sighting) in &sightings {
            let mut tx = Tx::new();
            for hook in self.known_hooks(pool, sighting.on).unwrap_or_default() {
                self.find(round, &mut tx, pool, instance, &hook, sighting);
            }
            self.commit(round, tx).await?;
        }
        // Those that a queue told first, by the name of the hook alone.
        let unread: Vec<(String, HookRecord)> = round
            .ledger
            .hooks
            .iter()
            .filter(|(_, held)| {
                held.value.state == HookState::Waits && held.value.timeout.is_none()
            })
            .map(|(key, held)| (key.clone(), held.value.clone()))
            .collect();
        for (key, mut record) in unread {
            let hooks = self.known_hooks(&record.pool, record.on);
            let hook = hooks.into_iter().flatten();
            if let Some(hook) = hook.into_iter().find(|hook| hook.name == record.hook) {
                let mut tx = Tx::new();
                let kind = instance_type(round, &record.pool, &record.instance);
                self.time(&mut record, &hook, &kind);
                tx.put_hook(&round.ledger, &key, record);
                self.commit(round, tx).await?;
            }
        }
        Ok(())
    }

    fn find(
        &self,
        round: &Round,
        tx: &mut Tx,
        pool: &PoolId,
        instance: &InstanceId,
        hook: &Hook,
        sighting: &Sighting,
    ) {
        let Some(config) = self.config.pool(pool) else {
            return;
        };
        let named = config.notices.launch_hooks.contains(&hook.name);
        let key = hook_key(instance, &hook.name);
        if (hook.on == HookOn::Launching && !named) || round.ledger.hooks.contains_key(&key) {
            return;
        }
        let mut record = HookRecord {
            pool: pool.clone(),
            instance: instance.clone(),
            hook: hook.name.clone(),
            on: hook.on,
            since: sighting.since,
            by: sighting.by.clone(),
            timeout: None,
            limit: None,
            deadline: None,
            policy: DrainPolicy::Wait,
            beat: None,
            beats: 0,
            warned: false,
            state: HookState::Waits,
            why: String::new(),
        };
        let kind = instance_type(round, pool, instance);
        self.time(&mut record, hook, &kind);
        tx.put_hook(&round.ledger, &key, record);
        let node = round
            .fleet
            .iter()
            .find(|node| node.instance_id.as_ref() == Some(instance));
        if let Some(node) = node.filter(|node| hook.on == HookOn::Terminating && is_taken(node)) {
            self.hear(
                round,
                tx,
                node,
                Word {
                    kind: NoticeKind::LifecycleTerminating,
                    event: hook.name.clone(),
                    ends: None,
                    withdrawn: false,
                    by: sighting.by.clone(),
                    message: format!("it waits in its group's hook {}", hook.name),
                },
            );
        }
    }

    /// Fills in what a hook and the pool's policy say of its times.
    fn time(&self, record: &mut HookRecord, hook: &Hook, instance_type: &str) {
        let Some(config) = self.config.pool(&record.pool) else {
            return;
        };
        let limit = record.since.after(hook.limit);
        let margin = MARGIN.0.min(hook.timeout.0 / 4);
        let last = UnixMs(limit.0.saturating_sub(margin));
        let ours = match record.on {
            HookOn::Terminating => config.notices.terminating_deadline,
            HookOn::Launching => Some(config.deadline_of(instance_type)),
        };
        record.timeout = Some(hook.timeout);
        record.limit = Some(limit);
        record.deadline = Some(ours.map_or(last, |span| last.min(record.since.after(span))));
        record.policy = policy(config.notices.terminating);
    }

    /// Key of the notice that a node's group ends it.
    pub(super) fn terminating(node: &FleetNode) -> Option<String> {
        let instance = node.instance_id.as_ref()?;
        Some(notice_key(
            instance.as_str(),
            NoticeKind::LifecycleTerminating,
        ))
    }
}

/// Type of an instance as its pool was read last; empty when unknown.
fn instance_type(round: &Round, pool: &PoolId, instance: &InstanceId) -> String {
    let reading = round.readings.get(pool);
    let mut instances = reading.iter().flat_map(|reading| &reading.instances);
    let found = instances.find(|found| found.id == *instance);
    found.map_or_else(String::new, |found| found.instance_type.clone())
}

/// Not by our own doing.
fn is_taken(node: &FleetNode) -> bool {
    node.joined()
        && node
            .drain
            .as_ref()
            .is_none_or(|drain| drain.step != DrainStep::Leaving)
}
