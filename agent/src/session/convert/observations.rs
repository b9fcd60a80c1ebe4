//! What the collector sees, to the wire: facts, telemetry, and what a report holds of workloads and conditions.
//!
//! A part of `convert`, for `session`. Keeps within the wire's limits and tells what it cut off; decides not when
//! to report.

use drover_proto::{limits, v1};

use super::{Actual, Names, cut};
use crate::observation as plain;

/// Facts, with the names that the config sets.
#[must_use]
pub fn facts(facts: &plain::Facts, names: &Names) -> v1::Facts {
    let short = |text: &str| cut(text, limits::NAME_BYTES);
    v1::Facts {
        machine_id: short(names.machine_id.as_ref().unwrap_or(&facts.machine_id)),
        boot_id: short(&facts.boot_id),
        hostname: short(names.hostname.as_ref().unwrap_or(&facts.hostname)),
        instance_id: facts.instance_id.clone(),
        zone: facts.zone.clone(),
        instance_type: facts.instance_type.clone(),
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
        os: short(&facts.os),
        kernel: short(&facts.kernel),
        arch: short(&facts.arch),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        driver_version: facts.driver_version.clone(),
        pci_gpus: facts.pci_gpus,
        gpus: facts
            .gpus
            .iter()
            .take(limits::GPUS)
            .map(gpu_facts)
            .collect(),
        disks: facts
            .disks
            .iter()
            .take(limits::DEVICES)
            .map(|disk| v1::DiskFacts {
                mount: short(&disk.mount),
                kind: short(&disk.kind),
                total_bytes: disk.total_bytes,
            })
            .collect(),
        nics: facts
            .nics
            .iter()
            .take(limits::DEVICES)
            .map(|nic| v1::NicFacts {
                name: short(&nic.name),
                mac: short(&nic.mac),
                addresses: nic.addresses.iter().take(16).cloned().collect(),
            })
            .collect(),
    }
}

fn gpu_facts(gpu: &plain::GpuFacts) -> v1::GpuFacts {
    v1::GpuFacts {
        uuid: cut(&gpu.uuid, limits::NAME_BYTES),
        name: cut(&gpu.name, limits::NAME_BYTES),
        memory_bytes: gpu.memory_bytes,
        pci_address: gpu.pci_address.clone(),
        index: gpu.index,
    }
}

/// Telemetry.
#[must_use]
pub fn telemetry(values: &plain::Telemetry) -> v1::Telemetry {
    let [load1_milli, load5_milli, load15_milli] = match values.load_milli {
        Some(loads) => loads.map(Some),
        None => [None; 3],
    };
    let [psi_cpu, psi_memory, psi_io] = values.psi;
    v1::Telemetry {
        at_unix_ms: values.at_unix_ms,
        cpu_permille: values.cpu_permille,
        load1_milli,
        load5_milli,
        load15_milli,
        memory_used_bytes: values.memory_used_bytes,
        swap_used_bytes: values.swap_used_bytes,
        psi_cpu,
        psi_memory,
        psi_io,
        disks: values
            .disks
            .iter()
            .take(limits::DEVICES)
            .map(|disk| v1::DiskUse {
                mount: cut(&disk.mount, limits::NAME_BYTES),
                used_bytes: disk.used_bytes,
                total_bytes: disk.total_bytes,
                stuck: disk.stuck,
            })
            .collect(),
        nics: values
            .nics
            .iter()
            .take(limits::DEVICES)
            .map(|nic| v1::NicUse {
                name: cut(&nic.name, limits::NAME_BYTES),
                rx_bytes: nic.rx_bytes,
                tx_bytes: nic.tx_bytes,
            })
            .collect(),
        gpus: values.gpus.iter().take(limits::GPUS).map(gpu_use).collect(),
        uptime_s: values.uptime_s,
    }
}

fn gpu_use(gpu: &plain::GpuUse) -> v1::GpuUse {
    let state = match gpu.state {
        plain::GpuState::Ok => v1::GpuState::Ok,
        plain::GpuState::Lost => v1::GpuState::Lost,
        plain::GpuState::ResetRequired => v1::GpuState::ResetRequired,
        plain::GpuState::Faulty => v1::GpuState::Faulty,
    };
    v1::GpuUse {
        uuid: cut(&gpu.uuid, limits::NAME_BYTES),
        state: state.into(),
        utilisation_percent: gpu.utilisation_percent,
        memory_utilisation_percent: gpu.memory_utilisation_percent,
        memory_used_bytes: gpu.memory_used_bytes,
        memory_reserved_bytes: gpu.memory_reserved_bytes,
        used_includes_reserved: gpu.used_includes_reserved,
        temperature_c: gpu.temperature_c,
        power_mw: gpu.power_mw,
        power_limit_mw: gpu.power_limit_mw,
        sm_clock_mhz: gpu.sm_clock_mhz,
        memory_clock_mhz: gpu.memory_clock_mhz,
        throttle_reasons: gpu.throttle_reasons,
        processes_known: gpu.processes_known,
        pci_address: gpu.pci_address.clone(),
    }
}

