//! Reading the pools: concurrently, each with its own result, the last good reading kept with its age. Trouble with one
//! pool stays with that pool.
//!
//! Called at the start of each cycle. Knows actuators, decides only when a pool is read again.

use crate::config::Config;
use crate::ports::actuate::{ActuateError, Actuator, PoolReading};
use drover_core::model::{InstanceId, Millis, PoolId, PoolKind};
use futures::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An Auto Scaling group is not read more often than this while nothing is coming.
const CLOUD_PAUSE: Millis = Millis(5_000);
/// And while something is.
const CLOUD_PAUSE_BUSY: Millis = Millis(1_500);
/// After failures the pause doubles from this to [`LONGEST_PAUSE`].
const FAILED_PAUSE: Millis = Millis(2_000);
/// Longest pause after failures.
const LONGEST_PAUSE: Millis = Millis(120_000);
/// A reading older than this may not be grown by either.
pub const GROW_AGE: Millis = Millis(300_000);

/// What is known of one pool's provider.
#[derive(Debug, Clone, Default)]
pub struct PoolWatch {
    /// Last good reading.
    pub reading: Option<Arc<PoolReading>>,
    /// When it was made, monotonic.
    pub read_mono: Millis,
    /// Good readings so far.
    pub readings: u64,
    /// Why the last attempt failed.
    pub error: Option<ActuateError>,
    /// Failed attempts in a row.
    pub failures: u32,
    /// Not read again before this, monotonic.
    next: Millis,
    /// Good readings in a row in which an instance of a node was absent.
    pub absent: BTreeMap<InstanceId, u32>,
}

/// Every pool's provider.
pub struct Pools {
    actuators: Vec<Arc<dyn Actuator>>,
    watches: BTreeMap<PoolId, PoolWatch>,
}

impl Pools {
    /// With the actuators that `app` chose; one per kind.
    #[must_use]
    pub fn new(actuators: Vec<Arc<dyn Actuator>>) -> Self {
        Self {
            actuators,
            watches: BTreeMap::new(),
        }
    }

    /// Other actuators from now on; what is known of the pools stays.
    pub fn replace(&mut self, actuators: Vec<Arc<dyn Actuator>>) {
        self.actuators = actuators;
    }

    /// What drives pools of this kind.
    #[must_use]
    pub fn actuator(&self, kind: PoolKind) -> Option<Arc<dyn Actuator>> {
        self.actuators
            .iter()
            .find(|found| found.kind() == kind)
            .cloned()
    }

    /// What is known of a pool.
    #[must_use]
    pub fn watch(&self, pool: &PoolId) -> Option<&PoolWatch> {
        self.watches.get(pool)
    }

    /// For counting what is absent.
    pub fn watch_mut(&mut self, pool: &PoolId) -> Option<&mut PoolWatch> {
        self.watches.get_mut(pool)
    }

    /// Something was changed there: read it in the next cycle.
    pub fn stale(&mut self, pool: &PoolId) {
        if let Some(watch) = self.watches.get_mut(pool) {
            watch.next = Millis::ZERO;
        }
    }

    /// The last good readings.
    #[must_use]
    pub fn readings(&self) -> BTreeMap<PoolId, Arc<PoolReading>> {
        self.watches
            .iter()
            .filter_map(|(pool, watch)| Some((pool.clone(), watch.reading.clone()?)))
            .collect()
    }

    /// Reads every pool that is due. `coming` says whether something was asked of a pool and has not arrived.
    pub async fn read(
        &mut self,
        config: &Config,
        mono: Millis,
        coming: impl Fn(&PoolId) -> bool,
    ) -> Vec<PoolId> {
        let mut due: BTreeMap<PoolKind, Vec<PoolId>> = BTreeMap::new();
        for pool in &config.pools {
            let watch = self.watches.entry(pool.name.clone()).or_default();
            if watch.next <= mono {
                due.entry(pool.kind()).or_default().push(pool.name.clone());
            }
        }
        let reads = due.into_iter().map(|(kind, pools)| {
            let actuator = self.actuator(kind);
            async move {
                let found = match actuator {
                    Some(actuator) => actuator.read(&pools).await,
                    None => pools
                        .into_iter()
                        .map(|pool| (pool, Err(no_actuator(kind))))
                        .collect(),
                };
                (kind, found)
            }
        });
        let mut read = Vec::new();
        for (kind, results) in join_all(reads).await {
            for (pool, result) in results {
                let busy = coming(&pool);
                let Some(watch) = self.watches.get_mut(&pool) else {
                    continue;
                };
                match result {
                    Ok(reading) => {
                        watch.reading = Some(Arc::new(reading));
                        watch.read_mono = mono;
                        watch.readings += 1;
                        watch.error = None;
                        watch.failures = 0;
                        let pause = match (kind, busy) {
                            (PoolKind::Asg, false) => CLOUD_PAUSE,
                            (PoolKind::Asg, true) => CLOUD_PAUSE_BUSY,
                            _ => Millis::ZERO,
                        };
                        watch.next = Millis(mono.0.saturating_add(pause.0));
                        read.push(pool);
                    }
                    Err(error) => {
                        watch.failures = watch.failures.saturating_add(1);
                        let doubled = FAILED_PAUSE.0 << (watch.failures - 1).min(8);
                        let pause = doubled.min(LONGEST_PAUSE.0);
                        watch.next = Millis(mono.0.saturating_add(pause));
                        watch.error = Some(error);
                    }
                }
            }
        }
        read
    }
}

fn no_actuator(kind: PoolKind) -> ActuateError {
    ActuateError {
        kind: drover_core::model::FailureKind::Config,
        code: String::new(),
        message: format!("this build drives no pools of kind {kind:?}"),
    }
}
