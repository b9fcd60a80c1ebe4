//! Pools for the planner: their stops, limits and offerings, and what of them nobody manages. Used by `input`.

use super::coming;
use crate::config::{PoolConfig, PoolSource};
use crate::control::cycle::{Control, Round};
use crate::control::fleet::marks;
use crate::control::launches::{as_found, open_places};
use crate::ports::actuate::{InstanceState, PoolReading};
use crate::records::{LaunchRecord, PoolRecord};
use drover_core::model::{
    Anticipate, InstanceId, Lifecycle, Millis, Offering, PoolInput, PoolKind, Steering, UnixMs,
};
use std::collections::BTreeSet;

impl Control {
    pub(in crate::control) fn pool_input(
        &self,
        round: &Round,
        pool: &PoolConfig,
        rank: usize,
    ) -> PoolInput {
        let (settings, _) = round.ledger.pool(&pool.name);
        let reading = round.readings.get(&pool.name);
        let max = settings.max.unwrap_or(pool.max);
        let provider = reading.and_then(|reading| reading.provider_max);
        let boot = median(&settings.boots_ms);
        PoolInput {
            disruption: pool
                .disruption
                .iter()
                .filter_map(|budget| budget.in_force(round.now))
                .collect(),
            expire_after: pool.expire_after,
            id: pool.name.clone(),
            kind: pool.kind(),
            site: pool.site.clone(),
            mode: self.mode(round, &pool.name),
            stops: self.stops(round, pool),
            min: settings.min.unwrap_or(pool.min),
            floor: reading
                .and_then(|reading| reading.provider_min)
                .map_or(0, |least| least.saturating_sub(unmanaged(round, pool))),
            max: provider.map_or(max, |most| max.min(most)),
            config_max: provider.filter(|most| *most < max).map(|_| max),
            spare: settings.spare.unwrap_or(pool.spare),
            idle_after: pool.idle_after,
            anticipate: pool.anticipate.then(Anticipate::default),
            quota: pool.quota,
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            labels: marks::labels(pool, reading.map(AsRef::as_ref)),
            taints: marks::taints(pool, reading.map(AsRef::as_ref)),
            offerings: reading
                .map(|reading| offerings(round, pool, &settings, reading, boot))
                .unwrap_or_default(),
            steering: reading.map_or(Steering::Group, |reading| reading.steering),
            removable: reading.is_some_and(|reading| reading.removable),
            unmanaged: unmanaged(round, pool),
            read_at: reading.map_or(UnixMs(0), |reading| reading.read_at),
        }
    }
}

fn median(boots: &[u64]) -> Option<Millis> {
    let mut sorted = boots.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().map(Millis)
}

/// What can be asked, with the config's prices; of a static pool only the hosts that are off.
fn offerings(
    round: &Round,
    pool: &PoolConfig,
    settings: &PoolRecord,
    reading: &PoolReading,
    boot: Option<Millis>,
) -> Vec<Offering> {
    let mut offerings = reading.offerings.clone();
    for offering in &mut offerings {
        as_found(settings, offering);
        if let Some(price) = pool.prices.get(&offering.instance_type) {
            offering.price = *price;
        }
        if let Some(boot) = boot {
            offering.boot = boot;
        }
        if pool.kind() == PoolKind::Static {
            let off = u32::try_from(hosts_off(round, pool).len()).unwrap_or(u32::MAX);
            offering.available = Some(off);
        }
    }
    offerings
}

/// Hosts of a static pool that could be powered on now, in the order of the config.
pub(in crate::control) fn hosts_off(round: &Round, pool: &PoolConfig) -> Vec<InstanceId> {
    let PoolSource::Static(fixed) = &pool.source else {
        return Vec::new();
    };
    if fixed.power.on.is_none() {
        return Vec::new();
    }
    let asked: BTreeSet<&InstanceId> = round
        .ledger
        .launches
        .values()
        .filter(|held| held.value.pool == pool.name)
        .flat_map(|held| &held.value.hosts)
        .collect();
    let off: BTreeSet<&InstanceId> = round
        .fleet
        .iter()
        .filter(|node| node.pool.as_ref() == Some(&pool.name) && node.lifecycle == Lifecycle::Off)
        .filter_map(|node| node.instance_id.as_ref())
        .collect();
    fixed
        .hosts
        .iter()
        .filter(|host| !asked.contains(host) && off.contains(host))
        .cloned()
        .collect()
}

/// Instances of a cloud pool that are neither a node nor covered by a launch in flight.
fn unmanaged(round: &Round, pool: &PoolConfig) -> u32 {
    if pool.kind() == PoolKind::Static {
        return 0;
    }
    let flying: Vec<&LaunchRecord> = round
        .ledger
        .launches
        .values()
        .map(|held| &held.value)
        .filter(|launch| {
            launch.pool == pool.name && launch.deadline > round.now && coming(launch) > 0
        })
        .collect();
    let named: BTreeSet<&InstanceId> = flying.iter().flat_map(|launch| &launch.instances).collect();
    // Launches whose way tells no ids, or whose answer is not known: their instances may be there already.
    let nameless: u32 = flying
        .iter()
        .map(|launch| coming(launch).min(open_places(launch)))
        .sum();
    let loose = round
        .fleet
        .iter()
        .filter(|node| {
            node.pool.as_ref() == Some(&pool.name)
                && !node.joined()
                && node
                    .instance
                    .as_ref()
                    .is_some_and(|found| found.state != InstanceState::Gone)
                && node
                    .instance_id
                    .as_ref()
                    .is_some_and(|id| !named.contains(id))
        })
        .count();
    u32::try_from(loose)
        .unwrap_or(u32::MAX)
        .saturating_sub(nameless)
}
