//! One tick: asks for a round, samples the host, waits a moment for the probe, publishes what is there.
//!
//! A part of the collector's task, called by its loop. It must not wait longer than the limits of here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::findings::bad;
use super::{GPU_PROCESSES, PROCESSES, Task};
use crate::collector::conditions::Driver;
use crate::host::{driver, mounts, pci};
use crate::imds;
use crate::inventory::{facts, merge};
use crate::observation::{Observation, Telemetry};
use crate::probe::parent::Order;
use crate::probe::view::{Status, View};
use crate::telemetry::sampler::now_unix_ms;

/// A tick waits so long for the probe at most.
const GATHER: Duration = Duration::from_millis(500);

/// The first tick waits so long for the instance's identity.
const IDENTITY: Duration = Duration::from_secs(1);

/// The first tick measures rates over so long; later ones since the tick before.
const FIRST_WINDOW: Duration = Duration::from_millis(300);

/// Is it time again? Marks it as done now.
fn due(last: &mut Option<Instant>, every: Duration, tick: Duration) -> bool {
    // Half a tick of slack, or an interval of two ticks would become three.
    let now = Instant::now();
    let is_due = last.is_none_or(|last| now.duration_since(last) + tick / 2 >= every);
    if is_due {
        *last = Some(now);
    }
    is_due
}

impl Task {
    pub(super) async fn tick(&mut self) {
        let tick = self.config.interval;
        if due(
            &mut self.due.inventory,
            self.config.inventory_interval,
            tick,
        ) {
            self.take_inventory();
        }
        if due(&mut self.due.versions, self.config.version_interval, tick) {
            self.look_at_driver();
        }
        if self
            .release
            .until_unix_ms()
            .is_some_and(|until| until <= now_unix_ms())
        {
            tracing::info!("the time of the release is over");
            if let Err(error) = self.take_back().await {
                tracing::warn!(%error, "release not ended in order");
            }
        }
        let processes = due(&mut self.due.processes, self.config.process_interval, tick);
        // A full queue means that the supervisor is ending a child; the next tick asks again.
        let _later = self.probe.orders.try_send(Order::Round { processes });

        let mut telemetry = self.sampler.sample();
        let patience = self.config.mount_deadline.min(GATHER);
        let gather = GATHER.min(tick / 2);
        let round = self.round;
        let mut view = self.probe.view.clone();
        let first = self.publish.borrow().telemetry.is_none();
        let imds = self.imds.clone().filter(|_| first);
        let (disks, _, (), ()) = tokio::join!(
            self.guard.read(&self.mounts, patience),
            timeout(gather, wait(&mut view, round)),
            identity(imds),
            window(first)
        );
        if first {
            telemetry = self.sampler.sample();
        }
        facts::set_sizes(&mut self.facts.disks, &disks);
        telemetry.disks = disks;
        let view = view.borrow().clone();
        self.take_gpus(&view, &mut telemetry);
        self.take_driver(&view);
        if !self.config.matchers.is_empty()
            && due(&mut self.due.walk, self.config.matcher_interval, tick)
        {
            self.walk_ok = self.workloads.walk(&self.config.matchers);
        }
        self.show(&view, telemetry);
    }

    fn take_inventory(&mut self) {
        self.mounts = mounts::read(&self.config.paths.proc, self.config.network_mounts);
        let fresh = facts::read(&self.config.paths, &self.mounts);
        let before = std::mem::replace(&mut self.facts, fresh);
        self.facts.gpus = before.gpus;
        self.facts.instance_id = before.instance_id;
        self.facts.zone = before.zone;
        self.facts.instance_type = before.instance_type;
    }

    fn look_at_driver(&mut self) {
        self.driver = Driver {
            module: driver::module_version(&self.config.paths.sys),
            library: driver::library_version(self.config.probe.library.as_deref()),
            pci_gpus: pci::gpus(&self.config.paths.sys),
        };
        self.facts.pci_gpus = self.driver.pci_gpus;
        let expected = self.driver.pci_gpus != Some(0) || self.config.probe.library.is_some();
        let _later = self.probe.orders.try_send(Order::Expect(expected));
    }

    /// Uses a reading once: values are never shown as fresh twice.
    fn take_gpus(&mut self, view: &View, telemetry: &mut Telemetry) {
        if let Some(reading) = view
            .reading
            .as_deref()
            .filter(|reading| reading.round > self.round)
        {
            self.round = reading.round;
            if reading.processes {
                let seen = self.workloads.take(reading, &self.facts.gpus);
                self.seen = Some((Instant::now(), seen));
            }
            let known = self
                .seen
                .as_ref()
                .map(|(_, seen)| seen.known.clone())
                .unwrap_or_default();
            let (gpus, uses) = merge::merge(&self.facts.gpus, reading, &known);
            self.facts.gpus = gpus;
            telemetry.gpus = uses;
            self.bad = bad(reading, telemetry);
        }
        let patience = self.config.process_interval * 2 + self.config.interval;
        let fresh = view.ready.is_some()
            && self
                .seen
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() < patience);
        if !fresh {
            self.seen = None;
            // Ask with the next round, whenever that is.
            self.due.processes = None;
        }
    }

    fn take_driver(&mut self, view: &View) {
        let running = view
            .ready
            .as_ref()
            .and_then(|ready| ready.driver_version.clone());
        self.facts.driver_version = running.or_else(|| self.driver.module.clone());
        if let Some(instance) = self
            .imds
            .as_ref()
            .and_then(|imds| imds.borrow().instance.clone())
        {
            self.facts.instance_id = instance.id;
            self.facts.zone = instance.zone;
            self.facts.instance_type = instance.kind;
        }
    }

    fn show(&mut self, view: &View, telemetry: Telemetry) {
        let mut observation = Observation {
            facts: self.facts.clone(),
            workloads: self.workloads.running(),
            ..Observation::default()
        };
        match self.gpu_witness(view) {
            Ok(()) => drop(observation.witnesses.insert(GPU_PROCESSES.to_owned())),
            Err(why) => drop(observation.unreadable.insert(GPU_PROCESSES.to_owned(), why)),
        }
        // Without matchers there is nothing to look for.
        if self.walk_ok {
            observation.witnesses.insert(PROCESSES.to_owned());
        } else {
            let why = "/proc cannot be listed".to_owned();
            observation.unreadable.insert(PROCESSES.to_owned(), why);
        }
        observation.conditions = self
            .book
            .settle(&self.findings(view, &telemetry), now_unix_ms());
        observation.telemetry = Some(telemetry);
        self.publish.send_replace(Arc::new(observation));
    }
}

/// The first observation should say which instance this is, since a node is enrolled with it.
async fn identity(imds: Option<watch::Receiver<imds::watch::Known>>) {
    if let Some(mut imds) = imds {
        let known = imds.wait_for(|known| known.instance.is_some() || known.trouble.is_some());
        // Not in time: it comes with a later observation.
        let _late = timeout(IDENTITY, known).await.map(drop);
    }
}

/// Lets the time of the first rates pass.
async fn window(first: bool) {
    if first {
        tokio::time::sleep(FIRST_WINDOW).await;
    }
}

/// Returns when nothing more will come for this tick.
async fn wait(view: &mut watch::Receiver<View>, round: u64) {
    // The supervisor ended: nothing will come either.
    let _ended = view.wait_for(|view| settled(view, round)).await.map(drop);
}

fn settled(view: &View, round: u64) -> bool {
    match view.status {
        Status::Waiting | Status::Unkillable | Status::Released => true,
        Status::Starting | Status::Running => view
            .reading
            .as_ref()
            .is_some_and(|reading| reading.round > round),
    }
}
