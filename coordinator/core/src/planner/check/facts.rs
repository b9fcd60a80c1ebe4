//! What the check knows: the input by id and the plan's runs by target. Built anew for every look.

use super::shares::{Room, share};
use crate::model::{
    Action, Busy, Class, Cordon, LaunchId, LaunchInFlight, Lifecycle, NodeId, NodeInput, Offering,
    OfferingId, PlanInput, Planned, PoolId, PoolInput, Reason, Resources, Run, Source, Target,
};
use crate::planner::matching::{self, Keys, Place, selects};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Facts<'a> {
    pub input: &'a PlanInput,
    pub planned: &'a Planned,
    pub pools: BTreeMap<&'a PoolId, &'a PoolInput>,
    pub nodes: BTreeMap<&'a NodeId, &'a NodeInput>,
    /// Nodes per pool that a node names, each once.
    by_pool: BTreeMap<&'a PoolId, Vec<&'a NodeInput>>,
    offerings: BTreeMap<&'a PoolId, BTreeMap<&'a OfferingId, &'a Offering>>,
    pub launches: BTreeMap<&'a LaunchId, &'a LaunchInFlight>,
    pub keys: Keys<'a>,
    /// Nodes uncordoned by the plan.
    pub uncordoned: BTreeSet<&'a NodeId>,
    /// Nodes of which the report says that they are kept for demand, maybe without a run: a gang's hold.
    pub held: BTreeSet<&'a NodeId>,
    /// Runs per existing node.
    pub on_node: BTreeMap<&'a NodeId, Vec<&'a Run>>,
    /// Runs per node of a launch in flight.
    pub on_coming: BTreeMap<(&'a LaunchId, u32), Vec<&'a Run>>,
    /// Runs per node of a launch action.
    pub on_new: BTreeMap<(u32, u32), Vec<&'a Run>>,
}

impl<'a> Facts<'a> {
    pub fn new(input: &'a PlanInput, planned: &'a Planned) -> Self {
        let mut facts = Self {
            input,
            planned,
            pools: BTreeMap::new(),
            nodes: BTreeMap::new(),
            by_pool: BTreeMap::new(),
            offerings: BTreeMap::new(),
            launches: BTreeMap::new(),
            keys: matching::keys(input),
            uncordoned: BTreeSet::new(),
            held: held(planned),
            on_node: BTreeMap::new(),
            on_coming: BTreeMap::new(),
            on_new: BTreeMap::new(),
        };
        // Of two with one id the first counts.
        for pool in &input.pools {
            if facts.pools.contains_key(&pool.id) {
                continue;
            }
            facts.pools.insert(&pool.id, pool);
            // The first of one id, so from the last on.
            let all = pool.offerings.iter().rev().map(|o| (&o.id, o));
            facts.offerings.insert(&pool.id, all.collect());
        }
        let nodes = input.nodes.iter().rev();
        facts.nodes = nodes.map(|node| (&node.id, node)).collect();
        for node in facts.nodes.values() {
            if let Some(pool) = &node.pool {
                facts.by_pool.entry(pool).or_default().push(node);
            }
        }
        for launch in &input.launches {
            facts.launches.entry(&launch.id).or_insert(launch);
        }
        for action in &planned.plan.actions {
            if let Action::Uncordon { node, .. } = action {
                facts.uncordoned.insert(node);
            }
        }
        for run in &planned.plan.runs {
            match &run.target {
                Target::Node(id) => facts.on_node.entry(id).or_default().push(run),
                Target::Coming(id, n) => facts.on_coming.entry((id, *n)).or_default().push(run),
                Target::New { would: true, .. } => {}
                Target::New { action, node, .. } => {
                    facts.on_new.entry((*action, *node)).or_default().push(run)
                }
            }
        }
        facts
    }

