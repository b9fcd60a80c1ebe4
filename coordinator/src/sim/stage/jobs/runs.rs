//! Jobs on the stage: they start on nodes, end on time, are killed or told to move.
//!
//! Called by the stage as time passes and by the placers.

use super::{Phase, Place};
use crate::sim::stage::{Event, START, Stage};
use drover_core::model::Millis;
use std::collections::BTreeMap;

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
    pub(in crate::sim::stage) fn end_job(&mut self, at: usize, start: u32) {
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
    pub(in crate::sim::stage) fn kill_job(&mut self, at: usize, why: &str) {
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
