//! Layer 5: the one gRPC port, both services behind one gate; in `http` the listener for monitoring. Called by `app`.
//! Thin: what nodes say goes to the link, what people want goes to `control::commands`, what is shown comes from
//! `control::view`.

pub mod admin;
pub mod agents;
pub mod auth;
pub mod convert;
pub mod first_admin;
pub mod http;
pub mod identities;
pub mod tls;
pub mod tokens;

use self::agents::Agents;
use self::auth::Gate;
use crate::adapters::link::Ending;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Server;

/// A silent connection is asked this often whether it lives, and given this long to answer.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(10));
/// Connections that are still open this long after the end was asked for are cut.
const LINGER: Duration = Duration::from_secs(5);

/// Serves both services until `shutdown` resolves or another coordinator leads. `admin` holds the admin service (or
/// nothing, in tests of the agents' side).
///
/// # Errors
/// The server broke.
pub async fn run(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    gate: Gate,
    agents: Arc<Agents>,
    admin: Option<Routes>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), tonic::transport::Error> {
    let routes = admin
        .unwrap_or_default()
        .add_service(agents::service(agents.clone()));
    let stopped = Arc::new(tokio::sync::Notify::new());
    let told = stopped.clone();
    let hub = agents.hub().clone();
    let lead = agents.watch_leadership();
    let until = async move {
        tokio::select! {
            () = shutdown => hub.stop(Ending::Stopping),
            () = lead => {}
        }
        told.notify_one();
    };
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE.0))
        .http2_keepalive_timeout(Some(KEEPALIVE.1))
        .max_concurrent_streams(256)
        .layer(gate)
        .add_routes(routes)
        .serve_with_incoming_shutdown(tls::incoming(listener, tls), until);
    let linger = async {
        stopped.notified().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        done = serving => done,
        () = linger => {
            tracing::info!("some connections did not end by themselves");
            Ok(())
        }
    }
}
