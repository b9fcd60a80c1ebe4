//! The agents' side of [`crate::ports::link::AgentLink`]: one slot per node with what it last said, what it should be,
//! and its open session. `serve/agents` feeds it; `control` reads it through the port. Does no I/O, keeps nothing
//! durable: agents say it all again after a restart.

mod session;
mod slot;

use self::slot::Slot;
use crate::ports::clock::Clock;
use crate::ports::link::{AgentLink, AgentNotice, AgentView};
use crate::records::OrderRecord;
use drover_core::model::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

pub use session::{Ending, LinkError, Opening, SessionLink, Work};

/// Nodes that were forgotten are remembered, so that what still runs there is not taken for a new node. At most this
/// many.
const FORGOTTEN: usize = 100_000;

#[derive(Default)]
struct Table {
    slots: BTreeMap<NodeId, Slot>,
    forgotten: BTreeSet<NodeId>,
    sessions: u64,
    stopping: Option<Ending>,
}

/// All agents.
pub struct Hub {
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
    changed: watch::Sender<u64>,
}

impl Hub {
    /// Nobody yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            table: Mutex::default(),
            changed: watch::channel(0).0,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change is complete before the lock goes: after a panic elsewhere the table is still sound.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// True when control has forgotten this node in this process (revoked, gone).
    #[must_use]
    pub fn is_forgotten(&self, node: &NodeId) -> bool {
        self.lock().forgotten.contains(node)
    }

    /// True when control has said in this process what this node should be.
    #[must_use]
    pub fn is_desired(&self, node: &NodeId) -> bool {
        let table = self.lock();
        table
            .slots
            .get(node)
            .is_some_and(|slot| slot.desired.is_some())
    }

    /// Ends the session of a node that is in quarantine; what it last said stays.
    pub fn quarantine(&self, node: &NodeId) {
        if let Some(slot) = self.lock().slots.get_mut(node) {
            slot.end(Ending::Quarantined);
        }
        self.wake();
    }

    /// Ends all sessions and opens no more: the coordinator stops, or leads no longer.
    pub fn stop(&self, why: Ending) {
        let mut table = self.lock();
        table.stopping = Some(why);
        for slot in table.slots.values_mut() {
            slot.end(why);
        }
    }
}

impl AgentLink for Hub {
    fn views(&self) -> Vec<Arc<AgentView>> {
        let table = self.lock();
        table
            .slots
            .values()
            .filter_map(|slot| slot.view.clone())
            .collect()
    }

    fn view(&self, node: &NodeId) -> Option<Arc<AgentView>> {
        self.lock().slots.get(node)?.view.clone()
    }

    fn notices(&self) -> Vec<AgentNotice> {
        let table = self.lock();
        let mut all: Vec<(u64, AgentNotice)> = table
            .slots
            .iter()
            .flat_map(|(node, slot)| {
                slot.notices.iter().map(|pending| {
                    let notice = AgentNotice {
                        node: node.clone(),
                        notice: pending.notice.clone(),
                    };
                    (pending.taken, notice)
                })
            })
            .collect();
        all.sort_by_key(|(taken, _)| *taken);
        all.into_iter().map(|(_, notice)| notice).collect()
    }

    fn settle_notices(&self, ids: &[(NodeId, String)]) {
        let mut table = self.lock();
        for (node, id) in ids {
            if let Some(slot) = table.slots.get_mut(node) {
                slot.settle(id);
            }
        }
    }

    fn desire(&self, node: &NodeId, order: OrderRecord) {
        let mut table = self.lock();
        table.forgotten.remove(node);
        table.slots.entry(node.clone()).or_default().desire(order);
    }

    fn forget(&self, node: &NodeId) {
        let mut table = self.lock();
        if let Some(mut slot) = table.slots.remove(node) {
            slot.end(Ending::Forgotten);
        }
        if table.forgotten.len() >= FORGOTTEN {
            table.forgotten.pop_first();
        }
        table.forgotten.insert(node.clone());
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests;
