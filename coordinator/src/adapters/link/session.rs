//! One session's handle on the hub: what the agent says goes in (`said`), what is to be sent comes out. Held by the
//! session's task in `serve/agents`; dropping it closes the session.

mod said;

use super::Hub;
use super::slot::{NOTICES, Open, Pending};
use crate::ports::link::AgentView;
use crate::records::OrderRecord;
use drover_core::model::{NodeId, UnixMs};
use drover_proto::v1;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Why a session ends from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// The same node opened a newer one.
    #[error("the node opened a newer session")]
    Replaced,
    /// Revoked, or gone.
    #[error("this node was revoked or removed")]
    Forgotten,
    /// Two keys claim its instance.
    #[error(
        "this node is in quarantine: another key claimed its instance (`drover nodes readmit` lets it enrol once more)"
    )]
    Quarantined,
    /// The coordinator stops.
    #[error("the coordinator stops")]
    Stopping,
    /// Another coordinator leads now.
    #[error("this coordinator no longer leads")]
    Fenced,
}

/// Why a message of an agent was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The session is over.
    #[error(transparent)]
    Ended(#[from] Ending),
    /// Too many notices wait.
    #[error("{NOTICES} notices of this node wait already")]
    Notices,
}

/// What an agent's Hello said.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Facts.
    pub facts: v1::Facts,
    /// Highest epoch it has seen.
    pub highest_epoch: u64,
    /// Order in force there.
    pub observed: Option<v1::Order>,
    /// What it really is.
    pub actual: Option<v1::NodeActual>,
    /// Its wall clock.
    pub now: UnixMs,
}

/// What a session has to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// End, for this reason; nothing else counts then.
    pub end: Option<Ending>,
    /// Send this order.
    pub order: Option<OrderRecord>,
    /// Acknowledge everything up to this.
    pub ack: Option<u64>,
}

/// A session that is open.
pub struct SessionLink {
    hub: Arc<Hub>,
    node: NodeId,
    id: u64,
    kicked: watch::Receiver<u64>,
    sent: Option<(u64, u64)>,
    /// Messages to acknowledge, in order.
    unacked: VecDeque<u64>,
}

impl Hub {
    /// Opens a session; an older one of the same node ends. `record` is the order as it was just committed with an epoch
    /// above all that the node has seen; it is sent only when control has desired something in this process.
    ///
    /// # Errors
    /// The coordinator stops.
    pub fn open(
        self: &Arc<Self>,
        node: &NodeId,
        hello: Opening,
        record: Option<OrderRecord>,
    ) -> Result<SessionLink, Ending> {
        let now = self.clock.wall();
        let mono = self.clock.mono().0;
        let (kick, mut kicked) = watch::channel(0);
        kicked.mark_changed();
        let mut table = self.lock();
        if let Some(why) = table.stopping {
            return Err(why);
        }
        table.sessions += 1;
        let id = table.sessions;
        table.forgotten.remove(node);
        let slot = table.slots.entry(node.clone()).or_default();
        let was_live = slot.open.is_some();
        slot.end(Ending::Replaced);
        if let Some(message) = slot.cloned(&hello.facts.boot_id, was_live, mono) {
            tracing::warn!(node = %node, "{message}");
            slot.alarm(message, now, mono);
        }
        if slot.desired.is_some()
            && let Some(record) = record
        {
            slot.desired = Some(record);
        }
        let offset = i128::from(hello.now.0) - i128::from(now.0);
        let before = slot.view.as_deref();
        slot.view = Some(Arc::new(AgentView {
            node: node.clone(),
            connected: true,
            last_seen: now,
            last_seen_mono: mono,
            facts: Arc::new(hello.facts),
            telemetry: before.and_then(|view| view.telemetry.clone()),
            workloads: None,
            workloads_at: now,
            conditions: Vec::new(),
            actual: hello.actual,
            order_status: before.and_then(|view| view.order_status.clone()),
            observed: hello.observed,
            highest_epoch: hello.highest_epoch,
            clock_offset_ms: i64::try_from(offset).unwrap_or(if offset < 0 {
                i64::MIN
            } else {
                i64::MAX
            }),
        }));
        slot.open = Some(Open {
            id,
            kick,
            ending: None,
        });
        drop(table);
        self.wake();
        Ok(SessionLink {
            hub: self.clone(),
            node: node.clone(),
            id,
            kicked,
            sent: None,
            unacked: VecDeque::new(),
        })
    }
}

impl SessionLink {
    /// Whose it is.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Resolves when there may be work.
    pub async fn kicked(&mut self) {
        if self.kicked.changed().await.is_err() {
            // Forgotten or replaced: `work` says which; the sender is gone, so there is nothing to wait for any more.
            self.kicked = watch::channel(0).1;
        }
    }

    /// What there is to do now. Each thing is handed out once.
    pub fn work(&mut self) -> Work {
        let table = self.hub.lock();
        let slot = table.slots.get(&self.node);
        let Some((slot, open)) = slot.and_then(|slot| Some((slot, slot.open.as_ref()?))) else {
            return Work::ended(Ending::Forgotten);
        };
        if open.id != self.id {
            return Work::ended(Ending::Replaced);
        }
        if let Some(why) = open.ending {
            return Work::ended(why);
        }
        let order = slot
            .desired
            .as_ref()
            .filter(|order| self.sent != Some((order.epoch, order.generation)))
            .cloned();
        if let Some(order) = &order {
            self.sent = Some((order.epoch, order.generation));
        }
        let waits = |pending: &Pending| match pending.seq {
            Some((session, seq)) if session == self.id => Some(seq),
            _ => None,
        };
        let waiting = slot.notices.iter().filter_map(waits).min();
        let mut ack = None;
        while let Some(seq) = self.unacked.front().copied() {
            if waiting.is_some_and(|first| seq >= first) {
                break;
            }
            ack = Some(seq);
            self.unacked.pop_front();
        }
        Work {
            end: None,
            order,
            ack,
        }
    }

    /// What the coordinator means now: (epoch, generation) of the order last sent in this session.
    #[must_use]
    pub fn meant(&self) -> Option<(u64, u64)> {
        self.sent
    }
}

impl Work {
    fn ended(why: Ending) -> Self {
        Self {
            end: Some(why),
            ..Self::default()
        }
    }
}

impl Drop for SessionLink {
    fn drop(&mut self) {
        let mut table = self.hub.lock();
        let Some(slot) = table.slots.get_mut(&self.node) else {
            return;
        };
        if slot.open.as_ref().is_none_or(|open| open.id != self.id) {
            return;
        }
        slot.open = None;
        if let Some(view) = slot.view.as_deref() {
            let mut view = view.clone();
            view.connected = false;
            slot.view = Some(Arc::new(view));
        }
        drop(table);
        self.hub.wake();
    }
}
