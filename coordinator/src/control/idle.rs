//! Idle-since times: durable, written only when they change (SC-74).
//!
//! Called by the cycle after drains and requests. Held by a request is not idle; a witness that gave no answer for long
//! restarts the time, since work may have come and gone unseen.

use super::cycle::{Control, CycleError, Round};
use super::tx::Tx;
use crate::ports::store::{Guard, Op};
use crate::records::{IdleRecord, keys};
use drover_core::model::{Busy, Cordon, Millis, NodeId, UnixMs};
use drover_core::rules::idle::{Since, since_after};

/// The "alive" record is written this often.
const ALIVE: Millis = Millis(60_000);

impl Control {
    /// Writes that somebody looks; at the first cycle reads how long nobody did.
    pub(super) async fn keep_alive(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let store = self.journal.store().clone();
        let due = match self.seen.alive {
            None => {
                let last = store.get(keys::ALIVE).await?;
                let last =
                    last.and_then(|entry| serde_json::from_slice::<UnixMs>(&entry.value).ok());
                self.seen.blind = last.map_or(Millis::ZERO, |last| round.now.since(last));
                true
            }
            Some(at) => round.mono.0.saturating_sub(at.0) >= ALIVE.0,
        };
        if due {
            let value = round.now.0.to_string().into_bytes();
            let none: [Guard; 0] = [];
            let op = Op::Put(keys::ALIVE.to_owned(), value);
            match store.commit(store.fence(), &none, &[op]).await {
                Ok(_) => self.seen.alive = Some(round.mono),
                Err(error @ crate::ports::store::CommitError::Fenced { .. }) => {
                    return Err(CycleError::Fenced(error));
                }
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the store cannot be written"
                    );
                }
            }
        }
        Ok(())
    }

    /// A node's witnesses answer: for how long had nobody said or asked before?
    fn answered(&mut self, node: &NodeId, mono: Millis) -> Millis {
        let unknown = self.seen.unknown.remove(node);
        let silent = unknown.map_or(0, |since| mono.0.saturating_sub(since.0));
        let first = self.seen.judged.insert(node.clone());
        let blind = if first { self.seen.blind.0 } else { 0 };
        Millis(silent.max(blind))
    }

    /// Starts and ends idle times.
    pub(super) async fn keep_idle(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut starts: Vec<NodeId> = Vec::new();
        let mut ends: Vec<NodeId> = Vec::new();
        for node in round.fleet.iter().filter(|node| node.joined()) {
            // Under a person's cordon the time does not run: it starts when the node is given back (SC-41).
            let held =
                !node.reserved.is_empty() || matches!(node.cordon, Some(Cordon::Person { .. }));
            let silent = match &node.busy {
                Busy::Unknown { .. } if !held => {
                    let since = self.seen.unknown.entry(node.id.clone());
                    since.or_insert(round.mono);
                    Millis::ZERO
                }
                _ => self.answered(&node.id, round.mono),
            };
            match since_after(&node.busy, held, node.idle_since.is_some(), silent) {
                Since::Keep => {}
                Since::Start => starts.push(node.id.clone()),
                Since::End => ends.push(node.id.clone()),
            }
        }
        let known: Vec<NodeId> = round.ledger.idle.keys().cloned().collect();
        ends.extend(
            known
                .into_iter()
                .filter(|id| !round.ledger.nodes.contains_key(id)),
        );
        let mut tx = Tx::new();
        for id in starts {
            if tx.room() == 0 {
                self.commit(round, std::mem::take(&mut tx)).await?;
            }
            tx.put_idle(&round.ledger, &id, IdleRecord { since: round.now });
        }
        for id in ends {
            if tx.room() == 0 {
                self.commit(round, std::mem::take(&mut tx)).await?;
            }
            tx.delete_idle(&round.ledger, &id);
        }
        self.commit(round, tx).await?;
        Ok(())
    }
}
