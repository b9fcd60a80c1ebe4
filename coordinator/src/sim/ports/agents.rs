//! Virtual agents behind [`AgentLink`]: every node that is up reports at every moment, and acts on orders at once or
//! after the delay that the config names.

use super::super::stage::{Event, Shared, Stage};
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

/// What is known of an agent now: a silent one said what it said last.
fn said(stage: &mut Stage, at: usize) -> Arc<AgentView> {
    if stage.is_silent(at) {
        return stage.nodes[at].unheard();
    }
    let (wall, mono) = (stage.wall(), stage.elapsed().0);
    stage.nodes[at].heard(wall, mono)
}

impl AgentLink for Agents {
    fn views(&self) -> Vec<Arc<AgentView>> {
        let mut stage = self.stage.lock();
        let all: Vec<usize> = stage.agents.values().copied().collect();
        all.into_iter().map(|at| said(&mut stage, at)).collect()
    }

    fn view(&self, node: &NodeId) -> Option<Arc<AgentView>> {
        let mut stage = self.stage.lock();
        let at = stage.agents.get(node).copied()?;
        Some(said(&mut stage, at))
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
        // As a real agent does: an order of the past changes nothing (I10).
        let known = stage.nodes[at].order.as_ref();
        if known.is_some_and(|k| (k.epoch, k.generation) > (order.epoch, order.generation)) {
            return;
        }
        stage.nodes[at].order = Some(order);
        let heard = stage.mishaps.silent.get(&at).copied();
        let when = stage.now.after(stage.order_delay);
        let when = heard.map_or(when, |until| until.max(when));
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
