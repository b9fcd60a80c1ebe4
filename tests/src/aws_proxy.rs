//! A fault proxy between an AWS client and moto.
//!
//! moto speaks AWS's wire format and knows nothing of time, shortage, limits or LaunchInstances. This proxy
//! adds them, driven by a [`Scenario`], and keeps a [`Ledger`] of what really happened. Used in-process by
//! tests, and as the program `aws-proxy`. Described in `tests/README-aws-proxy.md`. It knows nothing of Drover.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

mod describe;
mod desired;
mod group_view;
mod launch;
mod ledger;
mod query;
mod scenario;
mod server;
mod state;
mod terminate;
mod upstream;
mod xml;

pub use ledger::{Cause, End, Launch, Ledger, Mutation};
pub use scenario::{Effect, Fault, Ration, Scenario, Timing};

/// A running proxy; it ends when this is dropped.
pub struct AwsProxy {
    address: SocketAddr,
    proxy: Arc<server::Proxy>,
    task: JoinHandle<()>,
}

impl AwsProxy {
    /// Starts on a free port of the loopback, in front of the moto server at `moto`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(moto: &str, scenario: Scenario) -> std::io::Result<Self> {
        Self::start_on("127.0.0.1:0", moto, scenario).await
    }

    /// Starts on `listen`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_on(listen: &str, moto: &str, scenario: Scenario) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let proxy = Arc::new(server::Proxy::new(moto, scenario));
        let task = tokio::spawn(server::serve(listener, proxy.clone()));
        Ok(Self {
            address,
            proxy,
            task,
        })
    }

    /// The endpoint to give to a client.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the scenario; faults are counted anew.
    pub async fn set(&self, scenario: Scenario) {
        self.proxy.set(scenario).await;
    }

    /// What happened so far.
    pub fn ledger(&self) -> Ledger {
        self.proxy.ledger().clone()
    }

    /// Ends when the server does, which it does only with this process.
    pub async fn wait(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for AwsProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Makes one Query call of `service` at `base` and gives the answer's text.
pub(crate) async fn query_moto(
    base: &str,
    region: &str,
    service: &str,
    version: &str,
    action: &str,
    form: &[(String, String)],
) -> Result<String, String> {
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("Action", action)
        .append_pair("Version", version)
        .extend_pairs(form)
        .finish();
    let reply = upstream::Upstream::new(base)
        .send(region, service, body.into_bytes())
        .await?;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    if reply.is_ok() { Ok(text) } else { Err(text) }
}
