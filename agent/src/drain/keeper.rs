//! The task that keeps the order in force, the drain machine's state and the executors together.
//!
//! Spawned by `run`; the session talks to it through [`ToDrain`]. Decides nothing itself.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::clock::{self, BootMs};
use crate::observation::Observation;
use crate::order::{Book, Desired, Order, OrderId, Refusal, Verdict};
use crate::release;
use crate::session::convert::Actual;
use crate::session::mail::Mail;
use crate::state::{StateDir, StateError};

use super::deadline::Anchor;
use super::executor::{Executor, Job};
use super::machine::{self, Action, Did, Event, Look, Settings, State};
use super::processes;
use super::status::{Blocker, BlockerKind, Status};
use super::{LocalDrain, ToDrain, View, carry_out};

const FILE: &str = "drain.json";
/// Between looks at the clock and at root's release mark.
const TICK: Duration = Duration::from_millis(500);
/// A coordinator that was not heard for so long will not order anything in time: with a session open (it speaks every
/// 10 s), and without one.
const ALONE_OPEN_MS: u64 = 25_000;
/// See [`ALONE_OPEN_MS`].
const ALONE_CLOSED_MS: u64 = 5_000;

/// On disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Stored {
    boot_id: String,
    book: Book,
    anchor: Anchor,
    machine: State,
}

/// An action under way.
#[derive(Debug)]
struct Busy {
    did: Did,
    task: JoinHandle<Result<(), Blocker>>,
    cancel: watch::Sender<bool>,
}

/// The task.
#[derive(Debug)]
pub struct Keeper {
    state: StateDir,
    stored: Stored,
    on_disk: Vec<u8>,
    executors: Vec<Arc<dyn Executor>>,
    settings: Settings,
    mail: Mail,
    view: watch::Sender<View>,
    looks: u64,
    told: Option<Status>,
    busy: Option<Busy>,
    /// The release mark seen last.
    released_at_unix_ms: Option<u64>,
    /// A drain that is begun without an order when the coordinator is not heard, and since when it waits.
    local: Option<(LocalDrain, BootMs)>,
    /// When the coordinator was heard last, if its session is open.
    heard: Option<BootMs>,
}