    pub fn class(&self, run: &Run) -> Option<&'a Class> {
        self.input.classes.get(run.class as usize)
    }

    pub fn pool_of(&self, node: &NodeInput) -> Option<&'a PoolInput> {
        node.pool.as_ref().and_then(|p| self.pools.get(p).copied())
    }

    pub fn offering(&self, pool: &'a PoolInput, id: &OfferingId) -> Option<&'a Offering> {
        self.offerings.get(&pool.id)?.get(id).copied()
    }

    pub fn node_place(&self, node: &'a NodeInput) -> Place<'a> {
        Place::of_node(node, self.pool_of(node), &self.keys)
    }

    /// The place of nodes that an offering gives.
    pub fn new_place(&self, pool: &'a PoolInput, offering: &'a Offering) -> Place<'a> {
        Place::of(pool, offering, &self.keys)
    }

    /// Nodes of a pool, each once.
    pub fn nodes_of(&self, pool: &PoolInput) -> impl Iterator<Item = &'a NodeInput> + '_ {
        self.by_pool.get(&pool.id).into_iter().flatten().copied()
    }

    /// Room on an existing node before the plan's runs, and the free parts of its shared GPUs; none when it supplies
    /// nothing.
    pub fn room(&self, node: &'a NodeInput) -> Option<Room> {
        let pool = self.pool_of(node);
        let sound = !node.unreachable && node.faulty.is_none();
        let size = match node.lifecycle {
            _ if !sound => return None,
            _ if self.uncordoned.contains(&node.id) => &node.allocatable,
            _ if node.cordon.is_some() || node.drain.is_some() => return None,
            Lifecycle::Ready => &node.allocatable,
            Lifecycle::Joined if pool.is_some() => {
                let offering = pool
                    .zip(node.offering.as_ref())
                    .and_then(|(p, o)| self.offering(p, o));
                offering
                    .and_then(|o| o.allocatable.as_ref())
                    .unwrap_or(&node.allocatable)
            }
            _ => return None,
        };
        let mut room = size.minus(&node.used);
        let mut shares = node.gpu_shares.clone();
        for held in &node.reserved {
            room = room.minus(&held.amount);
            let each = held.amount.gpu_milli.checked_div(held.units).unwrap_or(0);
            for _ in 0..held.units {
                share(&mut room, &mut shares, each);
            }
        }
        Some((room, shares))
    }

    /// Takes the plan's runs on an existing node off its room.
    pub fn take_runs(&self, node: &NodeInput, (room, shares): &mut Room) {
        for run in self.on_node.get(&node.id).into_iter().flatten() {
            match self.class(run) {
                Some(class) if class.whole_node => {
                    *room = Resources::default();
                    shares.clear();
                }
                Some(class) => {
                    *room = room.minus(&class.unit.scaled(run.count));
                    for _ in 0..run.count {
                        share(room, shares, class.unit.gpu_milli);
                    }
                }
                None => {}
            }
        }
    }

    /// Rules between units may keep units of the class off a node on which they would fit.
    pub fn has_neighbours(&self, class: &Class) -> bool {
        let c = &class.constraints;
        let own = !c.host_ports.is_empty()
            || !c.affinity.is_empty()
            || !c.anti_affinity.is_empty()
            || c.spread.iter().any(|s| s.hard);
        let names = |near: &crate::model::Near, from: &str| {
            selects(&near.select, from, &class.labels, &class.namespace)
        };
        let waiting = &self.input.classes;
        let mut waiting = waiting.iter().flat_map(|o| {
            let all = o.constraints.anti_affinity.iter();
            all.map(|near| names(near, &o.namespace))
        });
        let running = self.input.nodes.iter().flat_map(|n| &n.workloads);
        let mut running =
            running.flat_map(|w| w.anti_affinity.iter().map(|n| names(n, &w.namespace)));
        own || waiting.any(|named| named) || running.any(|named| named)
    }

    /// Units of a class that its request holds on a node already.
    pub fn assigned(node: &NodeInput, class: &Class) -> u32 {
        let Source::Request(name) = &class.source else {
            return 0;
        };
        let mine = node.reserved.iter().filter(|held| held.request == *name);
        mine.fold(0, |sum, held| sum.saturating_add(held.units))
    }

    /// Our own cordon on an empty, sound node that the plan may take back.
    pub fn may_uncordon(node: &NodeInput) -> bool {
        node.cordon == Some(Cordon::Drover)
            && node.faulty.is_none()
            && !node.unreachable
            && node.drain.as_ref().is_none_or(|d| d.own_idle && !d.moving)
            && matches!(node.busy, Busy::Idle { .. })
            && matches!(
                node.lifecycle,
                Lifecycle::Ready | Lifecycle::Draining | Lifecycle::Drained
            )
    }

    /// The node is on its way out (and not taken back by the plan).
    pub fn leaving(&self, node: &NodeInput) -> bool {
        !self.uncordoned.contains(&node.id)
            && (node.drain.is_some()
                || matches!(
                    node.lifecycle,
                    Lifecycle::Draining | Lifecycle::Drained | Lifecycle::Leaving
                ))
    }

    pub fn exists(node: &NodeInput) -> bool {
        !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off)
    }
}

fn held(planned: &Planned) -> BTreeSet<&NodeId> {
    let report = &planned.report;
    let moves = |a: &Action| matches!(a, Action::Release { .. });
    let some = report.classes.iter().any(|c| c.held > 0) || planned.plan.actions.iter().any(moves);
    // What is foreign is called foreign in the report, held or not.
    let kept = |reason: &Reason| match reason {
        Reason::KeptForDemand { .. } | Reason::KeptForGang { .. } | Reason::Foreign => some,
        _ => false,
    };
    let nodes = report.nodes.iter().filter(|n| kept(&n.reason));
    nodes.map(|n| &n.node).collect()
}
