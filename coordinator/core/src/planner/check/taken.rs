//! Where runs go: the place and the room of each target, used up run by run. Called by `runs` alone.

use super::facts::Facts;
use super::names;
use super::shares::{Room, share};
use crate::model::{Action, Class, NodeInput, Resources, Run, Target};
use crate::planner::matching::Place;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

/// Which invariant, and why.
pub(super) type Fault = (&'static str, String);

/// New nodes that are told apart by number; further ones, which no honest plan has, by name.
const NUMBERED: usize = 200_000;

/// All targets that runs went to so far.
pub(super) struct Targets<'f, 'a> {
    facts: &'f Facts<'a>,
    /// Place and size of the new nodes of an action.
    made: BTreeMap<u32, (Rc<Place<'a>>, Resources)>,
    /// Per action, the number of its first node.
    starts: Vec<usize>,
    new: Vec<Option<Taken<'a>>>,
    others: BTreeMap<&'a Target, Taken<'a>>,
}

impl<'f, 'a> Targets<'f, 'a> {
    pub fn new(facts: &'f Facts<'a>) -> Self {
        let mut starts = Vec::with_capacity(facts.planned.plan.actions.len());
        let mut nodes = 0_usize;
        for action in &facts.planned.plan.actions {
            starts.push(nodes);
            if let Action::Launch { count, .. } = action {
                nodes = nodes.saturating_add(*count as usize);
            }
        }
        let mut new = Vec::new();
        new.resize_with(nodes.min(NUMBERED), || None);
        Self {
            facts,
            made: BTreeMap::new(),
            starts,
            new,
            others: BTreeMap::new(),
        }
    }

    /// The target of a run, as runs before left it.
    pub fn slot(&mut self, run: &'a Run) -> Result<&mut Taken<'a>, Fault> {
        if let Target::New { action, node, .. } = run.target {
            self.asked(action, node)?;
            let first = self.starts.get(action as usize).copied();
            let at = first.unwrap_or(NUMBERED).saturating_add(node as usize);
            if at < self.new.len() {
                if self.new[at].is_none() {
                    self.new[at] = Some(self.launched(action)?);
                }
                let none = || (names::I4, format!("action {action} has no node {node}"));
                return self.new[at].as_mut().ok_or_else(none);
            }
            let fresh = self.launched(action)?;
            return Ok(self.others.entry(&run.target).or_insert(fresh));
        }
        match self.others.entry(&run.target) {
            Entry::Occupied(slot) => Ok(slot.into_mut()),
            Entry::Vacant(slot) => Ok(slot.insert(standing(self.facts, &run.target)?)),
        }
    }

    /// The action asks for so many nodes.
    fn asked(&self, action: u32, node: u32) -> Result<(), Fault> {
        match self.facts.planned.plan.actions.get(action as usize) {
            Some(Action::Launch { count, .. }) if node < *count => Ok(()),
            Some(Action::Launch { .. }) => {
                Err((names::I4, format!("action {action} has no node {node}")))
            }
            _ => Err((names::I4, format!("action {action} launches nothing"))),
        }
    }

    /// A new node of an action, with nothing on it.
    fn launched(&mut self, action: u32) -> Result<Taken<'a>, Fault> {
        let facts = self.facts;
        let Some(Action::Launch { pool, offering, .. }) =
            facts.planned.plan.actions.get(action as usize)
        else {
            return Err((names::I4, format!("action {action} launches nothing")));
        };
        let (place, size) = match self.made.get(&action) {
            Some(known) => known.clone(),
            None => {
                let pool = facts
                    .pools
                    .get(pool)
                    .ok_or((names::I5, format!("no pool {pool}")))?;
                let offering = facts.offering(pool, offering);
                let (offering, size) = offering
                    .and_then(|o| Some((o, o.allocatable.clone()?)))
                    .ok_or((names::I4, "unknown offering".to_owned()))?;
                let made = (Rc::new(facts.new_place(pool, offering)), size);
                self.made.insert(action, made.clone());
                made
            }
        };
        Ok(Taken::new(place, (size, Vec::new()), true))
    }
}

/// A node that exists or comes.
fn standing<'a>(facts: &Facts<'a>, target: &Target) -> Result<Taken<'a>, Fault> {
    match target {
        Target::Node(id) => {
            let node = facts
                .nodes
                .get(id)
                .ok_or((names::I5, format!("no node {id}")))?;
            let room = facts
                .room(node)
                .ok_or_else(|| (no_supply(node), format!("{id} takes no work")))?;
            let empty = node.used.is_zero()
                && node.reserved.is_empty()
                && (matches!(node.busy, crate::model::Busy::Idle { .. })
                    || node.lifecycle == crate::model::Lifecycle::Joined);
            Ok(Taken::new(Rc::new(facts.node_place(node)), room, empty))
        }
        Target::Coming(id, n) => {
            let launch = facts
                .launches
                .get(id)
                .ok_or((names::I4, format!("no launch {id}")))?;
            if *n >= launch.count || launch.deadline <= facts.input.now {
                return Err((names::I4, format!("node {n} of launch {id} is not coming")));
            }
            let pool = facts
                .pools
                .get(&launch.pool)
                .ok_or((names::I5, format!("no pool {}", launch.pool)))?;
            let offering = facts.offering(pool, &launch.offering);
            let (offering, size) = offering
                .and_then(|o| Some((o, o.allocatable.clone()?)))
                .ok_or((names::I4, format!("launch {id} gives nothing known")))?;
            let place = Rc::new(facts.new_place(pool, offering));
            Ok(Taken::new(place, (size, Vec::new()), true))
        }
        Target::New { action, .. } => Err((names::I4, format!("action {action} launches nothing"))),
    }
}

