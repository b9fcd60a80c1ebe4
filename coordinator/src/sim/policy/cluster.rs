//! A cluster whose scheduler places and whose autoscaler only adds and removes nodes: the frame of the models of Cluster
//! Autoscaler and of the predecessor.
//!
//! Called by `policy`. Jobs wait in order of (priority, submission); none is ever evicted, since batch jobs say that they
//! must not be.

use super::fleet::{Fleet, Placed};
use super::scheduler;
use crate::sim::history::History;
use crate::sim::offered::{self, Offered, Part};
use crate::sim::trace::Trace;
use crate::world::generator::Generator;
use drover_core::model::Millis;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When nothing came, started or ended for so long, the jobs that wait are taken as stuck.
const STUCK_AFTER: Millis = Millis::minutes(60 * 24 * 30);
/// The run is over so long after the last job; nodes that are still there cost until then.
const TAIL: Millis = Millis::minutes(60);

/// Adds and removes nodes.
pub(super) trait Autoscaler {
    /// When it would next do anything, if nothing else happens; after `now`.
    fn next(&self, cluster: &Cluster<'_>, now: Millis) -> Option<Millis>;
    /// One round.
    fn look(&mut self, cluster: &mut Cluster<'_>, now: Millis);
}

/// An ask that met a shortage and waits at the provider.
pub(super) struct Waiting {
    pub kind: usize,
    pub asked: Millis,
}

/// The state that scheduler and autoscaler share.
pub(super) struct Cluster<'a> {
    pub trace: &'a Trace,
    pub fleet: Fleet<'a>,
    /// Per job.
    pub parts: Vec<Vec<Part>>,
    /// Jobs that wait, in order.
    pub pending: Vec<usize>,
    /// Asks without an instance.
    pub waiting: Vec<Waiting>,
    placed: Vec<Vec<Placed>>,
    ends: BinaryHeap<Reverse<(Millis, usize)>>,
    lot: Generator,
}

impl Cluster<'_> {
    /// Nodes of a kind: those that are and those asked for.
    pub fn count(&self, kind: usize) -> u32 {
        let live = self
            .fleet
            .live
            .iter()
            .filter(|node| self.fleet.node(**node).kind == kind);
        let waiting = self.waiting.iter().filter(|ask| ask.kind == kind);
        u32::try_from(live.count() + waiting.count()).unwrap_or(u32::MAX)
    }

    /// Asks for one node.
    pub fn ask(&mut self, kind: usize, now: Millis) {
        let offered = &self.fleet.offered[kind];
        if offered.short_until(now).is_some() {
            *self
                .fleet
                .history
                .refusals
                .entry("shortage".to_owned())
                .or_default() += 1;
            self.waiting.push(Waiting { kind, asked: now });
        } else {
            self.fleet.open(kind, now, offered.boot);
        }
    }

    fn grant(&mut self, now: Millis) {
        let offered = self.fleet.offered;
        let (short, had): (Vec<Waiting>, Vec<Waiting>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|ask| offered[ask.kind].short_until(now).is_some());
        self.waiting = short;
        for ask in had {
            self.fleet.open(ask.kind, now, offered[ask.kind].boot);
        }
    }

    fn schedule(&mut self, now: Millis) {
        let mut left = Vec::new();
        for job in std::mem::take(&mut self.pending) {
            let stated = &self.trace.jobs[job];
            let parts = &self.parts[job];
            let fleet = &mut self.fleet;
            match scheduler::place(fleet, parts, &stated.constraints, now, &mut self.lot) {
                None => left.push(job),
                Some(placed) => {
                    let booted = |on: &Placed| self.fleet.node(on.0).ready > stated.submit;
                    self.fleet.history.jobs[job].waited_for_boot = placed.iter().any(booted);
                    self.fleet.start(job, now, &placed);
                    let end = Millis(now.0.saturating_add(stated.duration.0));
                    self.ends.push(Reverse((end, job)));
                    self.placed[job] = placed;
                }
            }
        }
        self.pending = left;
    }

    fn end_until(&mut self, now: Millis) {
        while let Some(Reverse((at, job))) = self.ends.peek().copied() {
            if at > now {
                break;
            }
            self.ends.pop();
            let placed = std::mem::take(&mut self.placed[job]);
            self.fleet.end(job, at, &placed);
        }
    }

    /// When something happens by itself next, after `now`.
    fn next(&self, now: Millis) -> Option<Millis> {
        let ready = self
            .fleet
            .live
            .iter()
            .map(|node| self.fleet.node(*node).ready);
        let had = self
            .waiting
            .iter()
            .filter_map(|ask| self.fleet.offered[ask.kind].short_until(now));
        let end = self.ends.peek().map(|Reverse((at, _))| *at);
        ready.chain(had).chain(end).filter(|at| *at > now).min()
    }

    /// Keeps the order of (priority, submission): jobs come by submission.
    fn queue(&mut self, job: usize) {
        let priority = self.trace.jobs[job].priority;
        let at = self
            .pending
            .partition_point(|other| self.trace.jobs[*other].priority >= priority);
        self.pending.insert(at, job);
    }
}

/// The replay.
pub(super) fn run(
    trace: &Trace,
    offered: &[Offered],
    seed: u64,
    mut autoscaler: impl Autoscaler,
) -> History {
    let mut cluster = Cluster {
        trace,
        fleet: Fleet::new(trace, offered),
        parts: trace.jobs.iter().map(offered::parts).collect(),
        pending: Vec::new(),
        waiting: Vec::new(),
        placed: vec![Vec::new(); trace.jobs.len()],
        ends: BinaryHeap::new(),
        lot: Generator::new(seed),
    };
    let mut coming = (0..trace.jobs.len())
        .filter(|job| offered::possible(&trace.jobs[*job], offered))
        .peekable();
    let mut now = Millis(0);
    let mut moved = now;
    loop {
        let before = (cluster.pending.len(), cluster.ends.len());
        cluster.end_until(now);
        while let Some(job) = coming.next_if(|job| trace.jobs[*job].submit <= now) {
            cluster.queue(job);
        }
        cluster.grant(now);
        cluster.schedule(now);
        // A job without run time ends at once.
        cluster.end_until(now);
        if before != (cluster.pending.len(), cluster.ends.len()) {
            moved = now;
        }
        if autoscaler_is_due(&autoscaler, &cluster, now) {
            autoscaler.look(&mut cluster, now);
            cluster.schedule(now);
            cluster.end_until(now);
        }
        let arrival = coming.peek().map(|job| trace.jobs[*job].submit);
        let next = [arrival, cluster.next(now), autoscaler.next(&cluster, now)];
        let Some(at) = next.into_iter().flatten().min() else {
            break;
        };
        let over = match cluster.pending.is_empty() {
            true => TAIL,
            false => STUCK_AFTER,
        };
        if arrival.is_none() && cluster.ends.is_empty() && at.0 - moved.0 > over.0 {
            now = Millis(moved.0 + TAIL.0);
            break;
        }
        now = at;
    }
    cluster.fleet.history.end = cluster.fleet.history.end.max(now);
    cluster.fleet.history
}

/// It looks at the moments that it named, whatever else happens then.
fn autoscaler_is_due(autoscaler: &impl Autoscaler, cluster: &Cluster<'_>, now: Millis) -> bool {
    let before = Millis(now.0.saturating_sub(1));
    now.0 > 0 && autoscaler.next(cluster, before) == Some(now)
}
