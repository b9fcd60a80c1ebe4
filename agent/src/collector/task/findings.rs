//! What an observation says beside its values: whether the GPUs' processes are known, and what is wrong.
//!
//! A part of the collector's task; reads its state and changes nothing.

use super::Task;
use crate::collector::conditions::Finding;
use crate::observation::{GpuState, Telemetry};
use crate::probe::protocol::{InitFailureKind, Reading};
use crate::probe::view::{Status, Trouble, View};

/// Why the GPUs' processes are unknown before the probe's first answer.
pub const NOT_YET: &str = "the probe has not answered yet";

impl Task {
    /// Is it known what holds the GPUs?
    pub(super) fn gpu_witness(&self, view: &View) -> Result<(), String> {
        if let Some((_, seen)) = &self.seen {
            return if seen.unknown.is_empty() {
                Ok(())
            } else {
                Err(seen.unknown.join("; "))
            };
        }
        match (&view.status, &view.trouble) {
            (Status::Released, _) => Err("the GPUs are released".to_owned()),
            (_, Some(Trouble::Init(failure)))
                if matches!(
                    failure.kind,
                    InitFailureKind::NoLibrary | InitFailureKind::NoDriver
                ) && self.driver.pci_gpus == Some(0)
                    && self.facts.gpus.is_empty() =>
            {
                // No GPU, nothing that could hold one.
                Ok(())
            }
            (_, Some(Trouble::Hung { op, .. })) => Err(format!("probe hung ({op})")),
            (_, Some(Trouble::Crashed { op, .. })) => Err(format!("probe crashed ({op})")),
            (_, Some(Trouble::Init(failure))) => Err(failure.message.clone()),
            (_, Some(Trouble::Broken(error))) => Err(error.clone()),
            (_, None) => Err(NOT_YET.to_owned()),
        }
    }

    pub(super) fn findings(&self, view: &View, telemetry: &Telemetry) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(trouble) = &view.trouble {
            findings.push(Finding::Probe(trouble.clone(), self.driver.clone()));
        }
        let differ = self
            .driver
            .module
            .as_ref()
            .zip(self.driver.library.as_ref());
        if view.ready.is_some() && differ.is_some_and(|(module, library)| module != library) {
            findings.push(Finding::ReloadNeeded(self.driver.clone()));
        }
        findings.extend(self.bad.iter().cloned());
        findings.extend(
            self.release
                .until_unix_ms()
                .map(|until_unix_ms| Finding::Released { until_unix_ms }),
        );
        let trouble = self
            .imds
            .as_ref()
            .and_then(|imds| imds.borrow().trouble.clone());
        findings.extend(trouble.map(Finding::Imds));
        let stuck = telemetry.disks.iter().filter(|disk| disk.stuck);
        findings.extend(stuck.map(|disk| Finding::MountStuck(disk.mount.clone())));
        findings
    }
}

/// GPUs that are not ok, by a reading and the values made of it.
pub(super) fn bad(reading: &Reading, telemetry: &Telemetry) -> Vec<Finding> {
    let gpus = telemetry
        .gpus
        .iter()
        .filter(|gpu| gpu.state != GpuState::Ok);
    let mut bad: Vec<Finding> = gpus
        .map(|gpu| Finding::Gpu {
            uuid: gpu.uuid.clone(),
            pci_address: gpu.pci_address.clone(),
            state: gpu.state,
        })
        .collect();
    for gpu in &reading.gpus {
        let nameless =
            gpu.identity.is_none() && !telemetry.gpus.iter().any(|used| used.state == gpu.state);
        if nameless {
            bad.push(Finding::Gpu {
                uuid: format!("index {}", gpu.index),
                pci_address: "an unknown address".to_owned(),
                state: gpu.state,
            });
        }
    }
    bad.extend(reading.denied.iter().map(|index| Finding::Hidden(*index)));
    bad
}