impl Keeper {
    /// Loads order and drain of before; a boot in between is taken into account.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn load(
        state: StateDir,
        executors: Vec<Arc<dyn Executor>>,
        word_limit: Duration,
        mail: Mail,
    ) -> Result<(Self, watch::Receiver<View>), StateError> {
        let mut stored: Stored = state.load(FILE)?.unwrap_or_default();
        let boot_id = clock::boot_id();
        if stored.boot_id != boot_id {
            stored.anchor = stored.anchor.rebooted(clock::unix_ms(), BootMs::now());
            stored.machine.new_boot(BootMs::now());
            stored.boot_id = boot_id;
        }
        let (view, seen) = watch::channel(View::default());
        let mut keeper = Self {
            state,
            stored,
            on_disk: Vec::new(),
            executors,
            settings: Settings {
                word_limit_ms: u64::try_from(word_limit.as_millis()).unwrap_or(60_000),
            },
            mail,
            view,
            looks: 0,
            told: None,
            busy: None,
            released_at_unix_ms: None,
            local: None,
            heard: None,
        };
        keeper.show();
        Ok((keeper, seen))
    }

    /// Runs until the session side is gone.
    pub async fn run(
        mut self,
        mut inbox: mpsc::Receiver<ToDrain>,
        mut observations: watch::Receiver<Arc<Observation>>,
    ) {
        self.look_for_release();
        self.repeat_order();
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.take(message),
                    None => return,
                },
                changed = observations.changed() => match changed {
                    Ok(()) => {
                        let seen = Arc::clone(&observations.borrow_and_update());
                        self.look(&seen);
                    }
                    Err(_) => return,
                },
                (did, result) = ended(&mut self.busy) => {
                    self.busy = None;
                    if let Err(blocker) = &result {
                        tracing::warn!(step = did.as_str(), problem = blocker.message, "drain step failed");
                    }
                    self.happened(Event::Did(did, result));
                }
                _ = tick.tick() => {
                    self.look_for_release();
                    self.begin_alone();
                    self.happened(Event::Tick);
                }
            }
        }
    }

    fn take(&mut self, message: ToDrain) {
        match &message {
            ToDrain::Closed => self.heard = None,
            ToDrain::Emergency { .. } => {}
            _ => self.heard = Some(BootMs::now()),
        }
        match message {
            ToDrain::Epoch(epoch) => {
                if self.stored.book.highest_epoch > epoch {
                    let seen = self.stored.book.highest_epoch;
                    tracing::warn!(
                        epoch,
                        seen,
                        "the coordinator's epoch is of before: its orders are refused"
                    );
                }
                let mut next = self.stored.clone();
                if next.book.saw_epoch(epoch) {
                    self.keep(next);
                }
                self.tell(true);
            }
            ToDrain::Order {
                order,
                coordinator_unix_ms,
                sent,
            } => self.ordered(order, coordinator_unix_ms, sent),
            ToDrain::Invalid {
                id,
                drain_id,
                reason,
            } => self.refuse(id, drain_id, Refusal::Invalid, reason),
            ToDrain::Word { id, sent } => {
                if self.stored.book.confirms(id) {
                    self.happened(Event::Word(sent));
                }
            }
            ToDrain::Closed => {}
            ToDrain::Emergency { by, local } => {
                self.happened(Event::Emergency(by));
                self.local = local.map(|local| (local, BootMs::now()));
                self.begin_alone();
            }
        }
    }

    /// Begins the drain that waits for an order, once none can be expected in time.
    fn begin_alone(&mut self) {
        let Some((local, since)) = &self.local else {
            return;
        };
        let now = BootMs::now();
        let alone = match self.heard {
            Some(heard) => now.since(heard) >= ALONE_OPEN_MS,
            None => now.since(*since) >= ALONE_CLOSED_MS,
        };
        if alone || local.at_once {
            tracing::warn!(reason = local.spec.reason, alone, "drains without an order");
            let event = Event::Local {
                spec: local.spec.clone(),
                deadline: local.deadline,
            };
            self.local = None;
            self.happened(event);
        }
    }

    fn ordered(&mut self, order: Order, coordinator_unix_ms: u64, sent: BootMs) {
        let drain_id = match &order.desired {
            Desired::Draining(spec) => spec.id.clone(),
            Desired::Active | Desired::Cordoned => String::new(),
        };
        match self.stored.book.judge(&order) {
            Verdict::Refuse(refusal) => {
                let held = self.stored.book.in_force.as_ref().map(|held| held.id);
                let reason = format!(
                    "order {} is refused: highest epoch seen {}, order in force {}",
                    order.id,
                    self.stored.book.highest_epoch,
                    held.map_or("none".to_owned(), |id| id.to_string())
                );
                self.refuse(order.id, drain_id, refusal, reason);
            }
            Verdict::Same => {
                self.happened(Event::Word(sent));
                self.tell(true);
            }
            Verdict::Take => {
                tracing::info!(order = %order.id, desired = %order.desired, "order taken");
                let mut next = self.stored.clone();
                next.anchor = Anchor::new(coordinator_unix_ms, clock::unix_ms(), sent);
                next.book.take(order);
                if !self.keep(next) {
                    return;
                }
                self.repeat_order();
                self.happened(Event::Word(sent));
                self.tell(true);
            }
        }
    }

    fn refuse(&mut self, id: OrderId, drain_id: String, refusal: Refusal, reason: String) {
        tracing::warn!(order = %id, refusal = refusal.as_str(), reason, "order refused");
        self.mail
            .status(Status::refused(id, drain_id, refusal, reason));
    }

    /// Gives the machine the order in force: after it was taken, after a start, after `resume`.
    fn repeat_order(&mut self) {
        let Some(order) = self.stored.book.in_force.clone() else {
            return;
        };
        let deadline = match &order.desired {
            Desired::Draining(spec) => spec
                .deadline_unix_ms
                .map(|unix_ms| self.stored.anchor.on_boot_clock(unix_ms)),
            Desired::Active | Desired::Cordoned => None,
        };
        self.happened(Event::Ordered {
            id: order.id,
            desired: order.desired,
            deadline,
        });
    }

    fn look(&mut self, seen: &Observation) {
        self.looks += 1;
        let mut work: Vec<_> = self
            .executors
            .iter()
            .flat_map(|executor| executor.workloads(seen))
            .collect();
        if !self
            .executors
            .iter()
            .any(|executor| executor.name() == "processes")
        {
            // What nobody may end still is work.
            let why = "the processes executor is not configured";
            work.extend(processes::workloads(seen, Some(why)));
        }
        let mut unreadable: Vec<(String, String)> = seen
            .unreadable
            .iter()
            .map(|(witness, why)| (witness.clone(), why.clone()))
            .collect();
        if seen.witnesses.is_empty() && unreadable.is_empty() {
            unreadable.push(("witnesses".into(), "none has answered yet".into()));
        }
        self.happened(Event::Looked(Look {
            number: self.looks,
            work,
            unreadable,
        }));
    }

    fn look_for_release(&mut self) {
        let released_at = match release::released_at(&self.state) {
            Ok(released_at) => released_at,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "release mark unreadable"
                );
                return;
            }
        };
        let released = released_at.is_some();
        let again = self.released_at_unix_ms != released_at;
        self.released_at_unix_ms = released_at;
        if released == self.stored.machine.is_released() {
            if again {
                self.show();
            }
            return;
        }
        tracing::warn!(released, "root changed the release mark");
        self.happened(Event::Released(released));
        if !released {
            self.repeat_order();
        }
    }

    /// One step of the machine: on disk first, then told, then acted on.
    fn happened(&mut self, event: Event) {
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
    fn keep(&mut self, next: Stored) -> bool {
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

    fn show(&mut self) {
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
    fn tell(&mut self, anyway: bool) {
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
async fn ended(busy: &mut Option<Busy>) -> (Did, Result<(), Blocker>) {
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
