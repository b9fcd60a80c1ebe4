//! Virtual agents behind [`AgentLink`]: every node that is up reports at every moment, and acts on orders at once or
//! after the delay that the config names.

use super::super::stage::{Event, Shared};
use crate::ports::link::{AgentLink, AgentNotice, AgentView};
use crate::records::OrderRecord;
use drover_core::model::NodeId;
use std::sync::Arc;
use tokio::sync::watch;

/// All agents.
pub(in crate::sim) struct Agents {
    stage: Shared,
    changed: watch::Sender<u64>,
}

impl Agents {
    pub(in crate::sim) fn new(stage: Shared) -> Self {
        Self {
            stage,
            changed: watch::channel(0).0,
        }
    }
}

impl AgentLink for Agents {
    fn views(&self) -> Vec<Arc<AgentView>> {
        let mut stage = self.stage.lock();
        let (now, mono) = (stage.now, stage.elapsed().0);
        let all: Vec<usize> = stage.agents.values().copied().collect();
        all.into_iter()
            .map(|at| stage.nodes[at].heard(now, mono))
            .collect()
    }

    fn view(&self, node: &NodeId) -> Option<Arc<AgentView>> {
        let mut stage = self.stage.lock();
        let (now, mono) = (stage.now, stage.elapsed().0);
        let at = stage.agents.get(node).copied()?;
        Some(stage.nodes[at].heard(now, mono))
    }

    fn notices(&self) -> Vec<AgentNotice> {
        self.stage.lock().notices.clone()
    }

    fn settle_notices(&self, settled: &[(NodeId, String)]) {
        let mut stage = self.stage.lock();
        stage.notices.retain(|told| {
            let is = |(node, id): &(NodeId, String)| *node == told.node && *id == told.notice.id;
            !settled.iter().any(is)
        });
    }

    fn desire(&self, node: &NodeId, order: OrderRecord) {
        let mut stage = self.stage.lock();
        let Some(at) = stage.agents.get(node).copied() else {
            return;
        };
        stage.nodes[at].order = Some(order);
        let when = stage.now.after(stage.order_delay);
        stage.queue.insert((when, Event::Obey { node: at }));
        stage.version += 1;
    }

    fn forget(&self, node: &NodeId) {
        self.stage.lock().agents.remove(node);
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
