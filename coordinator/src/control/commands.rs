//! What people may change: one function per verb of the admin service. Each validates with an error that names the field,
//! commits guarded with an audit line, and wakes the cycle. They never call an adapter.
//!
//! Called by `serve/admin`, which has checked the role; `by` is `admin/NAME` from the certificate.

mod adoption;
mod freezes;
mod limits;
mod nodes;
mod pools;
mod requests;

use super::cycle::Control;
use super::journal::{Change, Journal};
use super::settings::{Ask, Asks};
use super::view::FleetView;
use super::wake::Wake;
use crate::config::Config;
use crate::ports::clock::Clock;
use crate::ports::link::{AgentLink, AgentView};
use crate::ports::store::{CommitError, ReadError, Revision};
use crate::records::EventRecord;
use drover_core::model::{NodeId, PlanInput, Planned, RequestName};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

pub use adoption::AdoptWish;
pub(super) use adoption::group_of;
pub use limits::LimitsWish;
pub use nodes::DrainWish;

/// Why a wish was not done. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No such thing.
    #[error("no {kind} is named {name:?}")]
    NotFound {
        /// node, pool, request, approval.
        kind: &'static str,
        /// As given.
        name: String,
    },
    /// Several nodes carry that name.
    #[error("{name:?} means several nodes: {}", ids.join(", "))]
    Ambiguous {
        /// As given.
        name: String,
        /// Their ids.
        ids: Vec<String>,
    },
    /// A field is wrong.
    #[error("{field}: {message}")]
    Invalid {
        /// As in the admin service's message.
        field: &'static str,
        /// What is wrong and how to mend it.
        message: String,
    },
    /// Not now, or not with this thing.
    #[error("{0}")]
    Refused(String),
    /// It exists already.
    #[error("{kind} {name:?} exists already")]
    Exists {
        /// request.
        kind: &'static str,
        /// As given.
        name: String,
    },
    /// Somebody changed it at the same moment, again and again.
    #[error("it changed while it was being changed: try again")]
    Busy,
    /// The store could not be written.
    #[error("the store refused the change")]
    Commit(#[source] CommitError),
    /// The store could not be read.
    #[error("the store could not be read")]
    Read(#[from] ReadError),
    /// The cycle does not run (any more).
    #[error("the control cycle does not answer")]
    NoCycle,
}

/// What a wish came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<T> {
    /// What it is about.
    pub of: T,
    /// Why there was nothing to change; absent when something was changed.
    pub unchanged: Option<String>,
}

impl<T> Outcome<T> {
    const fn changed(of: T) -> Self {
        Self {
            of,
            unchanged: None,
        }
    }

    const fn unchanged(of: T, why: String) -> Self {
        Self {
            of,
            unchanged: Some(why),
        }
    }
}

pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> CommandError {
    CommandError::Invalid {
        field,
        message: message.into(),
    }
}

/// A change that met another one is tried again this often.
const ATTEMPTS: usize = 5;
/// What may be asked of the cycle at once.
const ASKS: usize = 16;
/// How long [`Commands::fresh_view`] waits for a cycle.
const FRESH: Duration = Duration::from_secs(5);

/// People's hands on the fleet. Cheap to clone.
#[derive(Clone)]
pub struct Commands {
    pub(super) journal: Arc<Journal>,
    pub(super) settings: watch::Receiver<Arc<Config>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) view: watch::Receiver<Arc<FleetView>>,
    pub(super) wake: Wake,
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) link: Arc<dyn AgentLink>,
}

impl Control {
    /// People's hands on this fleet, and where what they ask of the cycle comes out: for [`super::run`].
    #[must_use]
    pub fn commands(&self) -> (Commands, Asks) {
        let (asks, out) = mpsc::channel(ASKS);
        let commands = Commands {
            journal: self.journal.clone(),
            settings: self.settings(),
            clock: self.clock.clone(),
            view: self.views(),
            wake: self.wake(),
            asks,
            link: self.link.clone(),
        };
        (commands, out)
    }
}

impl Commands {
    /// The last published snapshot.
    #[must_use]
    pub fn view(&self) -> Arc<FleetView> {
        self.view.borrow().clone()
    }

    /// What a node's agent last said, newer than the last cycle: for showing, never for deciding.
    #[must_use]
    pub fn agent(&self, node: &NodeId) -> Option<Arc<AgentView>> {
        self.link.view(node)
    }

    /// A receiver that is told of each new snapshot.
    #[must_use]
    pub fn views(&self) -> watch::Receiver<Arc<FleetView>> {
        self.view.clone()
    }

