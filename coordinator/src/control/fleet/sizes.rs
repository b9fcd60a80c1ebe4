//! What a node offers and what work uses of it. Called by the join; pure.

use super::work::shares;
use crate::config::{PoolConfig, PoolSource};
use crate::ports::link::AgentView;
use drover_core::model::{Bytes, MilliCpu, Offering, RequestName, Reserved, Resources};
use drover_proto::v1::{Facts, GpuState};
use std::collections::BTreeSet;

/// What the config says of a host that no agent has described.
pub(super) fn template(pool: &PoolConfig) -> Option<Resources> {
    match &pool.source {
        PoolSource::Static(fixed) => Some(fixed.allocatable.clone()),
        PoolSource::Asg(_) | PoolSource::Sim(_) => None,
    }
}

pub(super) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// What the host really has; a GPU that is not ok is not offered.
pub(super) fn allocatable(
    facts: Option<&Facts>,
    view: Option<&AgentView>,
    fallback: Option<&Resources>,
) -> Resources {
    let none = Resources::default();
    let fallback = fallback.unwrap_or(&none);
    let Some(facts) = facts else {
        return fallback.clone();
    };
    let lost = view
        .and_then(|view| view.telemetry.as_ref())
        .map_or(0, |telemetry| {
            let bad = |gpu: &&drover_proto::v1::GpuUse| {
                !matches!(gpu.state(), GpuState::Ok | GpuState::Unspecified)
            };
            count(telemetry.gpus.iter().filter(bad).count())
        });
    Resources {
        gpu_milli: 0,
        cpu: facts
            .cpus
            .map_or(fallback.cpu, |cpus| MilliCpu(u64::from(cpus) * 1_000)),
        memory: facts.memory_bytes.map_or(fallback.memory, Bytes),
        gpus: count(facts.gpus.len()).saturating_sub(lost),
        // What no agent measures is what its offering says: else work for it would ask for node after node.
        extended: fallback.extended.clone(),
    }
}

pub(super) fn model(
    facts: Option<&Facts>,
    offering: Option<&Offering>,
    pool: Option<&PoolConfig>,
) -> String {
    if let Some(gpu) = facts.and_then(|facts| facts.gpus.first()) {
        return gpu.name.clone();
    }
    if let Some(offering) = offering {
        return offering.gpu_model.clone();
    }
    match pool.map(|pool| &pool.source) {
        Some(PoolSource::Static(fixed)) => fixed.gpu_model.clone(),
        _ => String::new(),
    }
}

/// What runs outside of the reservations of its request, and GPUs that reservations share.
pub(super) fn used(
    view: Option<&AgentView>,
    reserved: &[Reserved],
    total: &Resources,
) -> Resources {
    // A GPU that units share is used as a whole: what is free of it is told apart.
    let mut used = Resources {
        gpus: count(shares(reserved).len()),
        ..Resources::default()
    };
    let Some(view) = view else { return used };
    let Some(list) = &view.workloads else {
        return used;
    };
    let holders: BTreeSet<&RequestName> = reserved.iter().map(|held| &held.request).collect();
    let mut gpus = BTreeSet::new();
    let mut others = 0_usize;
    for work in &list.items {
        if holders.iter().any(|name| name.as_str() == work.request) {
            continue;
        }
        others += 1;
        gpus.extend(work.gpus.iter());
    }
    if list
        .unreadable
        .iter()
        .any(|name| name.starts_with("gpu-processes"))
    {
        // Nobody knows who holds them: none is free.
        used.gpus = total.gpus;
    } else {
        used.gpus = used.gpus.saturating_add(count(gpus.len()));
    }
    if others > 0
        && let Some(telemetry) = &view.telemetry
    {
        let permille = u64::from(telemetry.cpu_permille.unwrap_or(0));
        used.cpu = MilliCpu(total.cpu.0.saturating_mul(permille) / 1_000);
        used.memory = Bytes(telemetry.memory_used_bytes.unwrap_or(0));
    }
    used
}
