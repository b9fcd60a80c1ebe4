//! Who is which instance: what providers and lists name, and the nodes that claim it.
//!
//! Used by the join. Pure.

use super::join::Sources;
use crate::config::PoolSource;
use crate::control::ledger::Ledger;
use crate::ports::actuate::Instance;
use crate::records::NodeRecord;
use drover_core::model::{InstanceId, LaunchId, NodeId, PoolId, PoolKind};
use std::collections::BTreeMap;

/// What providers and lists name, by id.
pub(super) struct Index<'a> {
    pub(super) instances: BTreeMap<(&'a PoolId, &'a InstanceId), &'a Instance>,
    /// Instances of clouds, with the first pool that names them.
    clouds: BTreeMap<&'a InstanceId, &'a PoolId>,
    hosts: BTreeMap<(&'a PoolId, &'a str), &'a InstanceId>,
}

impl<'a> Index<'a> {
    pub(super) fn new(sources: &Sources<'a>) -> Self {
        let mut index = Self {
            instances: BTreeMap::new(),
            clouds: BTreeMap::new(),
            hosts: BTreeMap::new(),
        };
        for (pool, reading) in sources.readings {
            let config = sources.config.pool(pool);
            let cloud = config.is_some_and(|config| config.kind() != PoolKind::Static);
            for instance in &reading.instances {
                let slot = index.instances.entry((pool, &instance.id));
                slot.or_insert(instance);
                if cloud {
                    index.clouds.entry(&instance.id).or_insert(pool);
                }
            }
        }
        for pool in &sources.config.pools {
            if let PoolSource::Static(fixed) = &pool.source {
                let hosts = fixed.hosts.iter().map(|h| ((&pool.name, h.as_str()), h));
                index.hosts.extend(hosts);
            }
        }
        index
    }
}

/// Who is which instance; an instance that two claim belongs to neither.
pub(super) fn claims(
    sources: &Sources<'_>,
    index: &Index<'_>,
) -> BTreeMap<NodeId, (PoolId, InstanceId)> {
    let mut claims = BTreeMap::new();
    let mut claimed: BTreeMap<(PoolId, InstanceId), u32> = BTreeMap::new();
    for (id, record) in &sources.ledger.nodes {
        if record.value.revoked {
            continue;
        }
        if let Some(claim) = claim(sources, index, id, &record.value) {
            *claimed.entry(claim.clone()).or_insert(0) += 1;
            claims.insert(id.clone(), claim);
        }
    }
    claims.retain(|_, claim| claimed.get(claim) == Some(&1));
    claims
}

fn claim(
    sources: &Sources<'_>,
    index: &Index<'_>,
    id: &NodeId,
    record: &NodeRecord,
) -> Option<(PoolId, InstanceId)> {
    let known = || {
        record.instance.clone().or_else(|| {
            let facts = &sources.views.get(id)?.facts;
            facts.instance_id.as_deref().map(InstanceId::new)
        })
    };
    let Some(pool) = &record.pool else {
        // A token without a pool: the provider that names the instance says where it belongs.
        let instance = known()?;
        let pool = index.clouds.get(&instance)?;
        return Some(((*pool).clone(), instance));
    };
    let pool = sources.config.pool(pool)?;
    let instance = match &pool.source {
        PoolSource::Static(_) => {
            let host = index.hosts.get(&(&pool.name, record.name.as_str()))?;
            (*host).clone()
        }
        PoolSource::Asg(_) | PoolSource::Sim(_) => known()?,
    };
    Some((pool.name.clone(), instance))
}

/// Instance to its launch.
pub(super) fn launched(ledger: &Ledger) -> BTreeMap<InstanceId, LaunchId> {
    ledger
        .launches
        .values()
        .flat_map(|held| {
            let launch = &held.value;
            let granted = launch.instances.iter();
            let joined = launch.joined.iter().map(|(instance, _)| instance);
            granted
                .chain(joined)
                .map(|instance| (instance.clone(), launch.id.clone()))
        })
        .collect()
}
