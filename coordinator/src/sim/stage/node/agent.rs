//! What the agent of a machine says, and what it does about its newest order.
//!
//! Called by the stage when something changes on the machine, and by the port of the agents.

use super::Node;
use crate::ports::link::AgentView;
use crate::records::DesiredState;
use crate::world::{InstanceRecord, OfferingSpec};
use drover_core::model::{NodeId, UnixMs};
use drover_proto::v1;
use std::sync::Arc;

impl Node {
    /// What its agent says now.
    pub(in crate::sim) fn heard(&mut self, now: UnixMs, mono: u64) -> Arc<AgentView> {
        if self.view.last_seen_mono != mono || self.view.last_seen != now {
            let view = Arc::make_mut(&mut self.view);
            view.last_seen = now;
            view.last_seen_mono = mono;
            view.workloads_at = now;
        }
        self.view.clone()
    }

    /// What it said last, when nobody hears it.
    pub(in crate::sim) fn unheard(&self) -> Arc<AgentView> {
        let mut view = self.view.as_ref().clone();
        view.connected = false;
        Arc::new(view)
    }

    /// The agent acts on its newest order: cordons, and says how far a drain is.
    pub(in crate::sim::stage) fn obey(&mut self) {
        let Some(order) = &self.order else { return };
        let running = u32::try_from(self.work.len()).unwrap_or(u32::MAX);
        let view = Arc::make_mut(&mut self.view);
        view.highest_epoch = view.highest_epoch.max(order.epoch);
        let desired = match order.desired {
            DesiredState::Active => v1::Desired::Active,
            DesiredState::Cordoned => v1::Desired::Cordoned,
            DesiredState::Draining => v1::Desired::Draining,
        };
        view.observed = Some(v1::Order {
            epoch: order.epoch,
            generation: order.generation,
            desired: desired.into(),
            ..v1::Order::default()
        });
        self.cordoned = desired != v1::Desired::Active;
        if let Some(actual) = &mut view.actual {
            actual.cordoned_by_us = self.cordoned;
        }
        let mut status = v1::OrderStatus {
            epoch: order.epoch,
            generation: order.generation,
            workloads_now: running,
            ..v1::OrderStatus::default()
        };
        if let Some(drain) = &order.drain {
            status.drain_id.clone_from(&drain.id.0);
            let state = if running == 0 {
                v1::DrainState::Drained
            } else {
                v1::DrainState::Waiting
            };
            status.drain_state = state.into();
        }
        view.order_status = Some(status);
    }
}

pub(super) fn list(items: Vec<v1::Workload>) -> v1::WorkloadList {
    v1::WorkloadList {
        items,
        unreadable: Vec::new(),
        witnesses: vec!["gpu-processes".to_owned(), "processes".to_owned()],
    }
}

pub(super) fn view(id: &NodeId, record: &InstanceRecord, offering: &OfferingSpec) -> AgentView {
    let gpus = (0..offering.gpus).map(|index| v1::GpuFacts {
        uuid: format!("GPU-{index}"),
        name: offering.gpu_model.clone(),
        index,
        ..v1::GpuFacts::default()
    });
    AgentView {
        node: id.clone(),
        connected: true,
        last_seen: UnixMs(0),
        last_seen_mono: 0,
        facts: Arc::new(v1::Facts {
            hostname: id.to_string(),
            instance_id: Some(record.id.clone()),
            zone: Some(offering.zone.clone()),
            instance_type: Some(offering.instance_type.clone()),
            cpus: Some(offering.cpus),
            memory_bytes: Some(offering.memory_bytes()),
            pci_gpus: Some(offering.gpus),
            gpus: gpus.collect(),
            ..v1::Facts::default()
        }),
        telemetry: Some(Arc::new(v1::Telemetry::default())),
        workloads: Some(Arc::new(list(Vec::new()))),
        workloads_at: UnixMs(0),
        conditions: Vec::new(),
        actual: Some(v1::NodeActual::default()),
        order_status: None,
        observed: None,
        highest_epoch: 0,
        clock_offset_ms: 0,
    }
}
