//! What a node should do next so that it becomes what its order asks. Pure.
//!
//! Called by `drain`, which carries out the one action that this asks for and tells how it went. The state is
//! written to disk before an action is begun and everything here is by level, not by edge: after a restart the
//! same state asks for the same action again.

mod event;
mod next;
mod run;

use serde::{Deserialize, Serialize};

use super::status::{Blocker, Phase, Status};
use crate::clock::BootMs;
use crate::order::{Desired, DrainSpec, OrderId, Policy};

pub use event::{Action, Did, Event, How, Look, Settings, Work};
use run::{End, Once, Run, earlier};

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

    fn apply(&mut self, event: Event, now: BootMs) {
        match event {
            Event::Ordered {
                id,
                desired,
                deadline,
            } => self.ordered(id, desired, deadline),
            Event::Word(at) => self.word = self.word.max(Some(at)),
            Event::Emergency(deadline) => {
                self.emergency = true;
                self.emergency_by = earlier(self.emergency_by, deadline);
                if let Some(run) = &mut self.run {
                    run.deadline = earlier(run.deadline, deadline);
                }
            }
            Event::Local { spec, deadline } => self.begun_alone(spec, deadline),
            Event::Looked(look) => self.looked(look),
            Event::Did(did, result) => self.did(did, result, now),
            Event::Released(released) => {
                self.released = released;
                match &mut self.run {
                    Some(run) if released && !run.is_over() => {
                        run.end(End::Released);
                    }
                    // The order in force is given again, and begins anew.
                    Some(run) if !released && run.is_over() => self.run = None,
                    _ => {}
                }
            }
            Event::Tick => {}
        }
    }

    fn cordoned_before(&self) -> bool {
        match (self.desired, &self.run) {
            (Want::Cordoned, _) => true,
            (Want::Draining, Some(run)) => run.cordoned_before,
            _ => false,
        }
    }

    /// A drain that nobody ordered. One that was ordered and does the same goes on.
    fn begun_alone(&mut self, spec: DrainSpec, deadline: BootMs) {
        self.emergency = true;
        self.emergency_by = earlier(self.emergency_by, Some(deadline));
        if let Some(run) = &mut self.run
            && !run.is_over()
            && run.spec.policy == Policy::Force
        {
            run.deadline = earlier(run.deadline, self.emergency_by);
            return;
        }
        if self.released {
            return;
        }
        let mut run = Run::start(spec, self.emergency_by, self.cordoned_before());
        run.local = true;
        self.run = Some(run);
        self.desired = Want::Draining;
        self.undo = Once::Open;
    }

    fn ordered(&mut self, id: OrderId, desired: Desired, deadline: Option<BootMs>) {
        let local = self
            .run
            .as_ref()
            .is_some_and(|run| run.local && !run.is_over());
        if local && id == self.order {
            // It was in force when the cloud took the node, and is only told again.
            return;
        }
        let cordoned_before = self.cordoned_before();
        self.order = id;
        match desired {
            Desired::Active | Desired::Cordoned => {
                self.desired = if desired == Desired::Active {
                    Want::Active
                } else {
                    Want::Cordoned
                };
                self.emergency = false;
                self.emergency_by = None;
                if let Some(run) = &mut self.run {
                    if run.is_over() {
                        self.run = None;
                    } else {
                        run.end(if run.phase == Phase::Drained {
                            End::TakenBackDone
                        } else {
                            End::TakenBack
                        });
                    }
                }
            }
            Desired::Draining(spec) => {
                self.desired = Want::Draining;
                let deadline = earlier(deadline, self.emergency_by);
                if self.released {
                    self.run = None;
                    return;
                }
                match &mut self.run {
                    // What was begun alone becomes what is ordered: hooks are not run twice.
                    Some(run) if local => {
                        run.local = false;
                        run.deadline = deadline;
                        run.spec = spec;
                    }
                    Some(run) if run.spec.id == spec.id && run.resumes(&spec) => {
                        run.deadline = deadline;
                        run.spec = spec;
                    }
                    _ => {
                        self.run = Some(Run::start(spec, deadline, cordoned_before));
                        self.undo = Once::Open;
                    }
                }
            }
        }
    }

    fn looked(&mut self, look: Look) {
        if let Some(run) = &mut self.run {
            run.looked(&look);
        }
        self.look = Some(look);
    }

    fn did(&mut self, did: Did, result: Result<(), Blocker>, now: BootMs) {
        self.busy = None;
        match did {
            Did::Cordon => {
                self.cordoned = result.is_ok();
                self.cordoned_at_look = self.look.as_ref().map_or(0, |look| look.number);
                self.cordon.take(result, now);
                if let Some(run) = &mut self.run {
                    run.empty_looks = 0;
                }
            }
            Did::Undo => {
                if result.is_ok() && !self.undo_keeps {
                    self.touched = false;
                    self.cordoned = false;
                    self.cordon = Once::Open;
                }
                self.undo.take(result, now);
            }
            Did::Checkpoint => {
                if let Some(run) = &mut self.run {
                    run.checkpoint.take(result, now);
                }
            }
            Did::Announce => {
                if let Some(run) = &mut self.run {
                    run.announce.take(result, now);
                }
            }
            // What is still there in the next look is asked again.
            Did::Evict => {
                if let Some(run) = &mut self.run {
                    run.trouble = result.err();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
