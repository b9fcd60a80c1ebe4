//! The task that keeps the order in force, the drain machine's state and the executors together.
//!
//! Spawned by `run`; the session talks to it through [`ToDrain`]. Decides nothing itself. Here are what it holds and
//! its loop; what comes in is made an event in `incoming`, what comes of an event is done in `step`.

mod incoming;
mod step;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

use crate::clock::{self, BootMs};
use crate::observation::Observation;
use crate::order::Book;
use crate::session::mail::Mail;
use crate::state::{StateDir, StateError};

use super::deadline::Anchor;
use super::executor::Executor;
use super::machine::{Event, Settings, State};
use super::status::Status;
use super::{LocalDrain, ToDrain, View};
use step::{Busy, ended};

const FILE: &str = "drain.json";
/// Between looks at the clock and at root's release mark.
const TICK: Duration = Duration::from_millis(500);

/// On disk.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Stored {
    boot_id: String,
    book: Book,
    anchor: Anchor,
    machine: State,
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
}
