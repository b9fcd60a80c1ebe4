//! Nodes and launches of the input as bins, with the counts of their pools. Called once, by `Work::new`; bad items are
//! noted, never fatal.

use crate::model::{Busy, Cordon, Lifecycle, Mode};
use crate::planner::matching::{Keys, Place};
use crate::planner::near::Content;
use crate::planner::offers;
use crate::planner::size::Free;
use crate::planner::state::{Work, intern};
use crate::planner::supply::{At, Bin, Tier, is_present, node_supply, reserve, reserve_coming};
use std::collections::{BTreeMap, BTreeSet};

impl<'a> Work<'a> {
    pub(super) fn add_nodes(
        &mut self,
        keys: &Keys<'a>,
        kind_index: &mut BTreeMap<Place<'a>, usize>,
    ) {
        let mut seen = BTreeSet::new();
        for (i, node) in self.input.nodes.iter().enumerate() {
            let at = node
                .pool
                .as_ref()
                .and_then(|p| self.pool_index.get(p).copied());
            self.node_pool.push(at);
            if !seen.insert(&node.id) {
                self.node_kind.push(0);
                self.bad_nodes
                    .insert(i, format!("two nodes have the id {}", node.id));
                continue;
            }
            if let Some(p) = at {
                self.nodes_of[p].push(i);
                let count = &mut self.counts[p];
                if is_present(node) {
                    count.present = count.present.saturating_add(1);
                    count.nodes = count.nodes.saturating_add(1);
                    let out = node.drain.is_some()
                        || matches!(
                            node.lifecycle,
                            Lifecycle::Draining | Lifecycle::Drained | Lifecycle::Leaving
                        );
                    if out {
                        count.removing = count.removing.saturating_add(1);
                    } else if node.faulty.is_none() && node.cordon != Some(Cordon::Drover) {
                        count.staying = count.staying.saturating_add(1);
                    }
                }
            }
            let pool = at.map(|p| &self.input.pools[p]);
            let kind = intern(kind_index, Place::of_node(node, pool, keys));
            self.node_kind.push(kind);
            if is_present(node) {
                let count = self
                    .shapes
                    .entry((kind, at, &node.allocatable))
                    .or_insert(0);
                *count += 1;
            }
            let Some((tier, total)) = node_supply(node, pool) else {
                continue;
            };
            let total = self.names.size(total);
            let mut free = Free {
                size: total.minus(&self.names.size(&node.used)),
                shares: node.gpu_shares.clone(),
            };
            free.shares.sort_unstable();
            for held in &node.reserved {
                reserve(&mut free, &self.names, held);
            }
            let idle = (matches!(node.busy, Busy::Idle { .. }) || tier == Tier::Coming)
                && node.reserved.is_empty();
            self.bin_of_node.insert(i, self.bins.len());
            self.bins.push(Bin {
                at: At::Node(i),
                kind,
                pool: at,
                tier,
                empty: idle && node.used.is_zero(),
                idle,
                would: tier == Tier::OwnCordoned && pool.is_some_and(|p| p.mode == Mode::Observe),
                total,
                free,
                content: Content::default(),
                placed: Vec::new(),
                held: Vec::new(),
            });
        }
    }

    pub(super) fn add_launches(
        &mut self,
        keys: &Keys<'a>,
        kind_index: &mut BTreeMap<Place<'a>, usize>,
    ) {
        let mut seen = BTreeSet::new();
        let mut left = offers::MAX_NODES;
        for (i, launch) in self.input.launches.iter().enumerate() {
            let twin = !seen.insert(&launch.id);
            let Some(&p) = self.pool_index.get(&launch.pool) else {
                continue;
            };
            let count = &mut self.counts[p];
            count.present = count.present.saturating_add(launch.count);
            if launch.deadline <= self.input.now {
                continue;
            }
            count.staying = count.staying.saturating_add(launch.count);
            if twin {
                self.bad_pools
                    .entry(p)
                    .or_default()
                    .push(format!("two launches have the id {}", launch.id));
                continue;
            }
            let pool = &self.input.pools[p];
            let offering = pool.offerings.iter().find(|o| o.id == launch.offering);
            let Some((offering, total)) = offering.and_then(|o| Some((o, o.allocatable.as_ref()?)))
            else {
                let what = format!(
                    "launch {} names offering {}, which gives nothing",
                    launch.id, launch.offering
                );
                self.bad_pools.entry(p).or_default().push(what);
                continue;
            };
            let kind = intern(kind_index, Place::of(pool, offering, keys));
            let nodes = launch.count.min(left);
            left -= nodes;
            let total = self.names.size(total);
            let first = self.bins.len();
            for n in 0..nodes {
                self.bins.push(Bin {
                    at: At::Coming(i, n),
                    kind,
                    pool: Some(p),
                    tier: Tier::Coming,
                    total: total.clone(),
                    free: Free::whole(total.clone()),
                    content: Content::default(),
                    empty: true,
                    idle: true,
                    would: false,
                    placed: Vec::new(),
                    held: Vec::new(),
                });
            }
            reserve_coming(self.input, &self.units, launch, &mut self.bins[first..]);
        }
    }
}
