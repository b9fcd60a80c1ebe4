//! A whole port on loopback for tests: store in memory, real TLS, real clients, a clock of its own.

mod clients;
mod hosts;
mod session;

pub(crate) use clients::{Identity, csr, der, new_key};
pub(crate) use hosts::Hosts;
pub(crate) use session::{Session, hello};

use super::{Agents, Intervals, Parts};
use crate::adapters::ca::Ca;
use crate::adapters::clock::{ManualClock, SystemClock};
use crate::adapters::link::Hub;
use crate::adapters::store::memory::{Disk, MemoryStore};
use crate::adapters::tokens::TokenWish;
use crate::control::journal::Journal;
use crate::ports::clock::Clock;
use crate::ports::store::{Op, Store};
use crate::records::{NodeRecord, keys};
use crate::serve::auth::Gate;
use crate::serve::identities::IdentityDesk;
use crate::serve::tls;
use crate::serve::tokens::TokenDesk;
use drover_core::model::{Millis, NodeId, PoolId};
use drover_core::rules::access::Role;
use drover_proto::v1;
use drover_proto::v1::agent_message::Body;
use rcgen::KeyPair;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Longest wait for anything.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits for `future`, not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("it did not happen in time")
}

pub(crate) struct Rig {
    pub(crate) disk: Disk,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ca: Arc<Ca>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) served: tokio::task::JoinHandle<bool>,
    state: Arc<tempfile::TempDir>,
}

pub(crate) fn facts(host: &str) -> v1::Facts {
    v1::Facts {
        hostname: host.into(),
        machine_id: "m".repeat(32),
        boot_id: "boot-1".into(),
        ..v1::Facts::default()
    }
}

impl Rig {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(SystemClock.wall()));
        let state = Arc::new(tempfile::tempdir().unwrap());
        Self::over(Disk::default(), clock, state).await
    }

    /// Another coordinator over the same store and state directory: it takes the lead.
    pub(crate) async fn successor(&self) -> Self {
        let (disk, clock) = (self.disk.clone(), self.clock.clone());
        Self::over(disk, clock, self.state.clone()).await
    }

    async fn over(disk: Disk, clock: Arc<ManualClock>, state: Arc<tempfile::TempDir>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::open(&disk));
        let ca = Arc::new(Ca::open(state.path(), &*store, &*clock).await.unwrap());
        let journal = Journal::open(store.clone(), clock.clone()).await.unwrap();
        let journal = Arc::new(journal);
        let hub = Hub::new(clock.clone());
        let hosts = Arc::new(Hosts::default());
        let agents = Agents::new(Parts {
            journal: journal.clone(),
            ca: ca.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            admission: hosts.clone(),
            intervals: Intervals {
                report: Millis(5_000),
                full: Millis(60_000),
                heartbeat: Millis(200),
            },
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared: Arc<dyn Clock> = clock.clone();
        let tls = tls::config(&ca, &["localhost".into()], &shared).unwrap();
        let gate = Gate::new(store.clone(), shared);
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            crate::serve::run(listener, tls, gate, agents, None, until)
                .await
                .is_ok()
        });
        Self {
            disk,
            store,
            clock,
            ca,
            journal,
            hub,
            hosts,
            address,
            stop: Some(stop),
            served,
            state,
        }
    }

    pub(crate) fn desk(&self) -> IdentityDesk {
        IdentityDesk::new(
            self.journal.clone(),
            self.ca.clone(),
            self.hub.clone(),
            self.clock.clone(),
        )
    }

    pub(crate) fn tokens(&self) -> TokenDesk {
        TokenDesk::new(self.journal.clone(), self.ca.clone(), self.clock.clone())
    }

    pub(crate) async fn token(&self, pool: Option<&str>, max_uses: u32) -> String {
        let wish = TokenWish {
            pool: pool.map(PoolId::from),
            max_uses,
            ..TokenWish::default()
        };
        self.tokens().create(wish, "admin/ada").await.unwrap().1
    }

    pub(crate) async fn put<T: Serialize>(&self, key: &str, value: &T) {
        let op = Op::Put(key.into(), serde_json::to_vec(value).unwrap());
        let store = &self.store;
        store.commit(store.fence(), &[], &[op]).await.unwrap();
    }

    pub(crate) async fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let entry = self.store.get(key).await.unwrap()?;
        Some(serde_json::from_slice(&entry.value).unwrap())
    }

    pub(crate) async fn node(&self, id: &str) -> Option<NodeRecord> {
        self.read(&keys::named(keys::NODE, id)).await
    }

    pub(crate) async fn try_enrol(
        &self,
        token: &str,
        key: &KeyPair,
        host: &str,
    ) -> Result<v1::EnrolReply, Status> {
        let request = v1::EnrolRequest {
            token: token.into(),
            csr_der: csr(key),
            facts: Some(facts(host)),
            instance_identity: None,
        };
        let mut client = self.agent(None).await;
        soon(client.enrol(request))
            .await
            .map(tonic::Response::into_inner)
    }

    pub(crate) async fn enrol(&self, host: &str) -> Identity {
        let token = self.token(None, 1).await;
        let key = new_key();
        let reply = self.try_enrol(&token, &key, host).await.unwrap();
        Identity {
            id: reply.node_id,
            key,
            certificate: der(&reply.certificate_pem),
        }
    }

    pub(crate) async fn person(&self, name: &str, role: Role) -> Identity {
        let key = new_key();
        let issued = self
            .desk()
            .issue_admin(name, role, &csr(&key), Millis::ZERO, "test")
            .await
            .unwrap();
        Identity {
            id: name.into(),
            key,
            certificate: issued.der,
        }
    }

    /// Opens a session and says Hello.
    pub(crate) async fn session(&self, identity: &Identity, hello: v1::Hello) -> Session {
        let (sender, receiver) = mpsc::channel(64);
        let mut session = Session {
            out: sender,
            seq: 0,
            stream: Err(Status::unknown("not opened")),
        };
        session.say(Body::Hello(hello)).await;
        let mut client = self.agent(Some(identity)).await;
        session.stream = soon(client.session(ReceiverStream::new(receiver)))
            .await
            .map(tonic::Response::into_inner);
        session
    }

    /// Stops the port as `app` does.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn node_id(identity: &Identity) -> NodeId {
        NodeId::from(identity.id.as_str())
    }
}
