//! The jobs of a simulation: which wait, which run where, when they end, what a kill costs them.
//!
//! A gang starts only whole (an elastic one with its minimum), holds its nodes while it runs and ends on time; a killed
//! job waits again and goes on from its last checkpoint (`runs`).

mod runs;

use super::START;
use crate::sim::trace::{Job, Trace};
use drover_core::model::{Class, Constraints, Gang, Millis, Resources, Source, UnixMs};
use drover_core::rules::waves;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the source that the simulated scheduler is.
pub(in crate::sim) const SOURCE: &str = "trace";

/// Where in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Phase {
    Future,
    Waiting,
    Running,
    Done,
}

/// What is alike in everything that decides. In the order in which the classes are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sim) struct Key {
    pub(in crate::sim) priority: Reverse<i32>,
    /// A gang is a class of its own.
    pub(in crate::sim) gang: Option<usize>,
    pub(in crate::sim) unit: Resources,
    pub(in crate::sim) whole_node: bool,
    pub(in crate::sim) constraints: Constraints,
    pub(in crate::sim) team: String,
    pub(in crate::sim) run_time: Option<Millis>,
}

/// How a job stands.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Standing {
    pub(in crate::sim) phase: Phase,
    /// Waits since.
    pub(in crate::sim) since: UnixMs,
    /// Of its duration, what is done and safe.
    pub(in crate::sim) safe: Millis,
    /// Starts so far.
    pub(in crate::sim) starts: u32,
    started: UnixMs,
    running_units: u32,
    /// Nodes it runs on.
    pub(in crate::sim) on: Vec<usize>,
    /// Its class, and that of its rest, while it waits.
    pub(in crate::sim) keys: Vec<Key>,
}

impl Standing {
    /// Of its duration, what it has done since its start; fewer units do less.
    fn worked(&self, job: &Job, now: UnixMs) -> Millis {
        let ran = now.since(self.started).0;
        let units = u64::from(job.units.max(1));
        Millis(ran.saturating_mul(u64::from(self.running_units)) / units)
    }
}

/// A place for units of a job: node, units, and whether it is for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) struct Place {
    pub(in crate::sim) node: usize,
    pub(in crate::sim) units: u32,
    pub(in crate::sim) rest: bool,
}

/// All of them.
pub(in crate::sim) struct Jobs {
    pub(in crate::sim) all: Vec<Job>,
    pub(in crate::sim) standing: Vec<Standing>,
    /// Waiting jobs by class, each by (submission, position).
    pub(in crate::sim) waiting: BTreeMap<Key, BTreeSet<(Millis, usize)>>,
    pub(in crate::sim) running: BTreeSet<usize>,
    pub(in crate::sim) done: usize,
    pub(in crate::sim) submitted: usize,
    /// Units that have left the queue because they started.
    pub(in crate::sim) left: u64,
    stated: bool,
}

impl Jobs {
    pub(super) fn new(trace: &Trace, stated: bool) -> Self {
        let standing = Standing {
            phase: Phase::Future,
            since: START,
            safe: Millis::ZERO,
            starts: 0,
            started: START,
            running_units: 0,
            on: Vec::new(),
            keys: Vec::new(),
        };
        Self {
            standing: vec![standing; trace.jobs.len()],
            all: trace.jobs.clone(),
            waiting: BTreeMap::new(),
            running: BTreeSet::new(),
            done: 0,
            submitted: 0,
            left: 0,
            stated,
        }
    }

    /// Jobs that wait.
    pub(in crate::sim) fn pending(&self) -> usize {
        self.submitted - self.running.len() - self.done
    }

    pub(super) fn submit(&mut self, at: usize, now: UnixMs) {
        self.submitted += 1;
        self.wait(at, now);
    }

    /// A job begins to wait.
    fn wait(&mut self, at: usize, now: UnixMs) {
        let keys = self.keys(at);
        let job = &self.all[at];
        for key in &keys {
            let members = self.waiting.entry(key.clone()).or_default();
            members.insert((job.submit, at));
        }
        let standing = &mut self.standing[at];
        standing.phase = Phase::Waiting;
        standing.since = now;
        standing.keys = keys;
    }

    fn keys(&self, at: usize) -> Vec<Key> {
        let job = &self.all[at];
        let left = Millis(job.duration.0.saturating_sub(self.standing[at].safe.0));
        let main = Key {
            priority: Reverse(job.priority),
            gang: (job.units > 1).then_some(at),
            unit: job.unit.clone(),
            whole_node: job.whole_node,
            constraints: job.constraints.clone(),
            team: job.team.clone(),
            run_time: self.stated.then_some(left),
        };
        let rest = job.rest.as_ref().map(|rest| Key {
            gang: None,
            unit: rest.clone(),
            whole_node: false,
            ..main.clone()
        });
        std::iter::once(main).chain(rest).collect()
    }

    /// Units of a class that a job has.
    fn units_of(&self, at: usize, key: &Key) -> u32 {
        let job = &self.all[at];
        let keys = &self.standing[at].keys;
        let main = keys.first() == Some(key);
        let rest = keys.get(1) == Some(key);
        u32::from(main) * job.units + u32::from(rest)
    }

    /// What waits, as classes, wave by wave, in the order in which control keeps them.
    pub(in crate::sim) fn classes(
        &self,
        hold: Millis,
        now: UnixMs,
    ) -> Vec<(Key, Class, Vec<String>)> {
        let apart = self.waiting.iter().flat_map(|(key, members)| {
            let members: Vec<(Millis, usize)> = members.iter().copied().collect();
            let wave = |(at, _): &(Millis, usize)| waves::wave(START.after(*at), now);
            let apart = members.chunk_by(|a, b| wave(a) == wave(b));
            let apart: Vec<_> = apart.map(|all| (key, all.to_vec())).collect();
            apart
        });
        let mut found: Vec<(Key, Class, Vec<String>)> = apart
            .filter_map(|(key, members)| {
                let (first, _) = members.first()?;
                let count = members.iter().map(|(_, at)| self.units_of(*at, key)).sum();
                let names = members.iter().take(10);
                let names = names.map(|(_, at)| self.all[*at].id.clone()).collect();
                let gang = key.gang.map(|at| {
                    let job = &self.all[at];
                    Gang {
                        min: job.min_units,
                        assigned: 0,
                        locality: job.locality,
                        hold,
                        holding_since: None,
                    }
                });
                let class = Class {
                    source: Source::Scheduler(SOURCE.to_owned()),
                    unit: key.unit.clone(),
                    whole_node: key.whole_node,
                    count,
                    constraints: key.constraints.clone(),
                    gang,
                    priority: key.priority.0,
                    submitted: START.after(*first),
                    labels: BTreeMap::new(),
                    namespace: String::new(),
                    team: key.team.clone(),
                    run_time: key.run_time,
                    max_wait: None,
                    deadline: None,
                };
                Some((key.clone(), class, names))
            })
            .collect();
        found.sort_by_key(|(key, class, _)| (key.priority, class.submitted));
        found
    }

    /// Waiting jobs in the order of the queue: priority, submission, position.
    pub(in crate::sim) fn queue(&self) -> Vec<usize> {
        let jobs: BTreeSet<usize> = self.waiting.values().flatten().map(|(_, at)| *at).collect();
        let mut jobs: Vec<usize> = jobs.into_iter().collect();
        jobs.sort_by_key(|at| (Reverse(self.all[*at].priority), self.all[*at].submit, *at));
        jobs
    }
}
