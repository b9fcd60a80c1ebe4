//! What the cloud answers to an ask: how many instances there are for it, and why not more.
//!
//! Called by whoever launches in a [`World`]. The same token is answered with the same instances for ever.

use super::{World, count};
use crate::world::spec::OfferingSpec;
use crate::world::trouble::{ApiTrouble, within};
use crate::world::types::{Ask, Granted, InstanceRecord, InstanceStatus, Refusal, WorldError};

impl World {
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
