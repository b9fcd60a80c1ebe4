//! The state of a simulated cloud and what changes it: time, launches (`launch`), ends.

mod launch;

use super::generator::Generator;
use super::spec::{GroupSpec, OfferingSpec, WorldSpec};
use super::trouble::ApiTrouble;
use super::types::{Ask, Granted, InstanceRecord, InstanceStatus, Tally, WorldError, WorldEvent};
use std::collections::{BTreeMap, BTreeSet};

/// A group with its instances that have not ended.
#[derive(Debug, Clone)]
pub struct GroupState<'w> {
    /// Its spec.
    pub spec: &'w GroupSpec,
    /// Its instances, ended ones included, by id.
    pub instances: Vec<&'w InstanceRecord>,
}

/// The cloud.
#[derive(Debug, Clone)]
pub struct World {
    spec: WorldSpec,
    began_ms: u64,
    instances: BTreeMap<String, InstanceRecord>,
    /// Ids of those that have not ended, by group.
    alive: BTreeMap<String, BTreeSet<String>>,
    /// How many of them there are per group and offering.
    taken: BTreeMap<(String, usize), u32>,
    /// Boots under way: when they are over.
    boots: BTreeSet<(u64, String)>,
    /// Spot instances that will be taken back: when they are told, and when they end.
    notices: BTreeSet<(u64, String)>,
    losses: BTreeSet<(u64, String)>,
    answers: BTreeMap<String, (Ask, Granted)>,
    generator: Generator,
    tally: Tally,
}

impl World {
    /// An empty cloud that begins at `now_ms`. The spec must be free of errors.
    #[must_use]
    pub fn new(spec: WorldSpec, seed: u64, now_ms: u64) -> Self {
        Self {
            spec,
            began_ms: now_ms,
            instances: BTreeMap::new(),
            alive: BTreeMap::new(),
            taken: BTreeMap::new(),
            boots: BTreeSet::new(),
            notices: BTreeSet::new(),
            losses: BTreeSet::new(),
            answers: BTreeMap::new(),
            generator: Generator::new(seed),
            tally: Tally::default(),
        }
    }

    /// Lets time pass: boots that are over, spot instances that are told or taken back.
    pub fn step(&mut self, now_ms: u64) -> Vec<WorldEvent> {
        let mut over = due(&mut self.boots, now_ms);
        over.sort();
        for (id, _) in &over {
            if let Some(instance) = self.instances.get_mut(id) {
                instance.status = InstanceStatus::Running;
            }
        }
        let mut events: Vec<WorldEvent> = over
            .into_iter()
            .map(|(id, _)| WorldEvent::Running(id))
            .collect();
        for (id, _) in due(&mut self.notices, now_ms) {
            let ends = self.instances.get(&id).and_then(|i| i.interrupted_ms);
            events.extend(ends.map(|ends| WorldEvent::Notice(id, ends)));
        }
        for (id, at) in due(&mut self.losses, now_ms) {
            if self.terminate(&id, at).is_ok() {
                events.push(WorldEvent::Interrupted(id));
            }
        }
        events
    }

    /// When the next of these happens, if any is to come.
    #[must_use]
    pub fn next_event_ms(&self) -> Option<u64> {
        let next = [&self.boots, &self.notices, &self.losses];
        next.into_iter()
            .filter_map(|set| set.first().map(|(at, _)| *at))
            .min()
    }

    /// Why a call to this group gets no answer now.
    #[must_use]
    pub fn api_trouble(&self, group: &str, now_ms: u64) -> Option<ApiTrouble> {
        let spec = self.spec.groups.iter().find(|g| g.name == group)?;
        spec.api.at(now_ms.saturating_sub(self.began_ms))
    }

    /// Ends one instance.
    ///
    /// # Errors
    /// It does not exist or has ended.
    pub fn terminate(&mut self, id: &str, now_ms: u64) -> Result<(), WorldError> {
        let instance = self
            .instances
            .get_mut(id)
            .filter(|i| i.status != InstanceStatus::Terminated)
            .ok_or_else(|| WorldError::NoInstance(id.to_owned()))?;
        self.boots.remove(&(instance.running_ms, id.to_owned()));
        if let Some(at) = instance.interrupted_ms {
            self.losses.remove(&(at, id.to_owned()));
            self.notices.retain(|(_, other)| other != id);
        }
        if let Some(group) = self.alive.get_mut(&instance.group) {
            group.remove(id);
        }
        let offering = (instance.group.clone(), instance.offering);
        if let Some(taken) = self.taken.get_mut(&offering) {
            *taken = taken.saturating_sub(1);
        }
        instance.status = InstanceStatus::Terminated;
        instance.terminated_ms = Some(now_ms);
        self.tally.terminated += 1;
        Ok(())
    }

    /// One instance, with its group and offering.
    #[must_use]
    pub fn instance(&self, id: &str) -> Option<(&InstanceRecord, &GroupSpec, &OfferingSpec)> {
        let instance = self.instances.get(id)?;
        let group = self.spec.groups.iter().find(|g| g.name == instance.group)?;
        Some((instance, group, group.offerings.get(instance.offering)?))
    }

    /// Every group with its instances.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupState<'_>> {
        self.spec
            .groups
            .iter()
            .map(|spec| GroupState {
                spec,
                instances: self
                    .instances
                    .values()
                    .filter(|i| i.group == spec.name)
                    .collect(),
            })
            .collect()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Instances that have not ended.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.alive.values().map(|group| count(Some(group))).sum()
    }

    /// Instances of a group that have not ended, by id.
    pub fn alive_in(&self, group: &str) -> impl Iterator<Item = &InstanceRecord> {
        let ids = self.alive.get(group).into_iter().flatten();
        ids.filter_map(|id| self.instances.get(id))
    }

    /// What it was made of.
    #[must_use]
    pub const fn spec(&self) -> &WorldSpec {
        &self.spec
    }

    /// Cost of all instances from launch to end (or now), millionths of a USD.
    #[must_use]
    pub fn cost_micro_usd(&self, now_ms: u64) -> u64 {
        let mut sum: u128 = 0;
        for id in self.instances.keys() {
            if let Some((instance, _, offering)) = self.instance(id) {
                let until = instance.terminated_ms.unwrap_or(now_ms);
                let span = u128::from(until.saturating_sub(instance.launched_ms));
                sum += u128::from(offering.price_micro_usd_per_hour) * span / 3_600_000;
            }
        }
        u64::try_from(sum).unwrap_or(u64::MAX)
    }
}

/// Takes out what is due, in order.
fn due(set: &mut BTreeSet<(u64, String)>, now_ms: u64) -> Vec<(String, u64)> {
    let mut out = Vec::new();
    while let Some((at, _)) = set.first()
        && *at <= now_ms
    {
        out.extend(set.pop_first().map(|(at, id)| (id, at)));
    }
    out
}

fn count(ids: Option<&BTreeSet<String>>) -> u32 {
    u32::try_from(ids.map_or(0, BTreeSet::len)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
