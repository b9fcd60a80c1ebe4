//! The jobs of a simulation: which wait, which run where, when they end, what a kill costs them.
//!
//! A gang starts only whole (an elastic one with its minimum), holds its nodes while it runs and ends on time; a killed
//! job waits again and goes on from its last checkpoint.

use super::{Event, START, Stage};
use crate::sim::trace::{Job, Trace};
use drover_core::model::{Class, Constraints, Gang, Millis, Resources, Source, UnixMs};
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

    /// What waits, as classes, in the order in which control keeps them.
    pub(in crate::sim) fn classes(&self, hold: Millis) -> Vec<(Key, Class, Vec<String>)> {
        let mut found: Vec<(Key, Class, Vec<String>)> = self
            .waiting
            .iter()
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

impl Stage {
    /// Starts a job on these places, which have room. An elastic gang that starts with fewer units runs longer in
    /// proportion.
    pub(in crate::sim) fn start_job(&mut self, at: usize, places: &[Place]) {
        let now = self.now;
        let job = self.jobs.all[at].clone();
        let units: u32 = places.iter().filter(|p| !p.rest).map(|p| p.units).sum();
        let standing = &mut self.jobs.standing[at];
        let left = job.duration.0.saturating_sub(standing.safe.0);
        let span = left.saturating_mul(u64::from(job.units)) / u64::from(units.max(1));
        let ends = now.after(Millis(span));
        standing.phase = Phase::Running;
        standing.starts += 1;
        standing.started = now;
        standing.running_units = units.max(1);
        let (keys, waited, starts) = (
            std::mem::take(&mut standing.keys),
            standing.since,
            standing.starts,
        );
        let mut on: BTreeMap<usize, u32> = BTreeMap::new();
        for place in places {
            *on.entry(place.node).or_default() += place.units;
        }
        standing.on = on.keys().copied().collect();
        for key in &keys {
            if let Some(members) = self.jobs.waiting.get_mut(key) {
                members.remove(&(job.submit, at));
                if members.is_empty() {
                    self.jobs.waiting.remove(key);
                }
            }
        }
        self.jobs.running.insert(at);
        self.jobs.left += u64::from(job.units) + u64::from(job.rest.is_some());
        let said = self.stated.then_some(ends);
        let mut booted = false;
        for place in places {
            let unit = if place.rest {
                (job.rest.as_ref().unwrap_or(&job.unit), false)
            } else {
                (&job.unit, job.whole_node)
            };
            let ready = self.history.nodes[place.node].ready;
            booted |= ready.is_some_and(|ready| START.after(ready) > waited);
            self.nodes[place.node].put(at, unit, place.units, &job.team, (now, said, job.movable));
        }
        for node in on.keys() {
            self.log_use(*node);
        }
        let history = &mut self.history.jobs[at];
        history.started = history.started.or(Some(now.since(START)));
        history.on = on
            .into_iter()
            .map(|(node, units)| (u32::try_from(node).unwrap_or(u32::MAX), units))
            .collect();
        history.waited_for_boot |= booted;
        self.queue.insert((
            ends,
            Event::JobEnd {
                job: at,
                start: starts,
            },
        ));
        self.version += 1;
    }

    /// A job's work is done.
    pub(super) fn end_job(&mut self, at: usize, start: u32) {
        let standing = &mut self.jobs.standing[at];
        if standing.phase != Phase::Running || standing.starts != start {
            return;
        }
        standing.phase = Phase::Done;
        self.jobs.running.remove(&at);
        self.jobs.done += 1;
        self.history.jobs[at].ended = Some(self.now.since(START));
        self.clear(at);
    }

    /// A job loses its nodes: it waits again, and goes on from its last checkpoint.
    pub(super) fn kill_job(&mut self, at: usize, why: &str) {
        let now = self.now;
        let standing = &mut self.jobs.standing[at];
        if standing.phase != Phase::Running {
            return;
        }
        let job = &self.jobs.all[at];
        if let Some(every) = job.checkpoint {
            let kept = standing.worked(job, now).0 / every.0.max(1) * every.0.max(1);
            standing.safe = Millis((standing.safe.0 + kept).min(job.duration.0));
        }
        let what = format!("job {} was killed: {why}", job.id);
        self.history.jobs[at].kills += 1;
        self.stop_job(at, what);
    }

    /// A job is told to move: it writes a checkpoint, gives its nodes up and waits again. One that never said that it can
    /// is killed, and that is a violation.
    pub(in crate::sim) fn move_job(&mut self, at: usize) {
        let now = self.now;
        let standing = &mut self.jobs.standing[at];
        if standing.phase != Phase::Running {
            return;
        }
        let job = &self.jobs.all[at];
        if !job.movable {
            let what = format!("job {} is made to move and never said that it can", job.id);
            self.violated("I1 no_job_killed", what);
            self.kill_job(at, "its node was emptied");
            return;
        }
        let kept = standing.worked(job, now).0;
        standing.safe = Millis((standing.safe.0 + kept).min(job.duration.0));
        let what = format!("job {} moves", job.id);
        self.history.jobs[at].moves += 1;
        self.stop_job(at, what);
    }

    /// It waits again.
    fn stop_job(&mut self, at: usize, what: String) {
        self.jobs.running.remove(&at);
        self.clear(at);
        self.jobs.wait(at, self.now);
        self.note(what);
    }

    /// Takes a job off its nodes.
    fn clear(&mut self, at: usize) {
        let on = std::mem::take(&mut self.jobs.standing[at].on);
        for node in on {
            self.nodes[node].remove(at);
            self.log_use(node);
        }
        self.version += 1;
    }

    /// Writes down what is in use from now on.
    fn log_use(&mut self, at: usize) {
        let now = self.elapsed();
        let used = self.nodes[at].used();
        let log = &mut self.history.nodes[at].used;
        match log.last_mut() {
            Some((since, last)) if *since == now => *last = used,
            _ => log.push((now, used)),
        }
    }
}
