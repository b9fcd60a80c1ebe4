//! The time of a run: the next moment at which anything can change, and when it is over. A part of `engine`.

use super::{Engine, unstarted};
use crate::sim::history::History;
use crate::sim::stage::START;
use drover_core::model::{Millis, UnixMs};

/// A run in which nothing changes for so long, and that has no running job and none to come, is over.
pub const STILL: Millis = Millis::minutes(24 * 60);

impl Engine {
    /// The next moment at which anything can change.
    pub(super) fn next(&self) -> UnixMs {
        let stage = self.stage.lock();
        // Control's moments are of its wall clock.
        let ahead = stage.mishaps.ahead;
        let due = self.control.next_due(stage.wall());
        let due = due.map(|at| UnixMs(at.0.saturating_sub(ahead.0)));
        let longest = stage.now.after(self.setup.simulate.interval);
        [stage.next(), due, self.mishaps.next(), Some(longest)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(longest)
            .max(UnixMs(stage.now.0 + 1))
    }

    pub(super) fn pass(&mut self, to: UnixMs) {
        let mut stage = self.stage.lock();
        self.clock.advance(to.since(stage.now));
        stage.now = to;
    }

    /// All is done, or nothing will change any more.
    pub(super) fn is_over(&mut self) -> bool {
        let stage = self.stage.lock();
        let jobs = &stage.jobs;
        if jobs.submitted < jobs.all.len() || !jobs.running.is_empty() {
            return false;
        }
        let alive = stage.world.running() > 0;
        if !self.mishaps.is_over() {
            return false;
        }
        if jobs.pending() == 0 && !alive {
            return true;
        }
        let idle = stage.pools.values().map(|pool| pool.idle_after).max();
        let patience = STILL.plus(idle.unwrap_or_default());
        stage.now.since(self.changed) >= patience
    }

    pub(super) fn finish(self) -> History {
        let mut planning = self.control.planning();
        planning.plans += self.planning.plans;
        planning.took += self.planning.took;
        let view = self.commands.view();
        let mut stage = self.stage.lock();
        let waits = stage.jobs.pending() > 0;
        stage.end_held(|_| true);
        // When nothing came any more, the run was over with the last change; not for a job that waits still.
        let over = self.stop.is_none_or(|stop| stage.now < stop) && !waits;
        let end = if over { self.changed } else { stage.now };
        if waits {
            stage.history.waited_for = unstarted::causes(&view);
        }
        stage.history.end = end.since(START);
        stage.history.plans = planning.plans;
        stage.history.plan_seconds = planning.took.as_secs_f64();
        std::mem::take(&mut stage.history)
    }
}
