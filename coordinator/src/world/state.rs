//! The state of a simulated cloud and what changes it.

use super::generator::Generator;
use super::spec::{GroupSpec, OfferingSpec, WorldSpec};
use super::trouble::{ApiTrouble, within};
use super::types::{
    Ask, Granted, InstanceRecord, InstanceStatus, Refusal, Tally, WorldError, WorldEvent,
};
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

    /// Grants what there is.
    ///
    /// # Errors
    /// Unknown group or offering, an API in trouble, or a token that was used for another ask.
    pub fn launch(&mut self, ask: &Ask, now_ms: u64) -> Result<Granted, WorldError> {
        match self.api_trouble(&ask.group, now_ms) {
            Some(ApiTrouble::Away) => return Err(WorldError::Away(ask.group.clone())),
            Some(ApiTrouble::Throttled) => return Err(WorldError::Throttled(ask.group.clone())),
            None => {}
        }
        if let Some((before, answer)) = self.answers.get(&ask.token) {
            return if before == ask {
                Ok(answer.clone())
            } else {
                Err(WorldError::TokenMismatch)
            };
        }
        let group = self
            .spec
            .groups
            .iter()
            .find(|g| g.name == ask.group)
            .ok_or_else(|| WorldError::NoGroup(ask.group.clone()))?;
        let index = group
            .offerings
            .iter()
            .position(|o| {
                o.instance_type == ask.instance_type && o.zone == ask.zone && o.market == ask.market
            })
            .ok_or_else(|| {
                let name = format!("{}/{}/{}", ask.instance_type, ask.zone, ask.market.as_str());
                WorldError::NoOffering(ask.group.clone(), name)
            })?;
        let offering = group.offerings[index].clone();
        let region = group.region.clone();
        let room = group.max.saturating_sub(count(self.alive.get(&ask.group)));
        let capacity = self.capacity_left(&offering, &ask.group, index, now_ms);
        let could = ask.count.min(room).min(capacity);
        let count = offering.trouble.granted(could, &mut self.generator);
        let capacity = if count < could { count } else { capacity };
        let mut granted = Granted::default();
        for _ in 0..count {
            granted
                .instances
                .push(self.create(ask, index, &offering, now_ms));
        }
        if count > 0
            && self
                .tally
                .short_region
                .take_if(|short| *short != region)
                .is_some()
        {
            self.tally.failovers += 1;
        }
        if capacity < ask.count && capacity <= room {
            self.tally.shortages += 1;
            self.tally.short_region = Some(region.clone());
            granted.refusal = Some(Refusal {
                code: "InsufficientInstanceCapacity".to_owned(),
                message: format!(
                    "We currently do not have sufficient {} capacity in the Availability Zone you requested ({}).",
                    offering.instance_type, offering.zone
                ),
            });
        } else if room < ask.count {
            granted.refusal = Some(Refusal {
                code: "ValidationError".to_owned(),
                message: format!(
                    "{} instances would exceed the group's maximum of {}",
                    ask.count, room
                ),
            });
        }
        if count > 0 {
            self.tally.regions.insert(region);
        }
        self.tally.peak = self.tally.peak.max(self.running());
        self.answers
            .insert(ask.token.clone(), (ask.clone(), granted.clone()));
        Ok(granted)
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

    fn capacity_left(
        &self,
        offering: &OfferingSpec,
        group: &str,
        index: usize,
        now_ms: u64,
    ) -> u32 {
        let age = now_ms.saturating_sub(self.began_ms);
        if within(&offering.shortages, age) {
            return 0;
        }
        let taken = self.taken.get(&(group.to_owned(), index)).copied();
        let taken = taken.unwrap_or(0);
        offering
            .capacity
            .map_or(u32::MAX, |capacity| capacity.saturating_sub(taken))
    }

    fn create(&mut self, ask: &Ask, index: usize, offering: &OfferingSpec, now_ms: u64) -> String {
        let id = format!("i-{:017x}", self.generator.next() >> 4);
        let jitter = self
            .generator
            .below(offering.boot_jitter_ms.saturating_add(1));
        let age = now_ms.saturating_sub(self.began_ms);
        let fate = offering.trouble.fate(age, &mut self.generator);
        self.tally.launched += 1;
        let record = InstanceRecord {
            id: id.clone(),
            group: ask.group.clone(),
            offering: index,
            status: InstanceStatus::Pending,
            launched_ms: now_ms,
            running_ms: now_ms
                .saturating_add(offering.boot_ms)
                .saturating_add(jitter)
                .saturating_add(fate.late_ms),
            joins: fate.joins,
            interrupted_ms: fate.lives_ms.map(|lives| now_ms.saturating_add(lives)),
            terminated_ms: None,
            token: ask.token.clone(),
        };
        self.boots.insert((record.running_ms, id.clone()));
        if let Some(at) = record.interrupted_ms {
            let told = at.saturating_sub(offering.trouble.notice_ms).max(now_ms);
            self.notices.insert((told, id.clone()));
            self.losses.insert((at, id.clone()));
        }
        let group = self.alive.entry(ask.group.clone()).or_default();
        group.insert(id.clone());
        *self.taken.entry((ask.group.clone(), index)).or_insert(0) += 1;
        self.instances.insert(id.clone(), record);
        id
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
mod tests {
    use super::super::spec::MarketSpec;
    use super::*;

    fn spec() -> WorldSpec {
        let text = r#"
            [[group]]
            name = "a"
            region = "west"
            max = 10
            [[group.offering]]
            instance_type = "p2.16xlarge"
            zone = "west-a"
            price_micro_usd_per_hour = 14400000
            gpus = 16
            gpu_model = "k80"
            cpus = 64
            memory_gib = 732
            boot_ms = 1000
            boot_jitter_ms = 500
            capacity = 4
            [[group.offering.shortage]]
            from_ms = 60000
            until_ms = 120000
        "#;
        let spec: WorldSpec = toml::from_str(text).expect("spec parses");
        assert_eq!(spec.errors(), []);
        spec
    }

    fn ask(count: u32, token: &str) -> Ask {
        Ask {
            group: "a".into(),
            instance_type: "p2.16xlarge".into(),
            zone: "west-a".into(),
            market: MarketSpec::OnDemand,
            count,
            token: token.into(),
        }
    }

    #[test]
    fn grants_up_to_capacity_and_says_so_in_awss_words() {
        let mut world = World::new(spec(), 7, 0);
        let granted = world.launch(&ask(6, "t1"), 0).expect("known group");
        assert_eq!(granted.instances.len(), 4);
        assert_eq!(
            granted.refusal.map(|r| r.code),
            Some("InsufficientInstanceCapacity".to_owned())
        );
        assert_eq!(
            (
                world.tally().launched,
                world.tally().peak,
                world.tally().shortages
            ),
            (4, 4, 1)
        );
    }

    #[test]
    fn the_same_token_never_launches_twice() {
        let mut world = World::new(spec(), 7, 0);
        let first = world.launch(&ask(2, "t1"), 0).expect("first");
        assert_eq!(world.launch(&ask(2, "t1"), 5), Ok(first));
        assert_eq!(
            world.launch(&ask(3, "t1"), 5),
            Err(WorldError::TokenMismatch)
        );
        assert_eq!(world.running(), 2);
    }

    #[test]
    fn boots_within_delay_and_jitter_and_is_the_same_for_a_seed() {
        let run = |seed| {
            let mut world = World::new(spec(), seed, 0);
            world.launch(&ask(3, "t1"), 0).expect("granted");
            assert_eq!(world.step(999), []);
            let events = world.step(1_500);
            assert_eq!(events.len(), 3);
            (events, world.next_event_ms())
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7).0, run(8).0);
    }

    #[test]
    fn a_failover_is_a_grant_elsewhere_after_a_shortage() {
        let mut spec = spec();
        let mut east = spec.groups[0].clone();
        east.name = "b".into();
        east.region = "east".into();
        spec.groups.push(east);
        let mut world = World::new(spec, 7, 0);
        world.launch(&ask(6, "t1"), 0).expect("partly granted");
        assert_eq!(world.tally().failovers, 0);
        let elsewhere = |count, token| Ask {
            group: "b".into(),
            ..ask(count, token)
        };
        world.launch(&elsewhere(1, "t2"), 0).expect("granted");
        world.launch(&elsewhere(1, "t3"), 0).expect("granted");
        assert_eq!(world.tally().failovers, 1);
    }

    #[test]
    fn a_window_of_shortage_grants_nothing_and_ends() {
        let mut world = World::new(spec(), 7, 0);
        assert!(
            world
                .launch(&ask(1, "t1"), 60_000)
                .expect("answer")
                .instances
                .is_empty()
        );
        assert_eq!(
            world
                .launch(&ask(1, "t2"), 120_000)
                .expect("answer")
                .instances
                .len(),
            1
        );
    }

    #[test]
    fn terminated_is_over_and_frees_capacity() {
        let mut world = World::new(spec(), 7, 0);
        let id = world.launch(&ask(4, "t1"), 0).expect("granted").instances[0].clone();
        world.terminate(&id, 3_600_000).expect("runs");
        assert_eq!(
            world.terminate(&id, 3_600_000),
            Err(WorldError::NoInstance(id))
        );
        assert_eq!(
            world
                .launch(&ask(2, "t2"), 3_600_000)
                .expect("granted")
                .instances
                .len(),
            1
        );
        assert_eq!(world.cost_micro_usd(3_600_000), 4 * 14_400_000);
    }

    #[test]
    fn a_bad_spec_names_every_field() {
        let mut bad = spec();
        bad.groups[0].offerings[0].cpus = 0;
        bad.groups[0].offerings[0].gpu_model.clear();
        bad.groups.push(bad.groups[0].clone());
        let fields: Vec<_> = bad.errors().into_iter().map(|e| e.field).collect();
        assert!(
            fields.contains(&"group[0].offering[0].cpus".to_owned()),
            "{fields:?}"
        );
        assert!(
            fields.contains(&"group[0].offering[0].gpu_model".to_owned()),
            "{fields:?}"
        );
        assert!(fields.contains(&"group[1].name".to_owned()), "{fields:?}");
    }
}
