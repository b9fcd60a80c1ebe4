//! What a config file would change in a living fleet: pools and nodes gained and lost.
//!
//! Called by `drover check-config --against-live` with what the coordinator tells of itself, and by `app` at start to
//! report orphaned pools. Pure.

use super::{Config, PoolSource};
use drover_core::model::{InstanceId, NodeId, PoolId};
use std::collections::{BTreeMap, BTreeSet};

/// The fleet as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Pools that the coordinator knows, orphaned ones included.
    pub pools: BTreeSet<PoolId>,
    /// Those of them that were discovered, with the region.
    pub discovered: BTreeMap<PoolId, String>,
    /// Its nodes.
    pub nodes: Vec<LiveNode>,
}

/// A node as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveNode {
    /// Id.
    pub id: NodeId,
    /// Host name.
    pub name: String,
    /// Pool, when it has one.
    pub pool: Option<PoolId>,
}

/// What would change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Pools that the file adds.
    pub pools_gained: Vec<PoolId>,
    /// Pools that the file no longer names: orphaned and reported, never drained.
    pub pools_lost: Vec<PoolId>,
    /// Hosts that the file adds to a static pool: (pool, host).
    pub hosts_gained: Vec<(PoolId, InstanceId)>,
    /// Nodes that would be in no pool, by (pool, node id, name).
    pub nodes_lost: Vec<(PoolId, NodeId, String)>,
    /// Pools with more nodes than the file's maximum: (pool, nodes, maximum). A lowered maximum never drains at once.
    pub above_max: Vec<(PoolId, u32, u32)>,
}

impl Difference {
    /// Nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One line each, for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |text: String| lines.push(text);
        for pool in &self.pools_gained {
            line(format!("+ pool {pool}"));
        }
        for pool in &self.pools_lost {
            line(format!("- pool {pool} (orphaned: reported, never drained)"));
        }
        for (pool, host) in &self.hosts_gained {
            line(format!("+ host {host} in pool {pool}"));
        }
        for (pool, id, name) in &self.nodes_lost {
            line(format!(
                "- node {name} ({id}) leaves pool {pool}: supply, never touched"
            ));
        }
        for (pool, nodes, max) in &self.above_max {
            let noun = if *nodes == 1 { "node" } else { "nodes" };
            line(format!(
                "! pool {pool} has {nodes} {noun}, above max {max} (none is drained for it)"
            ));
        }
        lines
    }
}

/// Compares a config with the fleet.
#[must_use]
pub fn against_live(config: &Config, live: &Live) -> Difference {
    let named: BTreeSet<PoolId> = config.pools.iter().map(|pool| pool.name.clone()).collect();
    // A pool that was discovered stays as long as somebody looks there.
    let found = |pool: &PoolId| {
        live.discovered.get(pool).is_some_and(|region| {
            let mut places = config.aws.discover.iter();
            places.any(|place| place.regions.contains(region))
        })
    };
    let mut count: BTreeMap<&PoolId, u32> = BTreeMap::new();
    let mut nodes_lost = Vec::new();
    let mut hosts: BTreeMap<&PoolId, BTreeSet<&str>> = BTreeMap::new();
    for node in &live.nodes {
        let Some(pool) = &node.pool else { continue };
        hosts.entry(pool).or_default().insert(&node.name);
        let stays = config.pool(pool).is_some_and(|found| match &found.source {
            PoolSource::Static(found) => found.hosts.iter().any(|host| host.0 == node.name),
            PoolSource::Asg(_) | PoolSource::Sim(_) => true,
        });
        if stays || found(pool) {
            *count.entry(pool).or_default() += 1;
        } else {
            nodes_lost.push((pool.clone(), node.id.clone(), node.name.clone()));
        }
    }
    let mut hosts_gained = Vec::new();
    for pool in &config.pools {
        if let PoolSource::Static(found) = &pool.source {
            for host in &found.hosts {
                if !hosts
                    .get(&pool.name)
                    .is_some_and(|names| names.contains(host.as_str()))
                {
                    hosts_gained.push((pool.name.clone(), host.clone()));
                }
            }
        }
    }
    Difference {
        pools_gained: named.difference(&live.pools).cloned().collect(),
        pools_lost: live
            .pools
            .difference(&named)
            .filter(|pool| !found(pool))
            .cloned()
            .collect(),
        hosts_gained,
        nodes_lost,
        above_max: config
            .pools
            .iter()
            .filter_map(|pool| {
                let nodes = count.get(&pool.name).copied().unwrap_or(0);
                (nodes > pool.max).then(|| (pool.name.clone(), nodes, pool.max))
            })
            .collect(),
    }
}
