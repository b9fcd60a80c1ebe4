//! Do the rules between pods hold in a plan? Replays its runs pod by pod on its new nodes, in plain loops: room, affinity,
//! anti-affinity, hard spread. For inputs without existing nodes. Used by the cases; shares nothing with the planner.

use super::shapes::selects;
use drover_core::model::{Action, Class, PlanInput, Planned, Resources, Target};
use std::collections::BTreeMap;

const ZONE: &str = "topology.kubernetes.io/zone";

/// One node, and what is on it: units by class.
pub(crate) struct Node {
    pub(crate) zone: String,
    pub(crate) free: Resources,
    pub(crate) on: BTreeMap<usize, u32>,
}

/// Units placed so far, by class and zone, and the zones that could be had.
pub(crate) struct Placed<'a> {
    pub(crate) input: &'a PlanInput,
    pub(crate) nodes: Vec<Node>,
    /// Classes by labels: all with the same are counted alike.
    alike: Vec<usize>,
    /// Per labels, per zone.
    in_zone: BTreeMap<(usize, String), u32>,
    zones: Vec<String>,
    /// Per (class that asks, which of its selectors): the labels that it names.
    named: BTreeMap<(usize, usize), Vec<usize>>,
}

impl<'a> Placed<'a> {
    pub(crate) fn new(input: &'a PlanInput) -> Self {
        let mut index: BTreeMap<&BTreeMap<String, String>, usize> = BTreeMap::new();
        let alike: Vec<usize> = input
            .classes
            .iter()
            .map(|class| {
                let next = index.len();
                *index.entry(&class.labels).or_insert(next)
            })
            .collect();
        let offerings = input.pools.iter().flat_map(|pool| &pool.offerings);
        let mut zones: Vec<String> = offerings.map(|o| o.zone.clone()).collect();
        zones.sort();
        zones.dedup();
        let mut named = BTreeMap::new();
        for (c, class) in input.classes.iter().enumerate() {
            let k = &class.constraints;
            let near = k.affinity.iter().chain(&k.anti_affinity).map(|n| &n.select);
            let all = near.chain(k.spread.iter().map(|s| &s.select));
            for (at, select) in all.enumerate() {
                let who = index.iter().filter(|(labels, _)| selects(select, labels));
                named.insert((c, at), who.map(|(_, i)| *i).collect());
            }
        }
        Self {
            input,
            nodes: Vec::new(),
            alike,
            in_zone: BTreeMap::new(),
            zones,
            named,
        }
    }

    /// A node without anything on it.
    pub(crate) fn open(&mut self, zone: &str, size: &Resources) -> usize {
        self.nodes.push(Node {
            zone: zone.to_owned(),
            free: size.clone(),
            on: BTreeMap::new(),
        });
        self.nodes.len() - 1
    }

    fn here(&self, node: usize, who: &[usize]) -> u32 {
        let on = &self.nodes[node].on;
        who.iter().filter_map(|labels| on.get(labels)).sum()
    }

    fn zone(&self, zone: &str, who: &[usize]) -> u32 {
        let each = who.iter().map(|labels| (*labels, zone.to_owned()));
        each.filter_map(|key| self.in_zone.get(&key)).sum()
    }

