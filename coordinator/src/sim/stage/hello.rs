//! Agents that meet a coordinator: enrolment, and the Hello after it has started, as `serve` takes them.
//!
//! Called by the engine before each cycle. Writes to the coordinator's own store, which can die at it.

use super::{Shared, Stage};
use crate::control::orders::{self, Met, Obeyed};
use crate::ports::store::{Op, Store};
use crate::records::{NodeRecord, OrderRecord, keys};
use crate::sim::engine::SimError;
use std::collections::BTreeSet;

async fn put(store: &dyn Store, key: String, value: Vec<u8>) -> Result<(), SimError> {
    let op = Op::Put(key, value);
    let written = store.commit(store.fence(), &[], &[op]).await;
    written.map(|_| ()).map_err(SimError::Store)
}

impl Stage {
    /// Writes the records of agents that came up, as enrolment does.
    pub(in crate::sim) async fn enrol(shared: &Shared, store: &dyn Store) -> Result<(), SimError> {
        let records: Vec<NodeRecord> = {
            let mut stage = shared.lock();
            let fresh = std::mem::take(&mut stage.enrolling);
            let now = stage.wall();
            fresh
                .into_iter()
                .filter_map(|at| Some(stage.nodes.get(at)?.record(now)))
                .collect()
        };
        for record in records {
            let key = keys::named(keys::NODE, record.id.as_str());
            let value = serde_json::to_vec(&record).map_err(SimError::record)?;
            put(store, key, value).await?;
        }
        Ok(())
    }

    /// Agents that are heard and have said no Hello yet say it: their orders are met.
    pub(in crate::sim) async fn greet(shared: &Shared, store: &dyn Store) -> Result<(), SimError> {
        let met: Vec<(String, Option<OrderRecord>)> = {
            let mut stage = shared.lock();
            let all = std::mem::take(&mut stage.greeting);
            let (silent, heard): (BTreeSet<usize>, BTreeSet<usize>) =
                all.into_iter().partition(|at| stage.is_silent(*at));
            stage.greeting = silent;
            let up = heard.iter().filter_map(|at| stage.nodes.get(*at));
            up.filter(|node| stage.agents.contains_key(&node.id))
                .map(|node| {
                    (
                        keys::named(keys::ORDER, node.id.as_str()),
                        node.order.clone(),
                    )
                })
                .collect()
        };
        for (key, obeyed) in met {
            let held = store.get(&key).await?;
            let held =
                held.and_then(|entry| serde_json::from_slice::<OrderRecord>(&entry.value).ok());
            let highest = obeyed.as_ref().map_or(0, |order| order.epoch);
            let obeyed = obeyed.as_ref().map(|order| Obeyed {
                number: (order.epoch, order.generation),
                desired: order.desired,
                drain: order
                    .drain
                    .as_ref()
                    .map(|drain| (drain.id.0.as_str(), order.reason.as_str())),
            });
            match orders::met(held.as_ref(), highest, obeyed.as_ref()) {
                Met::Stands => {}
                Met::Raised(order) | Met::Found(order) => {
                    let value = serde_json::to_vec(&order).map_err(SimError::record)?;
                    put(store, key, value).await?;
                }
            }
        }
        Ok(())
    }
}
