//! A child at work: its start, the rounds it is asked for, what it answers, and whether a call takes too long. A part of
//! the supervisor.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::link::{Heard, Link, how};
use super::{Parent, Pending};
use crate::probe::op::{Mark, Op};
use crate::probe::protocol::{Answer, Reading, Request};
use crate::probe::view::{Status, Trouble};

impl Parent {
    pub(super) fn start(&mut self) {
        self.next_start = None;
        match Link::start(&self.config) {
            Ok(link) => {
                self.link = Some(link);
                self.pending = Some(Pending::new());
            }
            Err(error) => self.ended(Trouble::Broken(format!("cannot start the probe: {error}"))),
        }
    }

    /// Sends the wanted round when the child is free.
    pub(super) async fn ask(&mut self) {
        let ready = self.publish.borrow().ready.is_some();
        let (Some(link), Some(processes), true, None) =
            (&mut self.link, self.wanted, ready, &self.pending)
        else {
            return;
        };
        self.round += 1;
        let request = Request {
            round: self.round,
            processes,
            lost: self
                .round
                .is_multiple_of(u64::from(self.config.lost_every_rounds.max(1))),
        };
        self.wanted = None;
        self.pending = Some(Pending::new());
        if let Err(error) = link.send(&request).await {
            // Its output ends as well, and that is where its end is handled.
            tracing::debug!(%error, "gpu probe does not read");
        }
    }

    pub(super) async fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Answer(Answer::Ready(ready)) => {
                tracing::info!(driver = ready.driver_version, "gpu probe ready");
                self.pending = None;
                self.publish.send_modify(|view| {
                    view.status = Status::Running;
                    view.ready = Some(ready);
                    view.reading = None;
                    if matches!(view.trouble, Some(Trouble::Init(_) | Trouble::Broken(_))) {
                        view.trouble = None;
                    }
                });
                self.ask().await;
            }
            Heard::Answer(Answer::Round(reading)) => {
                self.pending = None;
                self.show(reading);
                self.ask().await;
            }
            Heard::Answer(Answer::Failed(failure)) => {
                if let Some(link) = self.link.take()
                    && let Err(child) = link.bury().await
                {
                    self.dying = Some(child);
                }
                self.ended(Trouble::Init(failure));
            }
            Heard::End => {
                let Some(link) = self.link.take() else { return };
                let (mark, printed, started) = (link.mark(), link.printed(), link.started);
                let mut how = match link.bury().await {
                    Ok(status) => how(status),
                    Err(child) => {
                        self.dying = Some(child);
                        "closed its output".to_owned()
                    }
                };
                if !printed.is_empty() {
                    how = format!("{how}: {printed}");
                }
                self.lived(started);
                self.ended(Trouble::Crashed { op: mark.op, how });
            }
            Heard::Nonsense(error) => {
                if let Some(link) = self.link.take() {
                    self.dying = Some(link.kill());
                }
                self.ended(Trouble::Broken(error));
            }
        }
    }

    fn show(&mut self, reading: Reading) {
        self.publish.send_modify(|view| {
            view.trouble = None;
            view.reading = Some(Arc::new(reading));
        });
    }

    /// Is the call that it makes still the same as long ago?
    pub(super) fn check(&mut self) {
        let Some((link, pending)) = self.link.as_ref().zip(self.pending.as_mut()) else {
            return;
        };
        let now = Instant::now();
        let step = self.config.op_deadline.min(self.config.init_deadline) / 5;
        pending.look_at = now + step.max(Duration::from_millis(10));
        let mark = link.mark();
        if mark.calls != pending.mark.calls {
            pending.mark = mark;
            pending.marked = now;
        }
        // Making the first handle of a GPU initialises it, which takes seconds without persistence mode.
        let slow = ["", Op::Init.as_str(), Op::Handle.as_str()].contains(&pending.mark.op.as_str());
        let limit = if slow {
            self.config.init_deadline
        } else {
            self.config.op_deadline
        };
        let initialising = self.publish.borrow().ready.is_none();
        let round_over = !initialising && now >= pending.since + self.config.round_deadline;
        if now < pending.marked + limit && !round_over {
            return;
        }
        let mark = std::mem::take(&mut pending.mark);
        let started = link.started;
        tracing::warn!(
            op = mark.op,
            gpu = mark.gpu,
            "gpu probe hangs in the driver"
        );
        self.dying = self.link.take().map(Link::kill);
        self.lived(started);
        self.ended(hung(mark));
    }
}

pub(super) fn hung(mark: Mark) -> Trouble {
    Trouble::Hung {
        op: mark.op,
        gpu: mark.gpu,
    }
}
