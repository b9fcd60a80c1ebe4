//! The outbox shared between those who have something to say and the session, with what must last on disk.
//!
//! `drain` and the watchers of notices put in; `session` takes out. Locks are held for no longer than a copy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::outbox::{Notice, Outbox, Parcel, Raised};
use crate::drain::status::Status;
use crate::state::{StateDir, StateError};

const FILE: &str = "outbox.json";

/// A shared handle; clones see the same outbox.
#[derive(Debug, Clone)]
pub struct Mail {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    outbox: Mutex<Outbox>,
    wake: Notify,
    state: StateDir,
}

impl Mail {
    /// Loads what an agent of before could not deliver.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn load(state: StateDir) -> Result<Self, StateError> {
        let outbox = state.load(FILE)?.unwrap_or_default();
        Ok(Self {
            inner: Arc::new(Inner {
                outbox: Mutex::new(outbox),
                wake: Notify::new(),
                state,
            }),
        })
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        // No holder can panic between two steps of one change.
        self.inner
            .outbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, outbox: &Outbox) {
        // What cannot be written is still sent; only a crash before that would lose it.
        if let Err(error) = self.inner.state.save(FILE, outbox) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "outbox not written"
            );
        }
    }

    /// Keeps a notice until the coordinator has it.
    pub fn raise(&self, notice: Notice) -> Raised {
        let raised = {
            let mut outbox = self.outbox();
            let raised = outbox.raise(notice);
            if raised != Raised::Known {
                self.write(&outbox);
            }
            raised
        };
        self.inner.wake.notify_one();
        raised
    }

    /// Sends the latest state of an order; a result is kept until the coordinator has it.
    pub fn status(&self, status: Status) {
        {
            let mut outbox = self.outbox();
            if outbox.status(status) {
                self.write(&outbox);
            }
        }
        self.inner.wake.notify_one();
    }

    /// There is something newer to report.
    pub fn report(&self) {
        self.outbox().report();
        self.inner.wake.notify_one();
    }

    /// Returns when something waits to be sent.
    pub async fn waiting(&self) {
        loop {
            if self.outbox().is_waiting() {
                return;
            }
            self.inner.wake.notified().await;
        }
    }

    /// See [`Outbox::is_settled`].
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.outbox().is_settled()
    }

    /// See [`Outbox::next`].
    #[must_use]
    pub fn next(&self, seq: u64) -> Option<Parcel> {
        self.outbox().next(seq)
    }

    /// See [`Outbox::acknowledged`].
    pub fn acknowledged(&self, seq: u64) {
        let mut outbox = self.outbox();
        if outbox.acknowledged(seq) {
            self.write(&outbox);
        }
    }

    /// See [`Outbox::session_lost`].
    pub fn session_lost(&self) {
        self.outbox().session_lost();
    }
}
