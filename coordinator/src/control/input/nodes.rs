//! Nodes for the planner, with the work that sources know of on them. Used by `input`.

use crate::control::fleet::FleetNode;
use crate::control::orders::DROVER;
use crate::ports::demand::Occupied;
use crate::records::{DrainStep, REQUEST_LABEL, Then};
use drover_core::model::{Cordon, DrainInfo, Lifecycle, MicroUsd, NodeId, NodeInput, Resources};
use std::collections::BTreeMap;

/// Adds what sources know of the work on a node. What the agent has measured counts where it is more.
pub(super) fn occupied(mut node: NodeInput, running: &[BTreeMap<NodeId, Occupied>]) -> NodeInput {
    let mut asked = Resources::default();
    let mut told = Vec::new();
    for here in running.iter().filter_map(|source| source.get(&node.id)) {
        for work in &here.workloads {
            asked = asked.plus(&work.unit.scaled(work.count));
        }
        let shared = u32::try_from(here.gpu_shares.len()).unwrap_or(u32::MAX);
        asked.gpus = asked.gpus.saturating_add(shared);
        // Processes that its agent names are those of this work; what requests hold is their own.
        node.workloads
            .retain(|known| known.labels.contains_key(REQUEST_LABEL));
        told.extend(here.workloads.iter().cloned());
        node.gpu_shares.extend(&here.gpu_shares);
    }
    node.workloads.extend(told);
    asked.gpu_milli = 0;
    node.gpu_shares.sort_unstable();
    node.used = Resources {
        cpu: node.used.cpu.max(asked.cpu),
        memory: node.used.memory.max(asked.memory),
        gpus: node.used.gpus.max(asked.gpus),
        ..asked
    };
    node
}

/// A node as the planner sees it.
pub(super) fn node_input(node: &FleetNode) -> NodeInput {
    // Drained for a person who keeps it: in the planner's eyes a cordoned node like any other.
    let kept = node.drain.as_ref().is_some_and(|drain| {
        drain.step == DrainStep::Drained && drain.by != DROVER && drain.then != Then::Leave
    });
    NodeInput {
        gpu_shares: node.gpu_shares.clone(),
        workloads: node.workloads.clone(),
        launched: node.launched,
        last_ran: None,
        id: node.id.clone(),
        name: node.name.clone(),
        pool: node.pool.clone(),
        site: node.site.clone(),
        zone: node.zone.clone(),
        instance: node.instance_id.clone(),
        offering: node.offering.clone(),
        lifecycle: if kept {
            Lifecycle::Ready
        } else {
            node.lifecycle
        },
        // What it ends is its own, like what a person keeps: neither supply nor the planner's to empty.
        cordon: match &node.taken {
            Some(taken) if taken.doomed && node.drain.is_none() => Some(Cordon::Person {
                who: "its cloud".to_owned(),
                why: taken.why.clone(),
            }),
            _ => node.cordon.clone(),
        },
        unreachable: node.unreachable,
        // What the cloud may take is as little supply as what is broken, and goes once empty.
        faulty: node.faulty.clone().or_else(|| {
            let taken = node.taken.as_ref().filter(|taken| !taken.doomed);
            taken.map(|taken| taken.why.clone())
        }),
        allocatable: node.allocatable.clone(),
        used: node.used.clone(),
        reserved: node.reserved.clone(),
        gpu_model: node.gpu_model.clone(),
        labels: node.labels.clone(),
        taints: node.taints.clone(),
        busy: node.busy.clone(),
        drain: node
            .drain
            .as_ref()
            .filter(|_| !kept)
            .map(|drain| DrainInfo {
                id: drain.id.clone(),
                own_idle: drain.own_idle,
                moving: drain.moving.is_some(),
                since: drain.since,
                reason: drain.reason.clone(),
            }),
        price: node.price.unwrap_or(MicroUsd::ZERO),
    }
}