/// What is reported after `last`: everything when it is `None` or `full`, else what changed.
#[must_use]
pub fn report(
    seen: &plain::Observation,
    last: Option<&plain::Observation>,
    names: &Names,
    actual: Actual,
) -> v1::Report {
    let changed = |differs: fn(&plain::Observation, &plain::Observation) -> bool| {
        last.is_none_or(|last| differs(seen, last))
    };
    v1::Report {
        telemetry: seen.telemetry.as_ref().map(telemetry),
        full: last.is_none(),
        facts: changed(|a, b| a.facts != b.facts).then(|| facts(&seen.facts, names)),
        workloads: changed(|a, b| {
            a.workloads != b.workloads || a.unreadable != b.unreadable || a.witnesses != b.witnesses
        })
        .then(|| workloads(seen)),
        conditions: changed(|a, b| {
            a.conditions != b.conditions
                || (a.workloads.len() > limits::WORKLOADS)
                    != (b.workloads.len() > limits::WORKLOADS)
        })
        .then(|| conditions(seen)),
        actual: Some(actual.into()),
    }
}

fn workloads(seen: &plain::Observation) -> v1::WorkloadList {
    // What is cut off may be something that cannot move.
    let all = seen.workloads.len() <= limits::WORKLOADS;
    let kept = seen.workloads.iter().take(limits::WORKLOADS);
    v1::WorkloadList {
        items: kept
            .map(|work| v1::Workload {
                movable: work.movable && all,
                ..workload(work)
            })
            .collect(),
        unreadable: seen
            .unreadable
            .iter()
            .map(|(witness, why)| cut(&format!("{witness}: {why}"), limits::TEXT_BYTES))
            .collect(),
        witnesses: seen.witnesses.iter().cloned().collect(),
    }
}

fn workload(work: &plain::Workload) -> v1::Workload {
    let kind = match work.kind {
        plain::WorkloadKind::GpuProcess => v1::WorkloadKind::GpuProcess,
        plain::WorkloadKind::Process => v1::WorkloadKind::Process,
    };
    v1::Workload {
        kind: kind.into(),
        id: work.id(),
        user: cut(&work.user, limits::NAME_BYTES),
        command: cut(&work.command, limits::NAME_BYTES),
        gpus: work.gpus.iter().take(limits::GPUS).cloned().collect(),
        gpu_memory_bytes: work.gpu_memory_bytes,
        request: cut(work.request.as_deref().unwrap_or(""), limits::NAME_BYTES),
        movable: work.movable,
    }
}

fn conditions(seen: &plain::Observation) -> v1::ConditionList {
    let mut items: Vec<v1::Condition> = seen
        .conditions
        .iter()
        .take(limits::CONDITIONS - 1)
        .map(|condition| v1::Condition {
            kind: cut(&condition.kind, limits::NAME_BYTES),
            message: cut(&condition.message, limits::TEXT_BYTES),
            subject: cut(&condition.subject, limits::NAME_BYTES),
            since_unix_ms: condition.since_unix_ms,
            faulty: condition.faulty,
        })
        .collect();
    if seen.workloads.len() > limits::WORKLOADS {
        items.push(v1::Condition {
            kind: "too_many_workloads".into(),
            message: format!(
                "{} workloads, only {} are reported",
                seen.workloads.len(),
                limits::WORKLOADS
            ),
            ..v1::Condition::default()
        });
    }
    v1::ConditionList { items }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_holds_all_or_what_changed() {
        let names = Names {
            hostname: Some("rack-1".into()),
            machine_id: None,
        };
        let first = plain::Observation::default();
        let full = report(&first, None, &names, Actual::default());
        assert!(full.full && full.facts.is_some() && full.workloads.is_some());
        assert_eq!(full.facts.unwrap().hostname, "rack-1");
        let mut second = first.clone();
        second.telemetry = Some(plain::Telemetry::default());
        let delta = report(&second, Some(&first), &names, Actual::default());
        assert!(!delta.full && delta.facts.is_none() && delta.workloads.is_none());
        assert!(delta.conditions.is_none() && delta.telemetry.is_some());
        second
            .unreadable
            .insert("gpu-processes".into(), "probe hung".into());
        let delta = report(&second, Some(&first), &names, Actual::default());
        assert_eq!(
            delta.workloads.unwrap().unreadable,
            ["gpu-processes: probe hung"]
        );
    }

    #[test]
    fn too_many_workloads_are_cut_and_told() {
        let work = plain::Workload {
            kind: plain::WorkloadKind::Process,
            pid: 1,
            start_ticks: 2,
            user: String::new(),
            command: "é".repeat(200),
            gpus: [].into(),
            gpu_memory_bytes: None,
            request: None,
            movable: true,
        };
        let seen = plain::Observation {
            workloads: vec![work; 2_001],
            ..plain::Observation::default()
        };
        let report = report(&seen, None, &Names::default(), Actual::default());
        let items = report.workloads.unwrap().items;
        assert_eq!(items.len(), 2_000);
        assert_eq!(items[0].command.len(), 256);
        assert!(!items[0].movable, "not all of it is told");
        assert_eq!(
            report.conditions.unwrap().items[0].kind,
            "too_many_workloads"
        );
    }
}
