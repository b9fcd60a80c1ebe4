//! Reading the pools: concurrently, each with its own result, the last good reading kept with its age. Trouble with one
//! pool stays with that pool.
//!
//! Called at the start of each cycle. Knows actuators, decides only when a pool is read again.

use super::background::Background;
use super::wake::Wake;
use crate::config::Config;
use crate::ports::actuate::{ActuateError, Actuator, NO_SUCH_GROUP, PoolReading};
use drover_core::model::{InstanceId, Millis, PoolId, PoolKind, SiteId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An Auto Scaling group is not read more often than this while nothing is coming.
const CLOUD_PAUSE: Millis = Millis(5_000);
/// And while something is.
const CLOUD_PAUSE_BUSY: Millis = Millis(1_500);
/// After failures the pause doubles from this to [`LONGEST_PAUSE`].
const FAILED_PAUSE: Millis = Millis(2_000);
/// Longest pause after failures.
const LONGEST_PAUSE: Millis = Millis(120_000);
/// A group is gone when so many answers, over at least [`GONE_FOR`], were without it.
const GONE_ANSWERS: u32 = 3;
/// See [`GONE_ANSWERS`].
const GONE_FOR: Millis = Millis(10_000);
/// A reading older than this may not be grown by either.
pub const GROW_AGE: Millis = Millis(300_000);

/// What a provider has answered of a group that is not there.
#[derive(Debug, Clone)]
pub struct Gone {
    /// When the first reading that said so began, monotonic.
    first: Millis,
    /// When the last one began, monotonic.
    pub last: Millis,
    /// Readings that said so, with none between that showed the group.
    answers: u32,
    /// In the provider's words.
    pub why: String,
}

impl Gone {
    /// One answer means nothing: what AWS lists is consistent only after a while, and credentials may have pointed at
    /// another account for a moment.
    #[must_use]
    pub fn certainly(&self) -> bool {
        self.answers >= GONE_ANSWERS && self.last.minus(self.first) >= GONE_FOR
    }
}

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
    /// Its provider answered that there is no such group. Until it is read again; a reading that fails says nothing.
    pub gone: Option<Gone>,
    /// This reading is the first after it was gone.
    pub back: bool,
    /// Not read again before this, monotonic.
    next: Millis,
    /// Something was changed since the reading that is under way began.
    stale: bool,
    /// Good readings in a row in which an instance of a node was absent.
    pub absent: BTreeMap<InstanceId, u32>,
}

/// Every pool's provider.
pub struct Pools {
    actuators: Vec<Arc<dyn Actuator>>,
    watches: BTreeMap<PoolId, PoolWatch>,
    calls: Background<Vec<PoolId>, Reading>,
}

/// What a call for the pools of one kind and site gave.
struct Reading {
    kind: PoolKind,
    begun: Millis,
    pools: Vec<(PoolId, Result<PoolReading, ActuateError>)>,
}

impl Pools {
    /// With the actuators that `app` chose; one per kind.
    #[must_use]
    pub fn new(actuators: Vec<Arc<dyn Actuator>>, wake: Wake) -> Self {
        Self {
            actuators,
            watches: BTreeMap::new(),
            calls: Background::new(wake),
        }
    }

    /// Other actuators from now on; what is known of the pools stays.
    pub fn replace(&mut self, actuators: Vec<Arc<dyn Actuator>>) {
        self.actuators = actuators;
    }

    /// From now on readings are waited for however long they take.
    pub(super) fn wait_for_calls(&mut self) {
        self.calls.wait_for_calls();
    }

    /// Pools that are being read.
    pub(super) fn reading(&self) -> impl Iterator<Item = &PoolId> {
        self.calls.flying().flatten()
    }

