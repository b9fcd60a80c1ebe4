//! The agent service: enrolment, renewal and sessions. A node may speak only for itself: its id is taken from its
//! certificate, never from a message. Decides nothing about what a node should be: that is control's.

mod enrol;
mod instances;
mod meet;
mod place;
mod renew;
#[cfg(test)]
pub(crate) mod rig;
mod session;
mod sweep;
#[cfg(test)]
mod tests;

use super::auth::Caller;
use super::tls::Peer;
use crate::adapters::ca::Ca;
use crate::adapters::link::{Ending, Hub};
use crate::config::enrolment::InstanceIdentity;
use crate::control::journal::Journal;
use crate::ports::actuate::PoolReading;
use crate::ports::clock::Clock;
use crate::ports::store::{CommitError, ReadError, Store};
use crate::records::NodeRecord;
use drover_core::model::{InstanceId, Millis, PoolId};
use drover_proto::v1::agent_service_server::{AgentService, AgentServiceServer};
use drover_proto::{limits, v1};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// A commit that met another one is tried again this often.
const ATTEMPTS: usize = 10;

/// Who may join which pool: control's and the config's word, supplied by `app`.
pub trait Admission: Send + Sync {
    /// The pool of a host that comes with a token of `pool`, or of a node that a restored store does not know (`None`).
    ///
    /// # Errors
    /// Why it is not admitted, for people: a static pool does not list this host, the pool is gone from the config.
    fn admit(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Result<Option<PoolId>, String>;

    /// Whether a node whose certificate has expired still belongs where it was.
    ///
    /// # Errors
    /// Why not, for people.
    fn keeps(&self, _node: &NodeRecord) -> Result<(), String> {
        Ok(())
    }

    /// Whose instance identity documents are believed; `None`: nobody's.
    fn instance_identity(&self) -> Option<InstanceIdentity> {
        None
    }

    /// The pools in which instances may enrol with their identity document.
    fn pools(&self) -> Vec<KnownPool> {
        Vec::new()
    }

    /// How the provider of `pool` names this host: the instance, or the host name where there is none.
    fn instance(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Option<InstanceId> {
        let named = facts.instance_id.as_deref().filter(|id| !id.is_empty());
        named
            .or_else(|| pool.map(|_| facts.hostname.as_str()))
            .map(InstanceId::from)
    }
}

/// A pool with what its provider last said.
#[derive(Debug, Clone)]
pub struct KnownPool {
    /// Its name.
    pub name: PoolId,
    /// The region of its group; absent where there is no such thing.
    pub region: Option<String>,
    /// The last good reading; absent before the first.
    pub reading: Option<Arc<PoolReading>>,
}

/// How often agents report and are spoken to.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// Between reports.
    pub report: Millis,
    /// Between full reports.
    pub full: Millis,
    /// Between heartbeats.
    pub heartbeat: Millis,
}

/// What the service is made of.
pub struct Parts {
    /// Durable state and audit.
    pub journal: Arc<Journal>,
    /// Issues certificates.
    pub ca: Arc<Ca>,
    /// What agents say goes here.
    pub hub: Arc<Hub>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Who may join.
    pub admission: Arc<dyn Admission>,
    /// How often.
    pub intervals: Intervals,
}

/// The service.
pub struct Agents {
    parts: Parts,
    nonces: renew::Nonces,
    /// One enrolment at a time: a thousand hosts with one token do not fight for its record.
    enrolling: Mutex<()>,
    swept: sweep::Swept,
}

/// The service as tonic serves it, with its size limits.
pub fn service(agents: Arc<Agents>) -> AgentServiceServer<AgentsHandle> {
    AgentServiceServer::new(AgentsHandle(agents))
        .max_decoding_message_size(limits::MESSAGE_BYTES)
        .max_encoding_message_size(limits::MESSAGE_BYTES)
}

/// A shared [`Agents`] that tonic can own.
pub struct AgentsHandle(Arc<Agents>);

impl Agents {
    /// Joins the parts.
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            nonces: renew::Nonces::new(),
            enrolling: Mutex::new(()),
            swept: sweep::Swept::default(),
        })
    }

    /// Where agents' words go.
    #[must_use]
    pub fn hub(&self) -> &Arc<Hub> {
        &self.parts.hub
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.parts.journal.store()
    }

    /// Resolves when another coordinator leads: then every session is ended, since our word counts no more (I10).
    pub(super) fn watch_leadership(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let agents = self.clone();
        async move {
            let every = Duration::from_millis(agents.parts.intervals.heartbeat.0.max(100));
            loop {
                let store = agents.store();
                if let Err(CommitError::Fenced { mine, current }) =
                    store.commit(store.fence(), &[], &[]).await
                {
                    tracing::error!(mine, current, "another coordinator leads: stopping");
                    agents.hub().stop(Ending::Fenced);
                    return;
                }
                tokio::time::sleep(every).await;
            }
        }
    }
}

/// A failed commit as an agent sees it: worth another try.
fn commit_failed(error: &CommitError) -> Status {
    tracing::error!(error = error as &dyn std::error::Error, "cannot commit");
    Status::unavailable(match error {
        CommitError::Fenced { .. } => "this coordinator no longer leads",
        _ => "the store cannot be written",
    })
}

fn read_failed(error: &ReadError) -> Status {
    tracing::error!(error = error as &dyn std::error::Error, "cannot read");
    Status::unavailable("the store cannot be read")
}

fn too_contended() -> Status {
    Status::unavailable("it changed while it was being changed: try again")
}

#[tonic::async_trait]
impl AgentService for AgentsHandle {
    type SessionStream = ReceiverStream<Result<v1::CoordinatorMessage, Status>>;

    async fn enrol(
        &self,
        request: Request<v1::EnrolRequest>,
    ) -> Result<Response<v1::EnrolReply>, Status> {
        let from = request.extensions().get::<Peer>().map(|peer| peer.address);
        self.0
            .enrol(request.into_inner(), from)
            .await
            .map(Response::new)
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Response<v1::RenewReply>, Status> {
        let caller = Caller::of(request.extensions()).ok();
        let reply = self.0.renew(caller, request.into_inner()).await?;
        Ok(Response::new(reply))
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::AgentMessage>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let caller = Caller::of(request.extensions())?;
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(session::run(
            self.0.clone(),
            caller,
            request.into_inner(),
            sender,
        ));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
