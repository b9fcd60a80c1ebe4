//! The greedy policies: a job is placed the moment it comes, on what is there or on new nodes, and starts when the last
//! of its nodes is up.
//!
//! From 8 GPUs on, on nodes of 8, a job takes whole nodes; its remainder is packed like a small one. A node ends when it
//! was without work for the idle time. Nothing is short and no node is limited in number here.

use super::fleet::{Fleet, Placed};
use crate::sim::history::History;
use crate::sim::offered::{self, Offered, Part};
use crate::sim::trace::{Job, Trace};
use drover_core::model::Millis;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// Which of the nodes that fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Choose {
    /// That with the fewest GPUs left, then CPUs, then memory; the oldest of equals.
    #[default]
    Best,
    /// That with the fewest CPUs left, then the least memory, then GPUs.
    BestCpu,
    /// The oldest.
    First,
    /// That whose end it delays least, then that which outlives it least. Knows all run times.
    KnownEnds,
    /// That whose end it delays least, then as `Best`.
    KnownEndsBest,
}

/// A greedy policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greedy {
    /// Where a part goes.
    pub choose: Choose,
    /// Opened for GPU work that it holds; otherwise, and for all else, the cheapest type that holds the part.
    pub open: Option<String>,
    /// Work without GPUs stays off nodes with GPUs.
    pub apart: bool,
    /// How long a node without work stays.
    pub idle: Millis,
}

