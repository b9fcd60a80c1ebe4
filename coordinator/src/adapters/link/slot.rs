//! What is held for one node, and its changes, under the hub's lock. Called by `link` only.

use super::session::Ending;
use crate::ports::link::AgentView;
use crate::records::OrderRecord;
use drover_core::model::UnixMs;
use drover_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Notices of one node that control has not taken yet; a node with more is not listened to.
pub(super) const NOTICES: usize = 1_000;
/// Ids of settled notices that are remembered, so that a repeated one is acknowledged and not delivered again.
const SETTLED: usize = 256;
/// Boots of one node that are remembered.
const BOOTS: usize = 8;
/// A live session replaced this often ...
const REPLACED: usize = 5;
/// ... within this many milliseconds means two agents with one identity.
const REPLACED_WITHIN_MS: u64 = 60_000;

/// A notice not yet settled.
pub(super) struct Pending {
    pub(super) notice: v1::Notice,
    /// When it was taken, on the monotonic clock, milliseconds.
    pub(super) taken: u64,
    /// Session and sequence number to acknowledge; none for the coordinator's own.
    pub(super) seq: Option<(u64, u64)>,
}

/// The open session of a node.
pub(super) struct Open {
    pub(super) id: u64,
    pub(super) kick: watch::Sender<u64>,
    pub(super) ending: Option<Ending>,
}

#[derive(Default)]
pub(super) struct Slot {
    pub(super) view: Option<Arc<AgentView>>,
    pub(super) desired: Option<OrderRecord>,
    pub(super) notices: VecDeque<Pending>,
    pub(super) settled: VecDeque<String>,
    pub(super) open: Option<Open>,
    boots: VecDeque<String>,
    replaced_at: VecDeque<u64>,
    clones: u64,
}

impl Slot {
    pub(super) fn kick(&self) {
        if let Some(open) = &self.open {
            open.kick.send_modify(|count| *count += 1);
        }
    }

    /// Asks the open session to end.
    pub(super) fn end(&mut self, why: Ending) {
        if let Some(open) = &mut self.open {
            open.ending.get_or_insert(why);
            open.kick.send_modify(|count| *count += 1);
        }
    }

    /// Takes an order unless it is older than the one held.
    pub(super) fn desire(&mut self, order: OrderRecord) {
        if let Some(held) = &self.desired {
            let (new, old) = (
                (order.epoch, order.generation),
                (held.epoch, held.generation),
            );
            if new < old || *held == order {
                return;
            }
            if new == old {
                tracing::error!(
                    epoch = order.epoch,
                    generation = order.generation,
                    "two orders with one number: the first one stays"
                );
                return;
            }
        }
        self.desired = Some(order);
        self.kick();
    }

    pub(super) fn settle(&mut self, id: &str) {
        let before = self.notices.len();
        self.notices.retain(|pending| pending.notice.id != id);
        if self.notices.len() < before {
            self.settled.push_back(id.to_owned());
            while self.settled.len() > SETTLED {
                self.settled.pop_front();
            }
            self.kick();
        }
    }

    /// Looks for signs that two machines share this identity: a boot that comes back after another one, or live
    /// sessions that push each other out. Gives what to tell.
    pub(super) fn cloned(&mut self, boot: &str, was_live: bool, now_mono: u64) -> Option<String> {
        let mut sign = None;
        let known = self.boots.iter().any(|seen| seen == boot);
        let current = self.boots.back().is_some_and(|seen| seen == boot);
        if known && !current {
            sign = Some(
                "two machines use the certificate of this node: a boot that was replaced came back",
            );
        }
        if !current && !boot.is_empty() {
            self.boots.retain(|seen| seen != boot);
            self.boots.push_back(boot.to_owned());
            while self.boots.len() > BOOTS {
                self.boots.pop_front();
            }
        }
        if was_live {
            self.replaced_at.push_back(now_mono);
            self.replaced_at
                .retain(|at| now_mono.saturating_sub(*at) <= REPLACED_WITHIN_MS);
            if self.replaced_at.len() >= REPLACED {
                self.replaced_at.clear();
                sign = Some(
                    "two agents use the certificate of this node: their sessions push each other out",
                );
            }
        }
        sign.map(str::to_owned)
    }

    /// A notice of the coordinator's own about this node.
    pub(super) fn alarm(&mut self, message: String, now: UnixMs, now_mono: u64) {
        self.clones += 1;
        let id = format!("clone-{}-{}", now.0, self.clones);
        if self.notices.len() < NOTICES {
            self.notices.push_back(Pending {
                notice: v1::Notice {
                    id,
                    kind: "identity_cloned".into(),
                    at_unix_ms: now.0,
                    message,
                    ..v1::Notice::default()
                },
                taken: now_mono,
                seq: None,
            });
        }
    }
}
