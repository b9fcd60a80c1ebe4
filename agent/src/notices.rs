//! Tells the coordinator, once each, what the cloud will do to this instance, and lets the drain side act on a spot
//! notice. Spawned by `run` on hosts with instance metadata.
//!
//! `imds/watch` reads the documents, `book` judges them. **Invariant:** a notice is in the outbox, on disk, before it
//! counts as told; a crash in between tells it again under the same id, which the outbox knows.

pub mod book;
pub mod shutdown;

use tokio::sync::{mpsc, watch};

use crate::clock::{self, BootMs};
use crate::config::{self, OnSpot};
use crate::drain::{LocalDrain, ToDrain};
use crate::imds::watch::Known;
use crate::order::{DrainSpec, Policy};
use crate::session::mail::Mail;
use crate::state::{StateDir, StateError};

use book::{Book, Spot};

const FILE: &str = "notices.json";
/// A drain of its own ends this long before the instance.
const MARGIN_MS: u64 = 10_000;

/// The task.
#[derive(Debug)]
pub struct Notices {
    config: config::Notices,
    state: StateDir,
    mail: Mail,
    drain: mpsc::Sender<ToDrain>,
    book: Book,
    /// What the drain side was told last.
    acted: Option<Spot>,
}

impl Notices {
    /// Loads what was told before.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn load(
        config: config::Notices,
        state: StateDir,
        mail: Mail,
        drain: mpsc::Sender<ToDrain>,
    ) -> Result<Self, StateError> {
        let book = state.load(FILE)?.unwrap_or_default();
        Ok(Self {
            config,
            state,
            mail,
            drain,
            book,
            acted: None,
        })
    }

    /// Runs until the collector is gone.
    pub async fn run(mut self, mut known: watch::Receiver<Known>) {
        loop {
            let seen = known.borrow_and_update().clone();
            self.take(&seen).await;
            if known.changed().await.is_err() {
                return;
            }
        }
    }

    async fn take(&mut self, known: &Known) {
        // Whose documents they are is known first, always.
        let Some(id) = known
            .instance
            .as_ref()
            .and_then(|instance| instance.id.as_deref())
        else {
            return;
        };
        let told = self.book.judge(id, &known.documents, clock::unix_ms());
        if let Some(spot) = told.spot.filter(|spot| self.acted.as_ref() != Some(spot)) {
            self.act(&spot).await;
            self.acted = Some(spot);
        }
        if told.notices.is_empty() {
            return;
        }
        for notice in told.notices {
            tracing::warn!(
                kind = notice.kind,
                message = notice.message,
                "the cloud tells"
            );
            self.mail.raise(notice);
        }
        if let Err(error) = self.state.save(FILE, &self.book) {
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "what was told is not written: it may be told again");
        }
    }

    async fn act(&self, spot: &Spot) {
        let ends = spot.at_unix_ms.saturating_sub(MARGIN_MS);
        // The cloud dates it by its own clock, which hosts of it follow.
        let by = BootMs::now().plus(ends.saturating_sub(clock::unix_ms()));
        let local = match self.config.on_spot {
            OnSpot::Never => None,
            OnSpot::Alone | OnSpot::AtOnce => Some(LocalDrain {
                spec: DrainSpec {
                    id: format!("local-{}", spot.id),
                    policy: Policy::Force,
                    deadline_unix_ms: Some(ends),
                    grace_ms: u64::try_from(self.config.grace.as_millis()).unwrap_or(u64::MAX),
                    reason: "spot notice".to_owned(),
                },
                deadline: by,
                at_once: self.config.on_spot == OnSpot::AtOnce,
            }),
        };
        let message = ToDrain::Emergency {
            by: Some(by),
            local,
        };
        // The agent is ending: nobody acts any more.
        let _ended = self.drain.send(message).await.is_err();
    }
}
