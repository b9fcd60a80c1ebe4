//! Where runs go: the place and the room of each target, used up run by run. Called by `runs`; `facts` and `cheapest` take
//! shares of GPUs by the same rule.

use super::facts::Facts;
use super::names;
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
            let (place, size) = self.launched(action, node)?;
            let first = self
                .starts
                .get(action as usize)
                .copied()
                .unwrap_or(NUMBERED);
            let at = first.saturating_add(node as usize);
            if let Some(slot) = self.new.get_mut(at) {
                let fresh = || Taken::new(place, (size, Vec::new()), true);
                return Ok(slot.get_or_insert_with(fresh));
            }
            let slot = self.others.entry(&run.target);
            return Ok(slot.or_insert_with(|| Taken::new(place, (size, Vec::new()), true)));
        }
        match self.others.entry(&run.target) {
            Entry::Occupied(slot) => Ok(slot.into_mut()),
            Entry::Vacant(slot) => Ok(slot.insert(standing(self.facts, &run.target)?)),
        }
    }

    /// New nodes of an action.
    fn launched(&mut self, action: u32, node: u32) -> Result<(Rc<Place<'a>>, Resources), Fault> {
        let facts = self.facts;
        let Some(Action::Launch {
            pool,
            offering,
            count,
            ..
        }) = facts.planned.plan.actions.get(action as usize)
        else {
            return Err((names::I4, format!("action {action} launches nothing")));
        };
        if node >= *count {
            return Err((names::I4, format!("action {action} has no node {node}")));
        }
        if let Some(known) = self.made.get(&action) {
            return Ok(known.clone());
        }
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
        Ok(made)
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

/// Takes a part of one GPU: of the smallest free part that is enough, else of a whole one. False when there is none.
pub(super) fn share(room: &mut Resources, shares: &mut Vec<u32>, milli: u32) -> bool {
    if milli == 0 {
        return true;
    }
    let enough = shares
        .iter()
        .enumerate()
        .filter(|(_, free)| **free >= milli);
    let left = match enough.min_by_key(|(_, free)| **free) {
        Some((at, _)) => shares.swap_remove(at) - milli,
        None if room.gpus > 0 && milli <= 1_000 => {
            room.gpus -= 1;
            1_000 - milli
        }
        None => return false,
    };
    if left > 0 {
        shares.push(left);
    }
    true
}

/// Room in whole GPUs, and the parts of others.
pub(super) type Room = (Resources, Vec<u32>);
