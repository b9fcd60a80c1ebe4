//! The plain HTTP listener for monitoring: `/metrics`, `/healthz`, `/readyz`. Called by `app`.
//!
//! It only reads: no request changes anything, asks a provider or waits for the cycle. It speaks without TLS and knows no
//! roles, so it shows counts and the names of pools, and never a node, a request, a person or a secret.

mod metrics;
mod server;

use crate::control::journal::Journal;
use crate::control::pace::Pace;
use crate::control::tally::CommitEnd;
use crate::control::view::FleetView;
use crate::ports::calls::CallCounts;
use crate::ports::clock::Clock;
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use drover_core::model::UnixMs;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

pub use metrics::Format;
pub use server::serve;

/// What is shown, once the coordinator has it.
pub struct Sources {
    /// Every snapshot that the cycle publishes.
    pub views: watch::Receiver<Arc<FleetView>>,
    /// What happened.
    pub journal: Arc<Journal>,
    /// How long it took.
    pub pace: Arc<Pace>,
    /// What was asked of a cloud's API.
    pub calls: Arc<dyn CallCounts>,
    /// For ages.
    pub clock: Arc<dyn Clock>,
    /// When this process started.
    pub started: UnixMs,
}

impl Sources {
    /// The metrics as text.
    ///
    /// # Errors
    /// None in practice: text is written to memory.
    pub fn metrics(&self, format: Format) -> Result<String, std::fmt::Error> {
        metrics::page(metrics::Snapshot::of(self), format)
    }

    /// Why the coordinator does not do its work, if it does not.
    #[must_use]
    pub fn unready(&self) -> Option<String> {
        if self
            .journal
            .counts()
            .commits
            .contains_key(&CommitEnd::Fenced)
        {
            return Some("another coordinator leads this store".to_owned());
        }
        match self.pace.failures_in_a_row() {
            0 => {}
            failed => return Some(format!("the last {failed} cycles failed: see the log")),
        }
        (self.views.borrow().cycle == 0).then(|| "no cycle has ended yet".to_owned())
    }
}

/// What the listener shows: nothing but that it lives until the coordinator has opened its store.
#[derive(Default)]
pub struct Page(OnceLock<Sources>);

impl Page {
    /// From now on there is something to show. Only the first call counts.
    pub fn show(&self, sources: Sources) {
        let _ = self.0.set(sources);
    }

    fn unready(&self) -> Option<String> {
        match self.0.get() {
            Some(sources) => sources.unready(),
            None => Some("the coordinator is starting".to_owned()),
        }
    }
}

/// The routes over a page.
pub fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(page)
}

async fn index() -> &'static str {
    "drover coordinator\n\n/metrics  for Prometheus\n/healthz  the process lives\n/readyz   it leads and its cycle runs\n"
}

async fn healthz() -> &'static str {
    "alive\n"
}

async fn readyz(State(page): State<Arc<Page>>) -> Response {
    match page.unready() {
        None => "ready\n".into_response(),
        Some(why) => unavailable(&why),
    }
}

async fn metrics_page(State(page): State<Arc<Page>>, headers: HeaderMap) -> Response {
    let Some(sources) = page.0.get() else {
        return unavailable("the coordinator is starting");
    };
    let wanted = headers.get_all(ACCEPT).iter();
    let format = Format::wanted(wanted.filter_map(|value| value.to_str().ok()));
    match sources.metrics(format) {
        Ok(text) => {
            let kind = HeaderValue::from_static(format.content_type());
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the metrics were not written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn unavailable(why: &str) -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("not ready: {why}\n"),
    )
        .into_response()
}

#[cfg(test)]
mod tests;
