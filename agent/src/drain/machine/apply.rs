//! What an event changes of what is known. Called by `step` before it asks what is next. Pure.

use super::run::{End, Once, Run, earlier};
use super::{Did, Event, Look, State, Want};
use crate::clock::BootMs;
use crate::drain::status::{Blocker, Phase};
use crate::order::{Desired, DrainSpec, OrderId, Policy};

impl State {
    pub(super) fn apply(&mut self, event: Event, now: BootMs) {
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
