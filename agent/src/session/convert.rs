//! Wire types to plain ones and back: the only file of the session that knows both.
//!
//! Called by `session`. Keeps what is sent within the wire's limits; checks what comes in and names the bad field.

use drover_proto::{limits, v1};

use super::outbox::Notice;
use crate::drain::status::{Blocker, Phase, Status};
use crate::observation as plain;
use crate::order::{Desired, DrainSpec, Order, OrderId, Policy};

/// A field of a message that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct BadField {
    /// Path of the field.
    pub field: &'static str,
    /// What is wrong.
    pub problem: &'static str,
}

/// What the config says of the host instead of the host itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Instead of the kernel's host name.
    pub hostname: Option<String>,
    /// Instead of /etc/machine-id.
    pub machine_id: Option<String>,
}

/// What the node is now, beside its order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actual {
    /// The executors hold the node cordoned for us.
    pub cordoned_by_us: bool,
    /// root ran `release`.
    pub released: bool,
}

impl From<Actual> for v1::NodeActual {
    fn from(actual: Actual) -> Self {
        Self {
            cordoned_by_us: actual.cordoned_by_us,
            foreign_cordon: String::new(),
            released: actual.released,
        }
    }
}

/// An order with the coordinator's clock when it was sent.
///
/// # Errors
/// Names the bad field.
pub fn order(wire: v1::Order) -> Result<(Order, u64), BadField> {
    let bad = |field, problem| Err(BadField { field, problem });
    let desired = match (wire.desired(), wire.drain) {
        (v1::Desired::Active, None) => Desired::Active,
        (v1::Desired::Cordoned, None) => Desired::Cordoned,
        (v1::Desired::Draining, Some(drain)) => Desired::Draining(spec(drain)?),
        (v1::Desired::Draining, None) => return bad("order.drain", "is missing"),
        (v1::Desired::Unspecified, _) => return bad("order.desired", "is not set"),
        (_, Some(_)) => return bad("order.drain", "is set but nothing is drained"),
    };
    let id = OrderId {
        epoch: wire.epoch,
        generation: wire.generation,
    };
    Ok((Order { id, desired }, wire.now_unix_ms))
}

fn spec(drain: v1::Drain) -> Result<DrainSpec, BadField> {
    let bad = |field, problem| Err(BadField { field, problem });
    let policy = match drain.policy() {
        v1::DrainPolicy::Wait => Policy::Wait,
        v1::DrainPolicy::Evict => Policy::Evict,
        v1::DrainPolicy::Force => Policy::Force,
        v1::DrainPolicy::Unspecified => return bad("order.drain.policy", "is not set"),
    };
    if drain.id.is_empty() {
        return bad("order.drain.id", "is empty");
    }
    if drain.id.len() > limits::NAME_BYTES {
        return bad("order.drain.id", "is too long");
    }
    if drain.reason.len() > limits::TEXT_BYTES {
        return bad("order.drain.reason", "is too long");
    }
    Ok(DrainSpec {
        id: drain.id,
        policy,
        deadline_unix_ms: (drain.deadline_unix_ms != 0).then_some(drain.deadline_unix_ms),
        grace_ms: drain.grace_ms,
        reason: drain.reason,
    })
}

/// The order in force, for Hello.
#[must_use]
pub fn order_to_wire(order: &Order) -> v1::Order {
    let (desired, drain) = match &order.desired {
        Desired::Active => (v1::Desired::Active, None),
        Desired::Cordoned => (v1::Desired::Cordoned, None),
        Desired::Draining(spec) => (v1::Desired::Draining, Some(spec_to_wire(spec))),
    };
    v1::Order {
        epoch: order.id.epoch,
        generation: order.id.generation,
        desired: desired.into(),
        drain,
        now_unix_ms: 0,
    }
}

fn spec_to_wire(spec: &DrainSpec) -> v1::Drain {
    let policy = match spec.policy {
        Policy::Wait => v1::DrainPolicy::Wait,
        Policy::Evict => v1::DrainPolicy::Evict,
        Policy::Force => v1::DrainPolicy::Force,
    };
    v1::Drain {
        id: spec.id.clone(),
        policy: policy.into(),
        deadline_unix_ms: spec.deadline_unix_ms.unwrap_or(0),
        grace_ms: spec.grace_ms,
        reason: spec.reason.clone(),
    }
}

