//! The simulated scheduler behind [`DemandSource`]: pending jobs as classes, alike ones together, each gang for itself;
//! and what it has placed, with exact amounts.

use super::super::stage::Shared;
use super::super::stage::jobs::{Key, SOURCE};
use crate::ports::demand::{DemandError, DemandReading, DemandSource, Members, Occupied};
use crate::sim::fault::Kind;
use async_trait::async_trait;
use drover_core::model::{Millis, NodeId, UnixMs};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The source, and the classes of its last reading in their order.
pub(in crate::sim) struct Queue {
    stage: Shared,
    hold: Millis,
    told: Arc<Mutex<Vec<Key>>>,
    /// Said again while the source is stale.
    last: Mutex<DemandReading>,
}

impl Queue {
    pub(in crate::sim) fn new(stage: Shared, hold: Millis) -> Self {
        Self {
            stage,
            hold,
            told: Arc::default(),
            last: Mutex::default(),
        }
    }

    /// The classes of the last reading.
    pub(in crate::sim) fn told(&self) -> Vec<Key> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.clone()
    }
}

#[async_trait]
impl DemandSource for Queue {
    fn name(&self) -> &str {
        SOURCE
    }

    async fn read(&self, now: UnixMs) -> Result<DemandReading, DemandError> {
        let trouble = self.stage.lock().mishaps.source;
        match trouble {
            Some(Kind::SourceFails) => {
                return Err(DemandError {
                    source_name: SOURCE.to_owned(),
                    message: "connection refused".to_owned(),
                });
            }
            Some(Kind::SourceEmpty) => {
                self.told
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                return Ok(DemandReading {
                    at: now,
                    ..DemandReading::default()
                });
            }
            Some(Kind::SourceStale) => {
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                return Ok(last.clone());
            }
            _ => {}
        }
        let found = self.stage.lock().jobs.classes(self.hold, now);
        let mut reading = DemandReading {
            at: now,
            ..DemandReading::default()
        };
        let mut told = Vec::with_capacity(found.len());
        for (key, class, names) in found {
            told.push(key);
            reading.classes.push(class);
            reading.members.push(Members(names));
        }
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone_from(&reading);
        Ok(reading)
    }

    fn running(&self) -> Option<BTreeMap<NodeId, Occupied>> {
        let stage = self.stage.lock();
        if stage.mishaps.source == Some(Kind::SourceFails) {
            return None;
        }
        let busy = stage.agents.iter().filter_map(|(id, at)| {
            let node = stage.nodes.get(*at)?;
            (!node.is_empty()).then(|| (id.clone(), node.occupied().clone()))
        });
        Some(busy.collect())
    }

    fn left(&self) -> u64 {
        self.stage.lock().jobs.left
    }
}
