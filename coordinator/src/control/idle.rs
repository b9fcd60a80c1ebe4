//! Idle-since times: durable, written only when they change (SC-74).
//!
//! Called by the cycle after drains and requests. Held by a request is not idle; a witness that gave no answer for long
//! restarts the time, since work may have come and gone unseen.

use super::cycle::{Control, CycleError, Round};
use super::tx::Tx;
use crate::ports::store::{Guard, Op};
use crate::records::{IdleRecord, keys};
use drover_core::model::{Busy, Cordon, Millis, NodeId, UnixMs};

/// Witnesses may be without an answer this long before the idle time starts anew.
const BLIND: Millis = Millis::minutes(5);
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

    /// Starts and ends idle times.
    pub(super) async fn keep_idle(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut starts: Vec<NodeId> = Vec::new();
        let mut ends: Vec<NodeId> = Vec::new();
        for node in round.fleet.iter().filter(|node| node.joined()) {
            // Under a person's cordon the time does not run: it starts when the node is given back (SC-41).
            let held =
                !node.reserved.is_empty() || matches!(node.cordon, Some(Cordon::Person { .. }));
            match &node.busy {
                Busy::Idle { .. } if !held => {
                    let restarted = self
                        .seen
                        .unknown
                        .remove(&node.id)
                        .is_some_and(|since| round.mono.0.saturating_sub(since.0) > BLIND.0);
                    let first = self.seen.judged.insert(node.id.clone());
                    let stale = restarted || (first && self.seen.blind > BLIND);
                    if node.idle_since.is_none() || stale {
                        starts.push(node.id.clone());
                    }
                }
                Busy::Unknown { .. } if !held => {
                    self.seen
                        .unknown
                        .entry(node.id.clone())
                        .or_insert(round.mono);
                }
                _ => {
                    self.seen.judged.insert(node.id.clone());
                    self.seen.unknown.remove(&node.id);
                    if node.idle_since.is_some() {
                        ends.push(node.id.clone());
                    }
                }
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
