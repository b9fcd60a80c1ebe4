//! The collector's loop: one tick, one observation. Spawned by `collector::spawn`. What a tick does is in `tick`.
//!
//! A tick never waits longer than half a second for the probe or a mount (the first one a second, for the instance's
//! identity); what is not there by then is absent. The first one takes two samples, so that rates are there at once.

mod findings;
mod release;
mod tick;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::conditions::{Book, Driver, Finding};
use super::release::Release;
use super::{CollectorConfig, Command};
use crate::host::guard::{Guard, statvfs};
use crate::host::mounts::{self, Mount};
use crate::imds;
use crate::inventory::facts;
use crate::observation::{Facts, Observation};
use crate::probe::parent::{self, Order, Probe};
use crate::telemetry::sampler::{Sampler, now_unix_ms};
use crate::workloads::{Seen, Workloads};
pub use findings::NOT_YET;

/// Name of the witness for what holds a GPU.
pub const GPU_PROCESSES: &str = "gpu-processes";
/// Name of the witness for what the matchers name.
pub const PROCESSES: &str = "processes";

pub(super) struct Task {
    config: CollectorConfig,
    publish: watch::Sender<Arc<Observation>>,
    probe: Probe,
    imds: Option<watch::Receiver<imds::watch::Known>>,
    sampler: Sampler,
    guard: Guard,
    workloads: Workloads,
    release: Release,
    book: Book,
    mounts: Vec<Mount>,
    facts: Facts,
    driver: Driver,
    /// What the last reading said of GPUs that are not ok; stays until another says else.
    bad: Vec<Finding>,
    /// The last round that has been published.
    round: u64,
    seen: Option<(Instant, Seen)>,
    walk_ok: bool,
    due: Due,
}

/// When rare things were done last.
#[derive(Default)]
struct Due {
    inventory: Option<Instant>,
    versions: Option<Instant>,
    processes: Option<Instant>,
    walk: Option<Instant>,
}

impl Task {
    pub(super) fn new(
        config: CollectorConfig,
        publish: watch::Sender<Arc<Observation>>,
        imds: Option<watch::Receiver<imds::watch::Known>>,
    ) -> Self {
        let mounts = mounts::read(&config.paths.proc, config.network_mounts);
        let facts = facts::read(&config.paths, &mounts);
        let release = Release::load(config.state_dir.clone(), &facts.boot_id, now_unix_ms());
        let probe = parent::spawn(config.probe.clone(), release.until_unix_ms().is_some());
        Self {
            sampler: Sampler::new(&config.paths),
            guard: Guard::new(statvfs()),
            workloads: Workloads::new(&config.paths),
            publish,
            probe,
            imds,
            release,
            book: Book::default(),
            mounts,
            facts,
            driver: Driver::default(),
            bad: Vec::new(),
            round: 0,
            seen: None,
            walk_ok: true,
            due: Due {
                inventory: Some(Instant::now()),
                ..Due::default()
            },
            config,
        }
    }

    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Command>) {
        let mut ticks = interval_at(Instant::now(), self.config.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick().await,
                order = orders.recv() => match order {
                    Some(Command::Release(ttl, reply)) => {
                        let done = self.let_go(ttl).await;
                        // What is published agrees with the reply. The asker may have given up.
                        self.tick().await;
                        let _gone = reply.send(done);
                    }
                    Some(Command::Resume(reply)) => {
                        let done = self.take_back().await;
                        let _gone = reply.send(done);
                        ticks.reset_immediately();
                    }
                    Some(Command::Interval(interval)) => {
                        self.config.interval = interval;
                        ticks = interval_at(Instant::now() + interval, interval);
                        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                    }
                    Some(Command::Stop) | None => break,
                },
            }
        }
        if self.probe.orders.send(Order::Stop).await.is_ok()
            && timeout(Duration::from_secs(2), &mut self.probe.task)
                .await
                .is_err()
        {
            tracing::warn!("gpu probe did not end in time");
        }
    }
}
