//! Nodes that joined, and whose time to become ready is over while they are faulty: a launch of which nothing was ever ready
//! is as much a miss as one that never joined. Else a template without a GPU driver would be asked for again and again, as
//! fast as its nodes are replaced (I11).
//!
//! Called by the cycle after misses. Decides nothing about the nodes: what they hold is looked at by `requests`.

use super::misses::count_miss;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::tx::Tx;
use drover_core::model::{LaunchId, PoolKind};
use std::collections::{BTreeMap, BTreeSet};

impl Control {
    /// Notes them, and counts one miss for each launch.
    pub(in crate::control) async fn take_unready(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        let mut found: BTreeMap<LaunchId, Vec<usize>> = BTreeMap::new();
        for (at, node) in round.fleet.iter().enumerate() {
            let kind = node.pool.as_ref().and_then(|pool| self.config.pool(pool));
            let owned = kind.is_some_and(|pool| pool.kind() != PoolKind::Static);
            let told = (node.record.as_ref()).is_none_or(|record| record.unready_at.is_some());
            if let (Some(launch), true, false) = (&node.launch, owned, told)
                && node.faulty.is_some()
                && self.never_ready(round, node).is_some()
            {
                found.entry(launch.clone()).or_default().push(at);
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        // Launches that were counted, or that brought something that was ready.
        let mut known: BTreeSet<LaunchId> = BTreeSet::new();
        for node in &round.fleet {
            let record = node.record.as_ref();
            let settled = record.is_some_and(|r| r.ready_at.is_some() || r.unready_at.is_some());
            known.extend(node.launch.clone().filter(|_| settled));
        }
        for (launch, nodes) in found {
            let mut tx = Tx::new();
            let pool = nodes
                .iter()
                .find_map(|at| round.fleet.get(*at)?.pool.clone());
            for node in nodes.iter().filter_map(|at| round.fleet.get(*at)) {
                // What does not fit follows in the next cycle, and is not counted again.
                if tx.room() <= 1 {
                    round.again = true;
                    break;
                }
                if let Some(mut record) = node.record.clone() {
                    record.unready_at = Some(round.now);
                    tx.put_node(&round.ledger, &node.id, record);
                }
            }
            if let Some(pool) = pool.filter(|_| !known.contains(&launch)) {
                count_miss(round, &mut tx, &pool);
            }
            self.commit(round, tx).await?;
        }
        self.rejoin(round);
        Ok(())
    }
}
