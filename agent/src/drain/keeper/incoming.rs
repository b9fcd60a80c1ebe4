//! What comes in, made an event of the machine: word of the coordinator and its orders, what is seen of the node,
//! root's release mark.
//!
//! A part of the keeper's task, called by its loop. `order` judges an order, the machine says what is next: not here.

use crate::clock::{self, BootMs};
use crate::drain::deadline::Anchor;
use crate::drain::machine::{Event, Look};
use crate::drain::status::Status;
use crate::drain::{ToDrain, processes};
use crate::observation::Observation;
use crate::order::{Desired, Order, OrderId, Refusal, Verdict};
use crate::release;

use super::Keeper;

/// A coordinator that was not heard for so long will not order anything in time: with a session open (it speaks every
/// 10 s), and without one.
const ALONE_OPEN_MS: u64 = 25_000;
/// See [`ALONE_OPEN_MS`].
const ALONE_CLOSED_MS: u64 = 5_000;

impl Keeper {
    pub(super) fn take(&mut self, message: ToDrain) {
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
    pub(super) fn begin_alone(&mut self) {
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
    pub(super) fn repeat_order(&mut self) {
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

    pub(super) fn look(&mut self, seen: &Observation) {
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

    pub(super) fn look_for_release(&mut self) {
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
}