impl fmt::Display for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.choose {
            Choose::Best => "best-fit",
            Choose::BestCpu => "best-fit-cpu",
            Choose::First => "first-fit",
            Choose::KnownEnds => "known-ends",
            Choose::KnownEndsBest => "known-ends-fit",
        })?;
        if self.apart {
            f.write_str("-apart")?;
        }
        if self.idle > Millis(0) {
            match self.idle.0.div_ceil(1_000) {
                seconds if seconds % 60 == 0 => write!(f, "-timeout={}m", seconds / 60)?,
                seconds => write!(f, "-timeout={seconds}s")?,
            }
        }
        match &self.open {
            Some(name) => write!(f, ":{name}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End,
    Start,
}

/// Ends and starts to come: when, which, of which job.
type Events = BinaryHeap<Reverse<(Millis, Event, usize)>>;

/// The replay.
pub(super) fn replay(policy: &Greedy, trace: &Trace, offered: &[Offered]) -> History {
    let mut fleet = Fleet::new(trace, offered);
    let mut events = Events::new();
    let mut placed: Vec<Vec<Placed>> = vec![Vec::new(); trace.jobs.len()];
    for (index, job) in trace.jobs.iter().enumerate() {
        pass(&mut fleet, &mut events, &placed, trace, job.submit);
        expire(&mut fleet, policy.idle, job.submit);
        if !offered::possible(job, offered) {
            continue;
        }
        for part in offered::parts(job) {
            let node =
                choose(policy, &fleet, job, &part).or_else(|| open(policy, &mut fleet, job, &part));
            let Some(node) = node else { continue };
            let on = (node, part);
            fleet.take(&on);
            placed[index].push(on);
        }
        let ready = |on: &Placed| fleet.node(on.0).ready;
        let up = placed[index].iter().map(ready).max().unwrap_or_default();
        let start = job.submit.max(up);
        let end = Millis(start.0.saturating_add(job.duration.0));
        for (node, _) in &placed[index] {
            let at = &mut fleet.nodes[*node as usize];
            at.last_end = at.last_end.max(end);
        }
        hold(&mut fleet, &placed[index], job.submit, start);
        fleet.history.jobs[index].waited_for_boot = start > job.submit;
        if start == job.submit {
            fleet.start(index, start, &placed[index]);
        } else {
            events.push(Reverse((start, Event::Start, index)));
        }
        events.push(Reverse((end, Event::End, index)));
    }
    pass(&mut fleet, &mut events, &placed, trace, Millis(u64::MAX));
    expire(&mut fleet, policy.idle, Millis(u64::MAX));
    fleet.history
}

/// Each unit on a node of its own, the cheapest that holds it.
pub(super) fn no_packing(trace: &Trace, offered: &[Offered]) -> History {
    let mut fleet = Fleet::new(trace, offered);
    for (index, job) in trace.jobs.iter().enumerate() {
        if !offered::possible(job, offered) {
            continue;
        }
        let mut placed = Vec::new();
        for part in offered::parts(job) {
            if let Some(kind) = offered::cheapest(&part, &job.constraints, offered) {
                let node = fleet.open(kind, job.submit, offered[kind].boot);
                fleet.take(&(node, part.clone()));
                placed.push((node, part));
            }
        }
        let ready = |on: &Placed| fleet.node(on.0).ready;
        let start = placed.iter().map(ready).max().unwrap_or(job.submit);
        let end = Millis(start.0.saturating_add(job.duration.0));
        hold(&mut fleet, &placed, job.submit, start);
        fleet.history.jobs[index].waited_for_boot = start > job.submit;
        fleet.start(index, start, &placed);
        fleet.end(index, end, &placed);
        for (node, _) in &placed {
            fleet.close(*node, end);
        }
    }
    fleet.history
}

/// Nodes that are up and run nothing while the job waits for its others.
fn hold(fleet: &mut Fleet<'_>, placed: &[Placed], now: Millis, start: Millis) {
    for (node, _) in placed {
        let at = fleet.node(*node);
        let from = at.ready.max(now);
        if from < start && at.parts == 1 {
            fleet.history.nodes[*node as usize]
                .gang_held
                .push((from, start));
        }
    }
}

/// What ends and starts until a moment, ends first.
fn pass(
    fleet: &mut Fleet<'_>,
    events: &mut Events,
    placed: &[Vec<Placed>],
    trace: &Trace,
    until: Millis,
) {
    while let Some(Reverse((at, event, job))) = events.peek().copied() {
        if at > until {
            break;
        }
        events.pop();
        // A job without run time ends the moment it starts, and must have started.
        let unstarted = fleet.history.jobs[job].started.is_none();
        let starts = event == Event::Start || trace.jobs[job].duration == Millis(0);
        if starts && unstarted {
            fleet.start(job, at, &placed[job]);
        }
        if event == Event::End {
            fleet.end(job, at, &placed[job]);
        }
    }
}

/// Ends what was without work for the idle time.
fn expire(fleet: &mut Fleet<'_>, idle: Millis, now: Millis) {
    let over: Vec<(u32, Millis)> = fleet
        .live
        .iter()
        .map(|node| (*node, fleet.node(*node)))
        .filter(|(_, at)| at.parts == 0)
        .map(|(node, at)| (node, Millis(at.idle_since.0.saturating_add(idle.0))))
        .filter(|(_, end)| *end <= now)
        .collect();
    for (node, end) in over {
        fleet.close(node, end);
    }
}

/// Key of a choice: lower is better.
type Key = [u64; 5];

fn choose(policy: &Greedy, fleet: &Fleet<'_>, job: &Job, part: &Part) -> Option<u32> {
    let fits = |node: &u32| {
        let kept_off =
            policy.apart && part.need.gpus == 0 && fleet.kind(*node).allocatable.gpus > 0;
        !kept_off && fleet.takes(*node, part, &job.constraints)
    };
    fleet
        .live
        .iter()
        .copied()
        .filter(fits)
        .min_by_key(|node| key(policy, fleet, job, part, *node))
}

fn key(policy: &Greedy, fleet: &Fleet<'_>, job: &Job, part: &Part, node: u32) -> Key {
    let at = fleet.node(node);
    let left = at.free.minus(&part.need);
    let (gpus, cpu, memory) = (u64::from(left.gpus), left.cpu.0, left.memory.0);
    // Its start may still wait for a boot; the greedy that knows the ends is compared without boots.
    let end = job.submit.0.saturating_add(job.duration.0);
    let delays = end.saturating_sub(at.last_end.0);
    let outlives = at.last_end.0.saturating_sub(end);
    match policy.choose {
        Choose::First => [0; 5],
        Choose::Best => [0, 0, gpus, cpu, memory],
        Choose::BestCpu => [0, 0, cpu, memory, gpus],
        Choose::KnownEnds => [delays, outlives, 0, 0, 0],
        Choose::KnownEndsBest => [delays, 0, gpus, cpu, memory],
    }
}

fn open(policy: &Greedy, fleet: &mut Fleet<'_>, job: &Job, part: &Part) -> Option<u32> {
    let offered = fleet.offered;
    let preferred = policy.open.as_ref().and_then(|name| {
        offered.iter().position(|kind| {
            part.need.gpus > 0 && kind.name == *name && kind.holds(part, &job.constraints)
        })
    });
    let kind = preferred.or_else(|| offered::cheapest(part, &job.constraints, offered))?;
    Some(fleet.open(kind, job.submit, offered[kind].boot))
}