    /// Why one more pod of the class may not go there.
    pub(crate) fn refuses(&self, class: usize, node: usize) -> Option<&'static str> {
        if !self.input.classes[class].unit.fits(&self.nodes[node].free) {
            return Some("no room");
        }
        let zone = self.nodes[node].zone.as_str();
        self.rules_refuse(class, zone, Some(node))
    }

    /// The same for the rules alone; without a node: on a new one in that zone.
    pub(crate) fn rules_refuse(
        &self,
        class: usize,
        zone: &str,
        node: Option<usize>,
    ) -> Option<&'static str> {
        let k = &self.input.classes[class].constraints;
        let count = |topology: &str, who: &[usize]| {
            if topology == ZONE {
                self.zone(zone, who)
            } else {
                node.map_or(0, |n| self.here(n, who))
            }
        };
        let mut at = 0;
        for near in &k.affinity {
            let who = &self.named[&(class, at)];
            at += 1;
            let anywhere = self.zones.iter().any(|z| self.zone(z, who) > 0);
            let itself = who.contains(&self.alike[class]);
            if count(&near.topology, who) == 0 && (anywhere || !itself) {
                return Some("no fellow is near");
            }
        }
        // All pods with anti-affinity here name each other: looking at one side is enough.
        for near in &k.anti_affinity {
            if count(&near.topology, &self.named[&(class, at)]) > 0 {
                return Some("one is there that it keeps away");
            }
            at += 1;
        }
        for spread in &k.spread {
            let who = &self.named[&(class, at)];
            at += 1;
            let least = if spread.topology == ZONE {
                self.zones
                    .iter()
                    .map(|z| self.zone(z, who))
                    .min()
                    .unwrap_or(0)
            } else if node.is_none() || count(&spread.topology, who) == 0 {
                0
            } else {
                let all = 0..self.nodes.len();
                all.map(|n| self.here(n, who)).min().unwrap_or(0)
            };
            let itself = u32::from(who.contains(&self.alike[class]));
            if count(&spread.topology, who) + itself > least + spread.max_skew {
                return Some("too uneven");
            }
        }
        None
    }

    /// Places a pod.
    pub(crate) fn put(&mut self, class: usize, node: usize) {
        let labels = self.alike[class];
        let to = &mut self.nodes[node];
        to.free = to.free.minus(&self.input.classes[class].unit);
        *to.on.entry(labels).or_insert(0) += 1;
        *self.in_zone.entry((labels, to.zone.clone())).or_insert(0) += 1;
    }
}

/// An error that names the first pod that may not be where it is.
pub(crate) fn hold(input: &PlanInput, planned: &Planned) -> Result<(), String> {
    let mut placed = Placed::new(input);
    let mut nodes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for run in &planned.plan.runs {
        let Target::New {
            action,
            node,
            would: false,
        } = &run.target
        else {
            return Err(format!("{:?}", run.target));
        };
        let at = match nodes.get(&(*action, *node)) {
            Some(at) => *at,
            None => {
                let (zone, size) = bought(input, planned, *action)?;
                let at = placed.open(&zone, &size);
                nodes.insert((*action, *node), at);
                at
            }
        };
        let class = run.class as usize;
        for _ in 0..run.count {
            if let Some(why) = placed.refuses(class, at) {
                let labels = &input.classes[class].labels;
                return Err(format!(
                    "a pod with {labels:?} on node {node} of act {action}: {why}"
                ));
            }
            placed.put(class, at);
        }
    }
    Ok(())
}

/// Zone and size of the nodes of a launch.
fn bought(
    input: &PlanInput,
    planned: &Planned,
    action: u32,
) -> Result<(String, Resources), String> {
    let act = planned.plan.actions.get(action as usize);
    let Some(Action::Launch { pool, offering, .. }) = act else {
        return Err(format!("act {action} launches nothing"));
    };
    let pool = input.pools.iter().find(|p| p.id == *pool);
    let offering = pool.and_then(|p| p.offerings.iter().find(|o| o.id == *offering));
    let offering = offering.ok_or("no such offering")?;
    let size = offering.allocatable.clone().ok_or("an unknown type")?;
    Ok((offering.zone.clone(), size))
}

/// Classes, the largest pod first.
pub(crate) fn decreasing(input: &PlanInput) -> Vec<usize> {
    let mut order: Vec<usize> = (0..input.classes.len()).collect();
    let key = |class: &Class| (class.unit.gpus, class.unit.cpu, class.unit.memory);
    order.sort_by_key(|c| (std::cmp::Reverse(key(&input.classes[*c])), *c));
    order
}