fn no_supply(node: &NodeInput) -> &'static str {
    if node.unreachable {
        names::I6
    } else if node.cordon.is_some() {
        names::I7
    } else {
        names::I1
    }
}

/// Room of one target, used up run by run.
pub(super) struct Taken<'a> {
    pub place: Rc<Place<'a>>,
    room: Resources,
    /// Free thousandths of GPUs that are used in part.
    shares: Vec<u32>,
    empty: bool,
    /// Units of classes with a limit per node.
    per_class: BTreeMap<u32, u32>,
    /// The node as `near` knows it.
    pub host: Option<usize>,
}

impl<'a> Taken<'a> {
    fn new(place: Rc<Place<'a>>, (room, shares): Room, empty: bool) -> Self {
        Self {
            place,
            room,
            shares,
            empty,
            per_class: BTreeMap::new(),
            host: None,
        }
    }

    /// `assigned`: units of the class that are there already.
    pub fn put(&mut self, run: &Run, class: &Class, assigned: u32) -> Result<(), String> {
        if class.whole_node {
            if !self.empty || run.count != 1 || !class.unit.fits(&self.room) {
                return Err("wants a whole node, which is not free".to_owned());
            }
            self.room = Resources::default();
        } else {
            if run.count > most_of(&class.unit, &self.room) {
                return Err("more units than fit on the node".to_owned());
            }
            self.room.take(&class.unit, run.count);
            let shares = if class.unit.gpu_milli > 0 {
                run.count
            } else {
                0
            };
            for _ in 0..shares {
                if !share(&mut self.room, &mut self.shares, class.unit.gpu_milli) {
                    return Err("more shares than the GPUs of the node have".to_owned());
                }
            }
        }
        self.empty = false;
        let most = class.constraints.max_per_node;
        if most == 0 {
            return Ok(());
        }
        let here = self.per_class.entry(run.class).or_insert(0);
        *here = here.saturating_add(run.count);
        if here.saturating_add(assigned) > most {
            return Err(format!("more than {most} units on one node"));
        }
        Ok(())
    }
}

/// Units that fit, shares of a GPU aside.
fn most_of(unit: &Resources, room: &Resources) -> u32 {
    if unit.gpu_milli == 0 {
        return unit.times(room);
    }
    let beside = Resources {
        gpu_milli: 0,
        ..unit.clone()
    };
    beside.times(room)
}