/// A notice.
#[must_use]
pub fn notice(notice: Notice) -> v1::Notice {
    v1::Notice {
        id: notice.id,
        kind: notice.kind,
        at_unix_ms: notice.at_unix_ms,
        deadline_unix_ms: notice.deadline_unix_ms.unwrap_or(0),
        subject: cut(&notice.subject, limits::NAME_BYTES),
        message: cut(&notice.message, limits::TEXT_BYTES),
        withdrawn: notice.withdrawn,
    }
}

/// The state of an order.
#[must_use]
pub fn status(status: Status) -> v1::OrderStatus {
    let state = match status.phase {
        None => v1::DrainState::Unspecified,
        Some(Phase::Requested) => v1::DrainState::Requested,
        Some(Phase::Cordoning) => v1::DrainState::Cordoning,
        Some(Phase::Waiting) => v1::DrainState::Waiting,
        Some(Phase::Evicting) => v1::DrainState::Evicting,
        Some(Phase::Confirming) => v1::DrainState::Confirming,
        Some(Phase::Drained) => v1::DrainState::Drained,
        Some(Phase::Blocked) => v1::DrainState::Blocked,
        Some(Phase::Cancelled) => v1::DrainState::Cancelled,
        Some(Phase::RolledBack) => v1::DrainState::RolledBack,
    };
    v1::OrderStatus {
        epoch: status.order.epoch,
        generation: status.order.generation,
        refused: status.refused.unwrap_or_default(),
        drain_id: status.drain_id,
        drain_state: state.into(),
        blockers: status
            .blockers
            .iter()
            .take(limits::BLOCKERS)
            .map(blocker)
            .collect(),
        workloads_at_start: status.workloads_at_start,
        workloads_now: status.workloads_now,
        reason: cut(&status.reason, limits::TEXT_BYTES),
        ended: status.ended.into_iter().take(limits::WORKLOADS).collect(),
    }
}

fn blocker(blocker: &Blocker) -> v1::Blocker {
    v1::Blocker {
        kind: blocker.kind.as_str().to_owned(),
        subject: cut(&blocker.subject, limits::NAME_BYTES),
        message: cut(&blocker.message, limits::TEXT_BYTES),
    }
}

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

/// At most so many bytes, cut between characters.
#[must_use]
pub fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(desired: v1::Desired, drain: Option<v1::Drain>) -> v1::Order {
        v1::Order {
            epoch: 3,
            generation: 7,
            desired: desired.into(),
            drain,
            now_unix_ms: 11,
        }
    }

    fn drain(policy: v1::DrainPolicy, id: &str) -> Option<v1::Drain> {
        Some(v1::Drain {
            id: id.into(),
            policy: policy.into(),
            deadline_unix_ms: 0,
            grace_ms: 5,
            reason: "r".into(),
        })
    }

    #[test]
    fn orders_go_both_ways_and_bad_fields_are_named() {
        use v1::Desired::{Active, Cordoned, Draining, Unspecified};
        use v1::DrainPolicy::{Force, Unspecified as NoPolicy, Wait};
        for good in [
            wire(Active, None),
            wire(Cordoned, None),
            wire(Draining, drain(Wait, "d")),
            wire(Draining, drain(Force, "d")),
        ] {
            let (plain, now) = order(good.clone()).unwrap();
            assert_eq!(now, 11);
            let back = v1::Order {
                now_unix_ms: 11,
                ..order_to_wire(&plain)
            };
            assert_eq!(back, good);
        }
        for (bad, field) in [
            (wire(Unspecified, None), "order.desired"),
            (wire(Active, drain(Wait, "d")), "order.drain"),
            (wire(Draining, None), "order.drain"),
            (wire(Draining, drain(NoPolicy, "d")), "order.drain.policy"),
            (wire(Draining, drain(Wait, "")), "order.drain.id"),
            (
                wire(Draining, drain(Wait, &"x".repeat(257))),
                "order.drain.id",
            ),
        ] {
            assert_eq!(order(bad).unwrap_err().field, field);
        }
    }

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
