//! A metadata service of our own (version 2 only) for hosts that play EC2 instances: `/INSTANCE/latest/...`.
//!
//! Used by tests that start an agent as one. It answers for any instance: who is whom is told by the endpoint that an
//! agent is given.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// A running service; it ends when this is dropped.
pub struct Metadata {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Metadata {
    /// Starts on a free port of the loopback; every instance is of this type.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(instance_type: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let router = Router::new()
            .route("/{instance}/latest/api/token", put(token))
            .route("/{instance}/latest/{*path}", get(read))
            .with_state(Arc::from(instance_type));
        let task = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Self { address, task }
    }

    /// The table of an agent's config that makes its host this instance.
    #[must_use]
    pub fn of(&self, instance: &str) -> String {
        format!(
            "[metadata]\nendpoint = \"http://{}/{instance}\"\n",
            self.address
        )
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn token(Path(instance): Path<String>, headers: HeaderMap) -> Response {
    match headers.get(TTL) {
        Some(ttl) => ([(TTL, ttl.clone())], format!("token-{instance}")).into_response(),
        None => StatusCode::BAD_REQUEST.into_response(),
    }
}

async fn read(
    State(instance_type): State<Arc<str>>,
    Path((instance, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if headers.get(TOKEN).and_then(|v| v.to_str().ok()) != Some(&format!("token-{instance}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match path.as_str() {
        "meta-data/instance-id" => instance.into_response(),
        "meta-data/instance-type" => instance_type.to_string().into_response(),
        "meta-data/autoscaling/target-lifecycle-state" => "InService".into_response(),
        "meta-data/events/maintenance/scheduled" => "[]".into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
