//! `drover-agent facts`: the host as the agent sees it, for people or as JSON.
//!
//! Called by `cli`. Prints only; "-" and null are what could not be measured. What is wrong goes to stderr (and into the
//! JSON), so that the host's facts come even when the driver hangs.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{Failure, facts_config, runtime};
use crate::observation::Observation;
use crate::run;

/// How long the GPU probe may take to give its first round or to be named as hanging.
const LIMIT: Duration = Duration::from_secs(12);

pub(super) fn print(config: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let config = facts_config(config)?;
    let runtime = runtime()?;
    let seen = runtime
        .block_on(run::observe(config, LIMIT))
        .context("the host cannot be observed")?;
    runtime.shutdown_timeout(super::LEAVE_BEHIND);
    let text = if as_json {
        serde_json::to_string_pretty(&json(&seen)).context("the facts cannot be written")?
    } else {
        table(&seen)
    };
    writeln!(std::io::stdout(), "{text}").context("stdout is gone")?;
    for condition in &seen.conditions {
        eprintln!("{}: {}", condition.kind, condition.message);
    }
    Ok(())
}

fn json(seen: &Observation) -> Value {
    let facts = &seen.facts;
    let telemetry = seen.telemetry.as_ref();
    let gpus: Vec<Value> = facts.gpus.iter().map(|gpu| gpu_json(gpu, seen)).collect();
    json!({
        "machine_id": facts.machine_id,
        "boot_id": facts.boot_id,
        "hostname": facts.hostname,
        "instance_id": facts.instance_id,
        "zone": facts.zone,
        "instance_type": facts.instance_type,
        "cpus": facts.cpus,
        "memory_bytes": facts.memory_bytes,
        "os": facts.os,
        "kernel": facts.kernel,
        "arch": facts.arch,
        "driver_version": facts.driver_version,
        "pci_gpus": facts.pci_gpus,
        "gpus": gpus,
        "disks": facts.disks.iter().map(|disk| json!({
            "mount": disk.mount, "kind": disk.kind, "total_bytes": disk.total_bytes,
        })).collect::<Vec<_>>(),
        "nics": facts.nics.iter().map(|nic| json!({
            "name": nic.name, "mac": nic.mac, "addresses": nic.addresses,
        })).collect::<Vec<_>>(),
        "cpu_permille": telemetry.and_then(|values| values.cpu_permille),
        "load_milli": telemetry.and_then(|values| values.load_milli),
        "memory_used_bytes": telemetry.and_then(|values| values.memory_used_bytes),
        "workloads": seen.workloads.iter().map(|work| json!({
            "id": work.id(), "user": work.user, "command": work.command, "gpus": work.gpus,
            "gpu_memory_bytes": work.gpu_memory_bytes, "request": work.request,
        })).collect::<Vec<_>>(),
        "unreadable": seen.unreadable,
        "conditions": seen.conditions.iter().map(|condition| json!({
            "kind": condition.kind, "subject": condition.subject, "message": condition.message,
            "faulty": condition.faulty,
        })).collect::<Vec<_>>(),
    })
}

fn gpu_json(gpu: &crate::observation::GpuFacts, seen: &Observation) -> Value {
    let used = seen
        .telemetry
        .as_ref()
        .and_then(|values| values.gpus.iter().find(|used| used.uuid == gpu.uuid));
    json!({
        "uuid": gpu.uuid,
        "name": gpu.name,
        "memory_bytes": gpu.memory_bytes,
        "pci_address": gpu.pci_address,
        "index": gpu.index,
        "state": used.map(|used| used.state),
        "utilisation_percent": used.and_then(|used| used.utilisation_percent),
        "memory_used_bytes": used.and_then(|used| used.memory_used_bytes),
        "temperature_c": used.and_then(|used| used.temperature_c),
        "power_mw": used.and_then(|used| used.power_mw),
    })
}

fn table(seen: &Observation) -> String {
    let facts = &seen.facts;
    let telemetry = seen.telemetry.as_ref();
    let mut rows: Vec<(&str, String)> = vec![
        ("hostname", facts.hostname.clone()),
        ("machine id", facts.machine_id.clone()),
        ("boot id", facts.boot_id.clone()),
        ("instance", shown(facts.instance_id.clone())),
        ("zone", shown(facts.zone.clone())),
        ("type", shown(facts.instance_type.clone())),
        ("os", facts.os.clone()),
        ("kernel", format!("{} {}", facts.kernel, facts.arch)),
        ("cpus", shown(facts.cpus)),
        (
            "cpu use",
            shown(
                telemetry
                    .and_then(|values| values.cpu_permille)
                    .map(permille),
            ),
        ),
        ("memory", shown(facts.memory_bytes.map(gib))),
        (
            "memory use",
            shown(
                telemetry
                    .and_then(|values| values.memory_used_bytes)
                    .map(gib),
            ),
        ),
        ("driver", shown(facts.driver_version.clone())),
        ("GPUs on bus", shown(facts.pci_gpus)),
    ];
    for gpu in &facts.gpus {
        let memory = shown(gpu.memory_bytes.map(gib));
        rows.push((
            "GPU",
            format!("{} {} {memory} {}", gpu.index, gpu.name, gpu.uuid),
        ));
    }
    for disk in &facts.disks {
        let total = shown(disk.total_bytes.map(gib));
        rows.push(("disk", format!("{} {} {total}", disk.mount, disk.kind)));
    }
    for nic in &facts.nics {
        let addresses = nic.addresses.join(" ");
        rows.push(("network", format!("{} {} {addresses}", nic.name, nic.mac)));
    }
    for work in &seen.workloads {
        rows.push((
            "workload",
            format!("{} {} {}", work.pid, work.user, work.command),
        ));
    }
    for (witness, why) in &seen.unreadable {
        rows.push(("unreadable", format!("{witness}: {why}")));
    }
    let lines: Vec<String> = rows
        .into_iter()
        .map(|(name, value)| format!("{name:<12} {value}"))
        .collect();
    lines.join("\n")
}

fn shown(value: Option<impl ToString>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

fn permille(value: u32) -> String {
    format!("{}.{} %", value / 10, value % 10)
}

/// Tenths of a GiB, rounded down.
fn gib(bytes: u64) -> String {
    let tenths = bytes / (1 << 30) * 10 + bytes % (1 << 30) * 10 / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