    /// When the next pool is read again that was put off after now, monotonic.
    pub(super) fn next_read(&self, now: Millis) -> Option<Millis> {
        let all = self.watches.values().map(|watch| watch.next);
        all.filter(|next| *next > now).min()
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

    /// What was read last and does not hold any more gives way.
    pub(super) fn correct(&mut self, pool: &PoolId, reading: Arc<PoolReading>) {
        if let Some(watch) = self.watches.get_mut(pool) {
            watch.reading = Some(reading);
        }
    }

    /// Something was changed there: read it in the next cycle.
    pub fn stale(&mut self, pool: &PoolId) {
        if let Some(watch) = self.watches.get_mut(pool) {
            watch.next = Millis::ZERO;
            watch.stale = true;
        }
    }

    /// Something was changed at a provider and was not looked at since.
    pub(super) fn is_stale(&self) -> bool {
        self.watches.values().any(|watch| watch.stale)
    }

    /// The last good readings.
    #[must_use]
    pub fn readings(&self) -> BTreeMap<PoolId, Arc<PoolReading>> {
        self.watches
            .iter()
            .filter_map(|(pool, watch)| Some((pool.clone(), watch.reading.clone()?)))
            .collect()
    }

    /// Reads every pool that is due, each site for itself: one that does not answer in a moment is read in the background,
    /// and what it says counts in a later cycle. `coming` says whether something was asked of a pool and has not arrived.
    pub async fn read(
        &mut self,
        config: &Config,
        mono: Millis,
        coming: impl Fn(&PoolId) -> bool,
    ) -> Vec<PoolId> {
        let flying: BTreeSet<PoolId> = self.calls.flying().flatten().cloned().collect();
        let mut due: BTreeMap<(PoolKind, SiteId), Vec<PoolId>> = BTreeMap::new();
        for pool in &config.pools {
            let watch = self.watches.entry(pool.name.clone()).or_default();
            if watch.next <= mono && !flying.contains(&pool.name) {
                watch.stale = false;
                let site = (pool.kind(), pool.site.clone());
                due.entry(site).or_default().push(pool.name.clone());
            }
        }
        for ((kind, _), pools) in due {
            let actuator = self.actuator(kind);
            self.calls.begin(pools.clone(), async move {
                let pools = match actuator {
                    Some(actuator) => actuator.read(&pools).await,
                    None => pools
                        .into_iter()
                        .map(|pool| (pool, Err(no_actuator(kind))))
                        .collect(),
                };
                Reading {
                    kind,
                    begun: mono,
                    pools,
                }
            });
        }
        let mut read = Vec::new();
        for (_, reading) in self.calls.ended().await {
            for (pool, result) in reading.pools {
                let busy = coming(&pool);
                if let Some(watch) = self.watches.get_mut(&pool)
                    && watch.take(result, (reading.kind, busy), reading.begun, mono)
                {
                    read.push(pool);
                }
            }
        }
        read
    }
}

impl PoolWatch {
    /// Takes what a reading gave. True: it was a good one.
    fn take(
        &mut self,
        result: Result<PoolReading, ActuateError>,
        (kind, busy): (PoolKind, bool),
        begun: Millis,
        mono: Millis,
    ) -> bool {
        let (pause, good) = match result {
            Ok(reading) => {
                self.reading = Some(Arc::new(reading));
                self.read_mono = begun;
                self.readings += 1;
                self.error = None;
                self.failures = 0;
                self.back = self.gone.take().is_some();
                let pause = match (kind, busy) {
                    (PoolKind::Asg, false) => CLOUD_PAUSE,
                    (PoolKind::Asg, true) => CLOUD_PAUSE_BUSY,
                    _ => Millis::ZERO,
                };
                (pause.0, true)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if error.code == NO_SUCH_GROUP {
                    let before = self.gone.take();
                    self.gone = Some(Gone {
                        first: before.as_ref().map_or(begun, |gone| gone.first),
                        last: begun,
                        answers: before.map_or(1, |gone| gone.answers.saturating_add(1)),
                        why: error.message.clone(),
                    });
                }
                let doubled = FAILED_PAUSE.0 << (self.failures - 1).min(8);
                self.error = Some(error);
                (doubled.min(LONGEST_PAUSE.0), false)
            }
        };
        self.next = Millis(mono.0.saturating_add(pause));
        if self.stale && good {
            self.next = Millis::ZERO;
        }
        good
    }
}

fn no_actuator(kind: PoolKind) -> ActuateError {
    ActuateError {
        kind: drover_core::model::FailureKind::Config,
        code: String::new(),
        message: format!("this build drives no pools of kind {kind:?}"),
    }
}
