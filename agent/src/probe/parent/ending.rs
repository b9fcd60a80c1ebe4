//! How a child ends and when the next one begins. A part of the supervisor.

use rand::Rng;
use tokio::time::Instant;

use super::link::{Parted, how};
use super::rounds::hung;
use super::{PART, Parent};
use crate::collector::ReleaseError;
use crate::probe::op::Op;
use crate::probe::protocol::InitFailureKind;
use crate::probe::view::{Status, Trouble, View};

impl Parent {
    /// A child that worked for long is not part of a crash loop.
    pub(super) fn lived(&mut self, started: Instant) {
        if started.elapsed() > self.config.retry_max {
            self.wait = self.config.retry_min;
        }
    }

    /// There is no child any more; plans the next.
    pub(super) fn ended(&mut self, trouble: Trouble) {
        let no_gpu = matches!(&trouble, Trouble::Init(failure)
            if matches!(failure.kind, InitFailureKind::NoLibrary | InitFailureKind::NoDriver));
        let wait = if no_gpu && !self.expected {
            self.config.retry_without_gpu
        } else {
            let wait = self.wait;
            self.wait = (self.wait * 2).min(self.config.retry_max);
            wait
        };
        let jitter = rand::rng().random_range(0.8..=1.0);
        self.next_start = Some(Instant::now() + wait.mul_f64(jitter));
        self.pending = None;
        let expected = self.expected;
        let unkillable = self.dying.is_some();
        self.publish.send_modify(|view| {
            let first =
                view.trouble.as_ref().is_some_and(Trouble::is_sudden) && trouble.is_sudden();
            if !first && view.trouble.as_ref() != Some(&trouble) {
                match &trouble {
                    Trouble::Init(failure) if no_gpu && !expected => {
                        let what = match failure.kind {
                            InitFailureKind::NoLibrary => "library",
                            _ => "module",
                        };
                        tracing::info!("no NVIDIA driver {what}; this is a CPU node");
                    }
                    _ => tracing::info!(%trouble, "gpu probe ended"),
                }
                view.trouble = Some(trouble);
            }
            view.status = if unkillable {
                Status::Unkillable
            } else {
                Status::Waiting
            };
            view.ready = None;
            view.reading = None;
        });
    }

    pub(super) fn reaped(&mut self) {
        self.dying = None;
        self.publish.send_if_modified(|view| {
            let was = view.status == Status::Unkillable;
            if was {
                view.status = Status::Waiting;
            }
            was
        });
    }

    pub(super) fn expect(&mut self, expected: bool) {
        if expected && !self.expected && self.next_start.is_some() {
            // A GPU came: do not sit out the long wait.
            self.next_start = Some(Instant::now());
        }
        self.expected = expected;
    }

    pub(super) async fn release(&mut self) -> Result<(), ReleaseError> {
        if let Some(link) = self.link.take() {
            let mark = match link.part(PART).await {
                Parted::Left => None,
                Parted::Died(mark, status) => {
                    tracing::warn!(op = mark.op, how = how(status), "gpu probe died on release");
                    // In order up to the last call: all handles are closed.
                    (mark.op != Op::Shutdown.as_str()).then_some(mark)
                }
                Parted::Stuck(mark, child) => {
                    self.dying = Some(child);
                    Some(mark)
                }
            };
            if let Some(mark) = mark {
                let op = mark.op.clone();
                self.ended(hung(mark));
                return Err(ReleaseError::Hung { op });
            }
        } else if self.dying.is_some() {
            let op = match &self.publish.borrow().trouble {
                Some(Trouble::Hung { op, .. }) => op.clone(),
                _ => "unknown".to_owned(),
            };
            return Err(ReleaseError::Hung { op });
        }
        self.next_start = None;
        self.pending = None;
        self.publish.send_replace(View {
            status: Status::Released,
            ..View::default()
        });
        Ok(())
    }

    pub(super) fn resume(&mut self) {
        if self.publish.borrow().status == Status::Released {
            self.publish.send_replace(View::default());
            self.wait = self.config.retry_min;
            self.next_start = Some(Instant::now());
        }
    }
}