    /// A snapshot of a cycle that began after this call, so that a change just made is in it; after 5 s the last one.
    pub async fn fresh_view(&self) -> Arc<FleetView> {
        let wanted = self.wake.call();
        let mut views = self.view.clone();
        let fresh = views.wait_for(|view| view.woken >= wanted);
        match tokio::time::timeout(FRESH, fresh).await {
            Ok(Ok(view)) => view.clone(),
            _ => self.view(),
        }
    }

    /// Input and result of the last plan, with the cycle that made it.
    #[must_use]
    pub fn last_plan(&self) -> Option<(u64, Arc<(PlanInput, Planned)>)> {
        let view = self.view.borrow();
        view.plan.clone().map(|plan| (view.cycle, plan))
    }

    /// Asks the cycle for something, to be done before its next round.
    ///
    /// # Errors
    /// The cycle does not run.
    pub async fn ask(&self, ask: Ask) -> Result<(), CommandError> {
        let sent = self.asks.send(ask).await;
        sent.map_err(|_| CommandError::NoCycle)?;
        self.wake.call();
        Ok(())
    }

    /// The config in force.
    pub(super) fn config(&self) -> Arc<Config> {
        self.settings.borrow().clone()
    }

    /// Reads everything and plans, and changes nothing.
    ///
    /// # Errors
    /// The cycle does not run, or could not read the store.
    pub async fn plan_fresh(&self) -> Result<(PlanInput, Planned), CommandError> {
        let (answer, result) = oneshot::channel();
        self.ask(Ask::Rehearsal(answer)).await?;
        match result.await {
            Ok(Ok(plan)) => Ok(plan),
            Ok(Err(error)) => Err(CommandError::Read(error)),
            Err(_) => Err(CommandError::NoCycle),
        }
    }

    /// Past events: later than `after`, the newest `limit`, oldest first, only about `subject` unless empty.
    pub async fn events(&self, after: u64, subject: &str, limit: usize) -> Vec<Arc<EventRecord>> {
        self.journal.events(after, subject, limit).await
    }

    /// Events to come.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<Arc<EventRecord>> {
        self.journal.follow()
    }

    /// The one writer of the store, for what is not control's: tokens, identities, revocations.
    #[must_use]
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Something was changed that the cycle should look at.
    pub fn wake(&self) {
        self.wake.call();
    }

    /// The id of the one node that is meant by an id, a host name or an instance id.
    ///
    /// # Errors
    /// None or several are meant.
    pub fn node_id(&self, name: &str) -> Result<NodeId, CommandError> {
        if name.is_empty() {
            return Err(invalid(
                "node",
                "is empty: give an id, a host name or an instance id",
            ));
        }
        let view = self.view.borrow();
        match view.named(name).as_slice() {
            [] => Err(CommandError::NotFound {
                kind: "node",
                name: name.to_owned(),
            }),
            [node] => Ok(node.id.clone()),
            several => Err(CommandError::Ambiguous {
                name: name.to_owned(),
                ids: several.iter().map(|node| node.id.0.clone()).collect(),
            }),
        }
    }

    /// What events call a node (by id, host name or instance id, also one that is gone), pool or request; empty for all.
    ///
    /// # Errors
    /// Several nodes carry that name, or nothing and no past event does.
    pub async fn event_subject(&self, name: &str) -> Result<String, CommandError> {
        if name.is_empty() {
            return Ok(String::new());
        }
        match self.node_id(name) {
            Ok(id) => return Ok(id.0),
            Err(error @ CommandError::Ambiguous { .. }) => return Err(error),
            Err(_) => {}
        }
        let view = self.view();
        let known = view.pool(name).is_some() || view.request(name).is_some();
        if known || !self.events(0, name, 1).await.is_empty() {
            return Ok(name.to_owned());
        }
        if let Some(id) = self.past_node(name).await? {
            return Ok(id);
        }
        Err(CommandError::NotFound {
            kind: "node, pool or request",
            name: name.to_owned(),
        })
    }

    /// Commits; a conflict comes back as `None`, so that the caller reads again.
    pub(super) async fn commit(&self, change: Change) -> Result<Option<Revision>, CommandError> {
        match self.journal.commit(change).await {
            Ok(revision) => {
                self.wake.call();
                Ok(Some(revision))
            }
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(CommandError::Commit(error)),
        }
    }
}

/// Reads, decides and commits again when somebody else was faster.
macro_rules! guarded {
    ($body:block) => {{
        let mut left = super::ATTEMPTS;
        loop {
            let outcome: Result<Option<_>, super::CommandError> = async { $body }.await;
            if let Some(done) = outcome? {
                break Ok(done);
            }
            left -= 1;
            if left == 0 {
                break Err(super::CommandError::Busy);
            }
        }
    }};
}
pub(super) use guarded;

/// A name for a request that has none: short, unique enough, told at once.
pub(super) fn made_name() -> RequestName {
    RequestName(format!("request-{:08x}", rand::random::<u32>()))
}
