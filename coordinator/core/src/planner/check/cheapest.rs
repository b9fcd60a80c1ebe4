//! I12: nothing is bought for a unit that still fits on a node that takes work or that we cordoned. Called by `actions`.
//! A unit without GPUs is not kept on a node with GPUs that is paid by the hour and could leave, where a node without is
//! bought for it.

use super::actions::Verdict;
use super::facts::Facts;
use super::names;
use super::shares::Room;
use crate::model::{Mode, NodeInput, Resources, Run, Stop};
use std::collections::BTreeSet;

/// What is left on each node after the plan's runs; nodes that serve nobody, or are held for a gang, are not here.
pub(super) struct Rooms<'a> {
    all: Vec<(&'a NodeInput, Room, Vec<&'a Run>)>,
}

impl<'a> Rooms<'a> {
    /// Looks once over all nodes.
    pub fn new(facts: &Facts<'a>) -> Self {
        let mut all = Vec::new();
        for node in facts.nodes.values().copied() {
            let room = if may_come_back(facts, node) {
                Some((node.allocatable.minus(&node.used), node.gpu_shares.clone()))
            } else {
                facts.room(node)
            };
            let Some(mut room) = room.filter(|_| !facts.held.contains(&node.id)) else {
                continue;
            };
            let runs = facts.on_node.get(&node.id).cloned().unwrap_or_default();
            facts.take_runs(node, &mut room);
            if !room.0.is_zero() || !room.1.is_empty() {
                all.push((node, room, runs));
            }
        }
        Self { all }
    }

    /// Of the action with this index; `plain`: it asks for nodes without GPUs.
    pub fn cheapest(&self, facts: &Facts<'a>, index: usize, plain: bool) -> Verdict {
        if self.all.is_empty() {
            return Ok(());
        }
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let bought: BTreeSet<u32> = facts
            .on_new
            .range((index, 0)..=(index, u32::MAX))
            .flat_map(|(_, runs)| runs.iter().map(|r| r.class))
            .collect();
        for at in bought {
            let Some(class) = facts.input.classes.get(at as usize) else {
                continue;
            };
            let alone = !class.whole_node && !class.unit.is_zero() && class.gang.is_none();
            if !alone || facts.has_neighbours(class) {
                continue;
            }
            let most = class.constraints.max_per_node;
            let milli = class.unit.gpu_milli;
            let beside = Resources {
                gpu_milli: 0,
                ..class.unit.clone()
            };
            // A node without GPUs is bought for it, or it fills a hole of a node that others with GPUs need.
            let spared = class.unit.gpus == 0 && (plain || (milli == 0 && rides(facts, index, at)));
            let left = |(node, (room, shares), runs): &&(&NodeInput, Room, Vec<&Run>)| {
                let mine = runs.iter().filter(|r| r.class == at);
                let here: u32 = mine.map(|r| r.count).sum();
                let here = here + Facts::assigned(node, class);
                let part = milli == 0 || room.gpus > 0 || shares.iter().any(|s| *s >= milli);
                part && beside.fits(room)
                    && (most == 0 || here < most)
                    && !(spared && is_dear(facts, node))
                    && facts.node_place(node).allows(&class.constraints)
            };
            if let Some((node, ..)) = self.all.iter().find(left) {
                let why = format!("a unit of class {at} still fits on {}", node.id);
                return Err((names::I12, why));
            }
        }
        Ok(())
    }
}

/// Wherever the action carries units of the class, units with GPUs are on the same node.
fn rides(facts: &Facts<'_>, index: u32, class: u32) -> bool {
    let gpus = |run: &&Run| {
        let unit = facts.class(run).map(|c| &c.unit);
        unit.is_some_and(|u| u.gpus > 0 || u.gpu_milli > 0)
    };
    let mut nodes = facts.on_new.range((index, 0)..=(index, u32::MAX));
    nodes.all(|(_, runs)| runs.iter().all(|r| r.class != class) || runs.iter().any(gpus))
}

/// It has GPUs, costs by the hour and could leave.
fn is_dear(facts: &Facts<'_>, node: &NodeInput) -> bool {
    node.allocatable.gpus > 0
        && node.price.0 > 0
        && facts
            .pool_of(node)
            .is_some_and(|p| p.mode == Mode::Full && p.removable)
}

/// Cordoned by us, empty, and nothing forbids to take that back.
fn may_come_back(facts: &Facts<'_>, node: &NodeInput) -> bool {
    let forbids = |s: &Stop| {
        matches!(
            s,
            Stop::Frozen { .. } | Stop::SiteSilent | Stop::NotOurs { .. }
        )
    };
    Facts::may_uncordon(node)
        && node.reserved.is_empty()
        && facts
            .pool_of(node)
            .is_some_and(|p| p.mode != Mode::Observe && !p.stops.iter().any(forbids))
}
