//! The GPUs let go on request, and taken back.
//!
//! A part of the collector's task, called by its loop and, when the time of a release is over, by a tick.

use std::time::Duration;

use super::Task;
use crate::collector::ReleaseError;
use crate::probe::parent::Order;
use crate::telemetry::sampler::now_unix_ms;

impl Task {
    pub(super) async fn let_go(&mut self, ttl: Duration) -> Result<(), ReleaseError> {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.release
            .begin(now_unix_ms().saturating_add(ttl))
            .map_err(|error| ReleaseError::State(error.to_string()))?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.order(Order::Release(reply)).await?;
        let done = answer.await.map_err(|_| ReleaseError::Ended)?;
        if done.is_err()
            && let Err(error) = self.release.end()
        {
            tracing::warn!(%error, "record of a refused release stays");
        }
        done
    }

    pub(super) async fn take_back(&mut self) -> Result<(), ReleaseError> {
        let ended = self.release.end();
        self.order(Order::Resume).await?;
        self.due.processes = None;
        self.due.versions = None;
        ended.map_err(|error| ReleaseError::State(error.to_string()))
    }

    async fn order(&mut self, order: Order) -> Result<(), ReleaseError> {
        self.probe
            .orders
            .send(order)
            .await
            .map_err(|_| ReleaseError::Ended)
    }
}
