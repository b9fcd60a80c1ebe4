//! The nodes of a replay: what is free, what runs, and the history as it happens.
//!
//! Used by every policy for comparison. Decides nothing.

use crate::sim::history::{History, JobHistory, NodeHistory};
use crate::sim::offered::{Offered, Part};
use crate::sim::trace::Trace;
use drover_core::model::{Millis, Resources};
use std::collections::BTreeSet;

/// A node that exists.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Index of its kind.
    pub kind: usize,
    /// What nobody has taken.
    pub free: Resources,
    /// Takes work from then on.
    pub ready: Millis,
    /// Parts on it, waiting ones included.
    pub parts: u32,
    /// Since when it has been without any part.
    pub idle_since: Millis,
    /// When the last of its jobs ends, as far as known.
    pub last_end: Millis,
    /// Kept from new work.
    pub cordoned: bool,
    running: Resources,
}

/// A part on a node.
pub(super) type Placed = (u32, Part);

/// All nodes and what is written down of them.
pub(super) struct Fleet<'a> {
    pub offered: &'a [Offered],
    /// By number; a node that ended is still there.
    pub nodes: Vec<Node>,
    /// Those that exist.
    pub live: BTreeSet<u32>,
    pub history: History,
}

impl<'a> Fleet<'a> {
    pub fn new(trace: &Trace, offered: &'a [Offered]) -> Self {
        Self {
            offered,
            nodes: Vec::new(),
            live: BTreeSet::new(),
            history: History {
                jobs: vec![JobHistory::default(); trace.jobs.len()],
                ..History::default()
            },
        }
    }

    pub fn kind(&self, node: u32) -> &'a Offered {
        &self.offered[self.nodes[node as usize].kind]
    }

    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// A new node, ready after `boot`.
    pub fn open(&mut self, kind: usize, now: Millis, boot: Millis) -> u32 {
        let offered = &self.offered[kind];
        let ready = Millis(now.0.saturating_add(boot.0));
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node {
            kind,
            free: offered.allocatable.clone(),
            ready,
            parts: 0,
            idle_since: ready,
            last_end: Millis(0),
            cordoned: false,
            running: Resources::default(),
        });
        self.history.nodes.push(NodeHistory {
            pool: offered.pool.clone(),
            instance_type: offered.name.clone(),
            zone: offered.zone.clone(),
            price: offered.price,
            allocatable: offered.allocatable.clone(),
            launched: now,
            ready: Some(ready),
            ..NodeHistory::default()
        });
        self.live.insert(number);
        number
    }

    /// Can the part go there, by amounts and constraints?
    pub fn takes(&self, node: u32, part: &Part, wanted: &drover_core::model::Constraints) -> bool {
        let at = self.node(node);
        (!part.whole || at.parts == 0) && part.need.fits(&at.free) && self.kind(node).allows(wanted)
    }

    /// Takes room for a part.
    pub fn take(&mut self, placed: &Placed) {
        let node = &mut self.nodes[placed.0 as usize];
        node.free = if placed.1.whole {
            Resources::default()
        } else {
            node.free.minus(&placed.1.need)
        };
        node.parts += 1;
    }

    /// Gives back room that was taken and never used.
    pub fn give_back(&mut self, placed: &Placed) {
        let all = &self.kind(placed.0).allocatable;
        let node = &mut self.nodes[placed.0 as usize];
        node.free = if placed.1.whole {
            all.clone()
        } else {
            node.free.plus(&placed.1.need)
        };
        node.parts -= 1;
    }

    /// All parts of a job begin to run.
    pub fn start(&mut self, job: usize, now: Millis, parts: &[Placed]) {
        for (node, part) in parts {
            let at = &mut self.nodes[*node as usize];
            at.running = at.running.plus(&part.need);
            let running = at.running.clone();
            self.note_use(*node, now, running);
        }
        let mut on: Vec<(u32, u32)> = Vec::new();
        for (node, _) in parts {
            match on.iter_mut().find(|(known, _)| known == node) {
                Some((_, units)) => *units += 1,
                None => on.push((*node, 1)),
            }
        }
        let history = &mut self.history.jobs[job];
        history.started = Some(now);
        history.on = on;
    }

    /// All parts of a job end.
    pub fn end(&mut self, job: usize, now: Millis, parts: &[Placed]) {
        self.history.jobs[job].ended = Some(now);
        self.history.end = self.history.end.max(now);
        for (node, part) in parts {
            self.give_back(&(*node, part.clone()));
            let at = &mut self.nodes[*node as usize];
            at.running = at.running.minus(&part.need);
            if at.parts == 0 {
                at.idle_since = now;
            }
            let running = at.running.clone();
            self.note_use(*node, now, running);
        }
    }

    fn note_use(&mut self, node: u32, now: Millis, running: Resources) {
        let used = &mut self.history.nodes[node as usize].used;
        match used.last_mut() {
            Some((last, value)) if *last == now => *value = running,
            _ => used.push((now, running)),
        }
    }

    /// The node ends.
    pub fn close(&mut self, node: u32, now: Millis) {
        self.live.remove(&node);
        let ready = self.node(node).ready;
        let history = &mut self.history.nodes[node as usize];
        history.ended = Some(now);
        if ready > now {
            history.ready = None;
        }
        self.history.end = self.history.end.max(now);
    }
}
