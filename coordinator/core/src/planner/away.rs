//! Nodes that a pool has and that serve nobody now: cordoned by a person, silent, faulty, draining, off, or never joined.
//! Called by `report` once, and by `why` for what waits. Reads the run's state, decides nothing.

use super::state::Work;
use super::supply::is_present;
use crate::model::{Away, Class, Cordon, Lifecycle, NodeInput, PoolKind, Reason, Resources};
use std::collections::BTreeMap;

/// Counted per pool by (kind, size); without kind and size where only the template tells.
pub(super) struct Missing<'a> {
    nodes: Vec<BTreeMap<(usize, &'a Resources, Away), u32>>,
    hosts: Vec<BTreeMap<Away, u32>>,
}

/// All of the fleet.
pub(super) fn missing<'a>(work: &Work<'a>) -> Missing<'a> {
    let mut all = Missing {
        nodes: vec![BTreeMap::new(); work.input.pools.len()],
        hosts: vec![BTreeMap::new(); work.input.pools.len()],
    };
    let mut known: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
    for (i, node) in work.input.nodes.iter().enumerate() {
        let (Some(p), false) = (work.node_pool[i], work.bad_nodes.contains_key(&i)) else {
            continue;
        };
        let (seen, off) = known.entry(p).or_default();
        *seen += u32::from(node.lifecycle != Lifecycle::Gone);
        if node.lifecycle == Lifecycle::Off {
            *off += 1;
            *all.hosts[p].entry(Away::Off).or_insert(0) += 1;
        }
        if !is_present(node) || work.bin_of_node.contains_key(&i) {
            continue;
        }
        if let Some(why) = away(node) {
            let key = (work.node_kind[i], &node.allocatable, why);
            *all.nodes[p].entry(key).or_insert(0) += 1;
        }
    }
    for &p in work.pool_index.values() {
        let pool = &work.input.pools[p];
        if pool.kind != PoolKind::Static {
            continue;
        }
        let (seen, off) = known.get(&p).copied().unwrap_or_default();
        let mine = work.input.launches.iter().filter(|l| l.pool == pool.id);
        let coming: u32 = mine.map(|l| l.count).sum();
        let can_start: u32 = pool.offerings.iter().filter_map(|o| o.available).sum();
        let rest = pool
            .max
            .saturating_sub(seen.saturating_add(coming))
            .saturating_sub(can_start.saturating_sub(off));
        if rest > 0 {
            all.hosts[p].insert(Away::NotJoined, rest);
        }
    }
    all
}

/// Why the node is no supply, where a person may wonder.
fn away(node: &NodeInput) -> Option<Away> {
    if node.lifecycle == Lifecycle::Leaving {
        return None;
    }
    Some(if node.unreachable {
        Away::Unreachable
    } else if node.faulty.is_some() {
        Away::Faulty
    } else if node.drain.is_some() {
        let who = match &node.cordon {
            Some(Cordon::Person { who, .. }) => Some(who.clone()),
            _ => None,
        };
        Away::Draining { who }
    } else if let Some(Cordon::Person { who, .. }) = &node.cordon {
        Away::Cordoned { who: who.clone() }
    } else {
        return None;
    })
}

impl Missing<'_> {
    /// Some node of a pool that is away would take a unit of the class.
    pub fn any(&self, work: &Work<'_>, class: usize, pool: usize) -> bool {
        let unit = &work.input.classes[class].unit;
        let mut nodes = self.nodes[pool].keys();
        nodes.any(|(kind, size, _)| work.matches(class, *kind) && unit.fits(size))
    }

    /// Those of a pool that would take a unit; `template`: new nodes of the pool would.
    pub fn reasons(
        &self,
        work: &Work<'_>,
        class: usize,
        pool: usize,
        template: bool,
    ) -> Vec<Reason> {
        let unit: &Class = &work.input.classes[class];
        let mut sums: BTreeMap<&Away, u32> = BTreeMap::new();
        for ((kind, size, why), n) in &self.nodes[pool] {
            if work.matches(class, *kind) && unit.unit.fits(size) {
                *sums.entry(why).or_insert(0) += n;
            }
        }
        for (why, n) in self.hosts[pool].iter().filter(|_| template) {
            *sums.entry(why).or_insert(0) += n;
        }
        let id = &work.input.pools[pool].id;
        sums.into_iter()
            .map(|(away, nodes)| Reason::NodesAway {
                pool: id.clone(),
                nodes,
                away: away.clone(),
            })
            .collect()
    }
}
