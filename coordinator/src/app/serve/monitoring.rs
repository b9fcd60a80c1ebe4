//! The listener for metrics and health, where the config names one. Called by `app::serve`: bound with the gRPC port, so
//! that a bad address fails the start before anything is done; it answers from then on.

use crate::config::Config;
use crate::serve::http::{self, Page, Sources};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// It listens until the value is dropped; nothing listens where the config names no address.
#[derive(Default)]
pub(super) struct Monitoring {
    page: Arc<Page>,
    serving: Option<JoinHandle<()>>,
}

impl Monitoring {
    /// Binds the address.
    ///
    /// # Errors
    /// It cannot be had.
    pub(super) async fn open(config: &Config) -> Result<Self> {
        let Some(address) = config.server.http else {
            return Ok(Self::default());
        };
        let listener = TcpListener::bind(address).await.with_context(|| {
            format!(
                "[server] http: cannot listen on {address} (write another address and port, or take the key out)"
            )
        })?;
        let address = listener.local_addr()?;
        tracing::info!(http = %address, "metrics and health are served");
        let page = Arc::<Page>::default();
        let serving = tokio::spawn(http::serve(listener, page.clone()));
        Ok(Self {
            page,
            serving: Some(serving),
        })
    }

    /// From now on there is something to show.
    pub(super) fn show(&self, sources: Sources) {
        self.page.show(sources);
    }
}

impl Drop for Monitoring {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}
