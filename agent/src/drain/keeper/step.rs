//! One step of the machine and what comes of it: on disk, shown, told, and the executors put to work.
//!
//! A part of the keeper's task. **Invariant:** nothing is told or acted on that is not on disk.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::BootMs;
use crate::drain::executor::Job;
use crate::drain::machine::{self, Action, Did, Event};
use crate::drain::status::{Blocker, BlockerKind};
use crate::drain::{View, carry_out};
use crate::session::convert::Actual;

use super::{FILE, Keeper, Stored};

/// An action under way.
#[derive(Debug)]
pub(super) struct Busy {
    did: Did,
    task: JoinHandle<Result<(), Blocker>>,
    cancel: watch::Sender<bool>,
}

impl Keeper {
    /// One step of the machine: on disk first, then told, then acted on.
    pub(super) fn happened(&mut self, event: Event) {
        let before = self.stored.machine.clone();
        let (machine, action) = machine::step(before, event, BootMs::now(), self.settings);
        let next = Stored {
            machine,
            ..self.stored.clone()
        };
        if !self.keep(next) {
            return;
        }
        if let Some(busy) = &self.busy
            && self.stored.machine.unwanted()
        {
            busy.cancel.send_replace(true);
        }
        self.tell(false);
        if let Some(action) = action {
            self.begin(action);
        }
    }

    /// Puts a state in force once it is on disk. False: it is not, and nothing was changed.
    pub(super) fn keep(&mut self, next: Stored) -> bool {
        let bytes = match serde_json::to_vec(&next) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::error!(%error, "drain state cannot be written");
                return false;
            }
        };
        if bytes != self.on_disk {
            if let Err(error) = self.state.write(FILE, &bytes) {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "drain state not written: nothing is done");
                return false;
            }
            self.on_disk = bytes;
        }
        self.stored = next;
        self.show();
        true
    }

    pub(super) fn show(&mut self) {
        let view = View {
            highest_epoch: self.stored.book.highest_epoch,
            in_force: self.stored.book.in_force.clone(),
            actual: Actual {
                cordoned_by_us: self.stored.machine.is_cordoned(),
                released: self.stored.machine.is_released(),
            },
            released_at_unix_ms: self.released_at_unix_ms,
        };
        self.view.send_if_modified(|shown| {
            let new = *shown != view;
            *shown = view;
            new
        });
    }

    /// Sends the state of the order in force if it changed, or `anyway`.
    pub(super) fn tell(&mut self, anyway: bool) {
        if self.stored.book.in_force.is_none() {
            return;
        }
        let status = self.stored.machine.status();
        if anyway || self.told.as_ref() != Some(&status) {
            self.told = Some(status.clone());
            self.mail.status(status);
        }
    }

    fn begin(&mut self, action: Action) {
        let (cancel, cancelled) = watch::channel(false);
        let job = self.job(cancelled);
        let executors = self.executors.clone();
        let did = action.did();
        tracing::info!(step = %action, drain = job.drain_id, "drain step");
        self.busy = Some(Busy {
            did,
            task: tokio::spawn(carry_out(executors, action, job)),
            cancel,
        });
    }

    fn job(&self, cancel: watch::Receiver<bool>) -> Job {
        let spec = self.stored.machine.spec();
        Job {
            drain_id: spec.map(|spec| spec.id.clone()).unwrap_or_default(),
            reason: spec.map(|spec| spec.reason.clone()).unwrap_or_default(),
            deadline_unix_ms: spec.and_then(|spec| spec.deadline_unix_ms),
            cancel,
        }
    }
}

/// Waits for the action under way; for ever when there is none.
pub(super) async fn ended(busy: &mut Option<Busy>) -> (Did, Result<(), Blocker>) {
    let Some(busy) = busy else {
        return std::future::pending().await;
    };
    let result = (&mut busy.task).await.unwrap_or_else(|error| {
        Err(Blocker {
            kind: BlockerKind::Executor,
            subject: "agent".into(),
            message: format!("the step broke off: {error}"),
        })
    });
    (busy.did, result)
}
