//! First uses of instances that are gone leave the store: their documents are too old to be used again.
//!
//! Called after an enrolment by document, and does something once an hour. Must not touch the claim of a node that the
//! store knows.

use super::Agents;
use super::enrol::node_key;
use crate::control::journal::Change;
use crate::records::{ClaimRecord, NodeRecord, keys};
use drover_core::model::{Millis, UnixMs};
use std::sync::atomic::{AtomicU64, Ordering};
use tonic::Status;

/// Between two sweeps.
const PAUSE: Millis = Millis::minutes(60);
/// A claim stays for so long whatever becomes of its node: longer than any document counts.
const KEPT: Millis = Millis::minutes(24 * 60);
/// Claims that one sweep removes.
const MOST: usize = 40;

/// When the last sweep was, wall clock.
#[derive(Default)]
pub(super) struct Swept(AtomicU64);

impl Agents {
    /// Removes some claims of nodes that are gone, if it is time. What fails is tried again in an hour.
    pub(super) async fn sweep_claims(&self) {
        let now = self.parts.clock.wall();
        let last = UnixMs(self.swept.0.load(Ordering::Relaxed));
        if now.since(last) < PAUSE {
            return;
        }
        self.swept.0.store(now.0, Ordering::Relaxed);
        match self.sweep_once(now).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "forgot first uses of instances that are gone"),
            Err(status) => tracing::warn!(%status, "old first uses of instances stay"),
        }
    }

    async fn sweep_once(&self, now: UnixMs) -> Result<usize, Status> {
        let entries = self.store().list(keys::CLAIM).await;
        let entries = entries.map_err(|error| super::read_failed(&error))?;
        let mut change = Change::new();
        let mut count = 0;
        for entry in entries {
            let Ok(claim) = serde_json::from_slice::<ClaimRecord>(&entry.value) else {
                continue;
            };
            let old = now.since(claim.at) > KEPT;
            if !old
                || self
                    .read::<NodeRecord>(&node_key(&claim.node))
                    .await?
                    .is_some()
            {
                continue;
            }
            change.delete(entry.key, entry.revision);
            count += 1;
            if count == MOST {
                break;
            }
        }
        if count > 0 {
            let done = self.parts.journal.commit(change).await;
            done.map_err(|error| super::commit_failed(&error))?;
        }
        Ok(count)
    }
}
