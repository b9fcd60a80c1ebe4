//! What a node's Hello does to its order: `control::orders::met` says what, here it is committed.
//!
//! Called by the session before Welcome. Sends nothing.

use super::{ATTEMPTS, Agents, commit_failed, too_contended};
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::Held;
use crate::control::orders::{self, Met, Obeyed};
use crate::ports::store::{CommitError, Guard, Op};
use crate::records::{OrderRecord, keys};
use drover_core::model::NodeId;
use tonic::Status;

impl Agents {
    /// Commits an epoch above everything that the node has seen (I10): orders of a restored store are not stale, and
    /// a node that lies about its epoch hurts only itself. A node without an order gets one only if it keeps work off by
    /// an order that this store has lost.
    pub(super) async fn meet(
        &self,
        node: &NodeId,
        highest: u64,
        obeyed: Option<Obeyed<'_>>,
    ) -> Result<Option<OrderRecord>, Status> {
        let key = keys::named(keys::ORDER, node.as_str());
        for _ in 0..ATTEMPTS {
            let held = self.read::<OrderRecord>(&key).await?;
            let known = held.as_ref().map(|held| &held.value);
            let committed = match orders::met(known, highest, obeyed.as_ref()) {
                Met::Stands => return Ok(held.map(|held| held.value)),
                Met::Raised(order) => self.raise(&key, held, &order).await.map(|()| order),
                Met::Found(order) => self
                    .keep_off(node, &key, held, &order)
                    .await
                    .map(|()| order),
            };
            match committed {
                Ok(order) => {
                    fail::fail_point!("session.epoch_committed");
                    return Ok(Some(order));
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(commit_failed(&error)),
            }
        }
        Err(too_contended())
    }

    /// Past the journal, which takes one commit after the other: after a restart of ours all agents come at once.
    async fn raise(
        &self,
        key: &str,
        held: Option<Held<OrderRecord>>,
        order: &OrderRecord,
    ) -> Result<(), CommitError> {
        let value =
            serde_json::to_vec(order).map_err(|error| CommitError::Backend(error.into()))?;
        let guard = match held {
            Some(held) => Guard::Unchanged(key.to_owned(), held.revision),
            None => Guard::Absent(key.to_owned()),
        };
        let ops = [Op::Put(key.to_owned(), value)];
        let store = self.store();
        store
            .commit(store.fence(), &[guard], &ops)
            .await
            .map(|_| ())
    }

    /// A node keeps work off by an order that this store does not know.
    async fn keep_off(
        &self,
        node: &NodeId,
        key: &str,
        held: Option<Held<OrderRecord>>,
        order: &OrderRecord,
    ) -> Result<(), CommitError> {
        let mut change = Change::new();
        change
            .put(key.to_owned(), order, held.map(|held| held.revision))
            .event(Happening::Cordoned {
                node: node.clone(),
                by: order.by.clone(),
                reason: order.reason.clone(),
            })
            .audit(
                &format!("node/{node}"),
                "order.adopt",
                node.as_str(),
                "the node keeps work off by an order that this store does not know",
            );
        self.parts.journal.commit(change).await.map(|_| ())
    }
}
