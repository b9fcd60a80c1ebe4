//! What a node should do next so that it becomes what its order asks. Pure.
//!
//! Called by `drain`, which carries out the one action that this asks for and tells how it went. The state is
//! written to disk before an action is begun and everything here is by level, not by edge: after a restart the
//! same state asks for the same action again.

mod apply;
mod event;
mod next;
mod run;

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::clock::BootMs;
use crate::order::{DrainSpec, OrderId};

pub use event::{Action, Did, Event, How, Look, Settings, Work};
use run::{End, Once, Run};

/// Everything the node's drain side knows. Starts empty on a new node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    order: OrderId,
    desired: Want,
    run: Option<Run>,
    /// Ours may stand on the host.
    touched: bool,
    /// The executors took the cordon.
    cordoned: bool,
    /// root said so; orders wait.
    released: bool,
    cordon: Once,
    undo: Once,
    emergency: bool,
    emergency_by: Option<BootMs>,
    #[serde(skip)]
    word: Option<BootMs>,
    #[serde(skip)]
    look: Option<Look>,
    /// Number of the last look when the cordon came to stand.
    #[serde(skip)]
    cordoned_at_look: u64,
    #[serde(skip)]
    busy: Option<Did>,
    /// The undo under way leaves the cordon.
    #[serde(skip)]
    undo_keeps: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Want {
    #[default]
    Active,
    Cordoned,
    Draining,
}

/// One step: what follows from an event, and the action that is now to be begun, if none is under way.
#[must_use]
pub fn step(
    mut state: State,
    event: Event,
    now: BootMs,
    settings: Settings,
) -> (State, Option<Action>) {
    state.apply(event, now);
    state.advance(now, settings);
    let action = match state.busy {
        Some(_) => None,
        None => state.next(now, settings),
    };
    if let Some(action) = &action {
        state.begin(action, now);
    }
    (state, action)
}

impl State {
    /// The executors hold the node cordoned for us.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.cordoned
    }

    /// root released the host.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.released
    }

    /// Something of ours may stand on the host.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// The action under way is no longer wanted: it should leave off.
    #[must_use]
    pub fn unwanted(&self) -> bool {
        let for_run = matches!(
            self.busy,
            Some(Did::Checkpoint | Did::Announce | Did::Evict)
        );
        let for_cordon = self.busy == Some(Did::Cordon);
        (for_run && self.run.as_ref().is_none_or(Run::is_over))
            || (for_cordon && !self.wants_cordon())
    }

    /// The drain under way or over, with its reason and deadline.
    #[must_use]
    pub fn spec(&self) -> Option<&DrainSpec> {
        self.run.as_ref().map(|run| &run.spec)
    }

    /// A restart in a new boot: marks of processes of before mean nothing, and boot time began anew.
    pub fn new_boot(&mut self, now: BootMs) {
        self.released = false;
        self.emergency = false;
        self.emergency_by = None;
        // Asserted again: what a hook did may not outlive a boot.
        self.cordoned = false;
        self.cordon = Once::Open;
        if matches!(self.undo, Once::Failed { .. }) {
            self.undo = Once::Open;
        }
        if let Some(run) = &mut self.run
            && run.local
        {
            // What the cloud meant was the boot before; the order in force is given again.
            self.desired = if run.cordoned_before {
                Want::Cordoned
            } else {
                Want::Active
            };
            run.end(End::OtherBoot);
        }
        if let Some(run) = &mut self.run {
            run.asked.clear();
            for once in [&mut run.checkpoint, &mut run.announce] {
                if let Once::Failed { again, .. } = once {
                    *again = now;
                }
            }
        }
    }

    /// How far the order in force is.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = Status {
            order: self.order,
            ..Status::default()
        };
        let Some(run) = &self.run else {
            return status;
        };
        status.drain_id.clone_from(&run.spec.id);
        status.phase = Some(run.shown());
        status.blockers.clone_from(&run.blockers);
        status.workloads_at_start = run.at_start.unwrap_or(0);
        status.workloads_now = run.now;
        status.reason.clone_from(&run.reason);
        status.ended = run
            .ended
            .iter()
            .map(|(id, how)| format!("{id} {}", how.as_str()))
            .collect();
        status
    }

    fn wants_cordon(&self) -> bool {
        if self.released {
            return false;
        }
        match (self.desired, &self.run) {
            (Want::Active, _) => false,
            (Want::Cordoned, _) => true,
            (Want::Draining, Some(run)) => !run.is_over() || run.cordoned_before,
            (Want::Draining, None) => false,
        }
    }
}

#[cfg(test)]
mod tests;
