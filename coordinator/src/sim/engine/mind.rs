//! The coordinator of a simulation: started over the store as it is, and started again when it died.
//!
//! Called by the engine. **Invariant:** it is the coordinator of production; only its ports differ.

use super::{Engine, SimError};
use crate::adapters::clock::ManualClock;
use crate::adapters::store::memory::{Disk, MemoryStore};
use crate::control::commands::Commands;
use crate::control::cycle::{Control, Ports};
use crate::control::journal::Journal;
use crate::ports::store::Store;
use crate::records::keys;
use crate::sim::config::SimConfig;
use crate::sim::ports::agents::Agents;
use crate::sim::ports::cloud::Cloud;
use crate::sim::ports::fragile::{Death, Fragile};
use crate::sim::ports::queue::Queue;
use crate::sim::stage::Shared;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A coordinator over the store as it is.
pub(super) struct Mind {
    pub(super) control: Control,
    pub(super) commands: Commands,
    pub(super) store: Arc<Fragile>,
}

/// What the n-th coordinator of a run draws from. One that starts again draws others: a client token that an earlier one
/// used would be answered with the instances of then.
pub(super) const fn seed_of(seed: u64, starts: u64) -> u64 {
    seed ^ starts.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What a coordinator over this store needs beside it.
pub(super) struct Around<'e> {
    pub(super) stage: &'e Shared,
    pub(super) clock: &'e Arc<ManualClock>,
    pub(super) disk: &'e Disk,
    pub(super) death: &'e Arc<Death>,
    pub(super) queue: &'e Arc<Queue>,
    pub(super) setup: &'e SimConfig,
    pub(super) seed: u64,
}

impl Around<'_> {
    /// Starts a coordinator: whoever led before is fenced.
    pub(super) async fn start(&self) -> Result<Mind, SimError> {
        let inner = MemoryStore::open(self.disk);
        let store = Arc::new(Fragile::new(inner, self.death.clone()));
        let journal = Arc::new(Journal::open(store.clone(), self.clock.clone()).await?);
        let mut control = Control::new(
            self.setup.config.clone(),
            Ports {
                journal,
                link: Arc::new(Agents::new(self.stage.clone())),
                actuators: vec![Arc::new(Cloud(self.stage.clone()))],
                sources: vec![self.queue.clone()],
                clock: self.clock.clone(),
            },
        );
        control.repeatable(self.seed);
        let (commands, _) = control.commands();
        Ok(Mind {
            control,
            commands,
            store,
        })
    }
}

impl Engine {
    /// Another coordinator over the same store.
    pub(super) async fn start(&mut self) -> Result<Mind, SimError> {
        let seed = seed_of(self.seed, self.starts);
        self.starts += 1;
        let around = Around {
            stage: &self.stage,
            clock: &self.clock,
            disk: &self.disk,
            death: &self.death,
            queue: &self.queue,
            setup: &self.setup,
            seed,
        };
        around.start().await
    }

    /// It is the coordinator from now on.
    pub(super) fn take(&mut self, mind: Mind) {
        let old = self.control.planning();
        self.planning.plans += old.plans;
        self.planning.took += old.took;
        self.control = mind.control;
        self.commands = mind.commands;
        self.store = mind.store;
        let mut stage = self.stage.lock();
        stage.greeting = stage.agents.values().copied().collect();
    }

    /// The coordinator has died and starts again. Agents whose record is lost enrol anew.
    pub(super) async fn restart(&mut self) -> Result<(), SimError> {
        self.death.never();
        let mind = self.start().await?;
        self.take(mind);
        let known: BTreeSet<String> = (self.store.list(keys::NODE).await?)
            .into_iter()
            .map(|entry| entry.key)
            .collect();
        let mut stage = self.stage.lock();
        let lost: Vec<usize> = (stage.agents.iter())
            .filter(|(id, _)| !known.contains(&keys::named(keys::NODE, id.as_str())))
            .map(|(_, at)| *at)
            .collect();
        stage.enrolling.extend(lost);
        stage.version += 1;
        Ok(())
    }

    /// It died at what it did.
    pub(super) async fn died(&mut self) -> Result<(), SimError> {
        self.stage.lock().note("the coordinator died".to_owned());
        self.restart().await
    }
}
