//! The world with a wall clock and, when configured, a process per instance.
//!
//! Used by the gRPC service of `drover sim-cloud` and, embedded, by the `sim` pool.

use super::config::InstanceCommand;
use super::process::{self, Spawner};
use crate::world::{
    Ask, Granted, InstanceRecord, InstanceStatus, Tally, World, WorldError, WorldEvent, WorldSpec,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::process::Child;

/// What the cloud has seen beside its own tally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Witness {
    /// Processes that ended without being asked to.
    pub died: u32,
    /// Jobs that were alive when their instance was terminated.
    pub killed_jobs: u32,
}

struct Living {
    world: World,
    children: BTreeMap<String, Child>,
    witness: Witness,
}

/// The engine. Cheap to share.
pub struct Engine {
    living: Mutex<Living>,
    spawner: Option<Spawner>,
    wake: tokio::sync::Notify,
}

/// What is left of an instance's description: enough for its metadata service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Region.
    pub region: String,
}

impl Engine {
    /// A cloud whose instances are records only, or with `command` real processes.
    #[must_use]
    pub fn new(
        spec: WorldSpec,
        seed: u64,
        command: Option<(InstanceCommand, PathBuf, SocketAddr)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            living: Mutex::new(Living {
                world: World::new(spec, seed, now_ms()),
                children: BTreeMap::new(),
                witness: Witness::default(),
            }),
            spawner: command.map(|(command, dir, metadata)| Spawner::new(command, dir, metadata)),
            wake: tokio::sync::Notify::new(),
        })
    }

    /// Lets time pass until the task is dropped: starts what has booted, notices what died.
    pub async fn run(&self) {
        loop {
            let next = {
                let mut living = self.lock();
                self.advance(&mut living);
                living.world.next_event_ms()
            };
            let wait = next.map_or(500, |at| at.saturating_sub(now_ms()).clamp(5, 500));
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait)) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Launches; see [`World::launch`].
    ///
    /// # Errors
    /// Those of the world.
    pub fn launch(&self, ask: &Ask) -> Result<Granted, WorldError> {
        let granted = self.lock().world.launch(ask, now_ms());
        self.wake.notify_one();
        granted
    }

    /// Terminates one instance and everything that runs on it.
    ///
    /// # Errors
    /// Those of the world.
    pub fn terminate(&self, id: &str) -> Result<(), WorldError> {
        let mut living = self.lock();
        living.world.terminate(id, now_ms())?;
        self.end(&mut living, id);
        Ok(())
    }

    /// Reads the world as of now.
    pub fn with_world<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        let mut living = self.lock();
        self.advance(&mut living);
        read(&living.world)
    }

    /// What was counted, cost so far (millionths of a USD), and what is running.
    #[must_use]
    pub fn ledger(&self) -> (Tally, Witness, u64, u32) {
        let living = self.lock();
        let cost = living.world.cost_micro_usd(now_ms());
        (
            living.world.tally().clone(),
            living.witness,
            cost,
            living.world.running(),
        )
    }

    /// Facts for the metadata service; `None` for an instance that does not run.
    #[must_use]
    pub fn metadata(&self, id: &str) -> Option<Metadata> {
        let living = self.lock();
        let (instance, group, offering) = living.world.instance(id)?;
        (instance.status == InstanceStatus::Running).then(|| Metadata {
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.clone(),
            region: group.region.clone(),
        })
    }

    /// Ends every process; for a cloud that shuts down.
    pub fn shut_down(&self) {
        let mut living = self.lock();
        for (id, child) in std::mem::take(&mut living.children) {
            if let Some(spawner) = &self.spawner {
                let _ = spawner.end_jobs(&id);
            }
            process::end(&child);
            reap(child);
        }
    }

    fn advance(&self, living: &mut Living) {
        for event in living.world.step(now_ms()) {
            match event {
                WorldEvent::Running(id) => self.start(living, &id),
                // Its agent would read it from the instance's metadata, which does not carry it.
                WorldEvent::Notice(..) => {}
                WorldEvent::Interrupted(id) => self.end(living, &id),
            }
        }
        let ended: Vec<String> = living
            .children
            .iter_mut()
            .filter_map(|(id, child)| {
                child
                    .try_wait()
                    .is_ok_and(|status| status.is_some())
                    .then(|| id.clone())
            })
            .collect();
        for id in ended {
            living.children.remove(&id);
            living.witness.died += 1;
            tracing::warn!(instance = %id, "the instance's process ended by itself");
        }
    }

    /// Ends what runs for an instance that has ended.
    fn end(&self, living: &mut Living, id: &str) {
        if let Some(spawner) = &self.spawner {
            living.witness.killed_jobs += spawner.end_jobs(id);
        }
        if let Some(child) = living.children.remove(id) {
            process::end(&child);
            reap(child);
        }
    }

    fn start(&self, living: &mut Living, id: &str) {
        let Some(spawner) = &self.spawner else { return };
        let Some((instance, group, offering)) = living.world.instance(id) else {
            return;
        };
        if !instance.joins {
            return;
        }
        match spawner.start(instance, group, offering) {
            Ok(child) => {
                tracing::info!(instance = %id, group = %group.name, "instance runs");
                living.children.insert(id.to_owned(), child);
            }
            Err(error) => {
                living.witness.died += 1;
                tracing::error!(instance = %id, error = &error as &dyn std::error::Error, "instance has no process");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Living> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for an ended process in the background, so that it leaves no zombie.
fn reap(mut child: Child) {
    tokio::spawn(async move {
        let _ = child.wait().await;
    });
}

/// Wall clock, milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |span| {
            u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
        })
}

/// State in the wire's words.
#[must_use]
pub fn state_of(instance: &InstanceRecord) -> &'static str {
    match instance.status {
        InstanceStatus::Pending => "pending",
        InstanceStatus::Running => "running",
        InstanceStatus::Terminated => "terminated",
    }
}
