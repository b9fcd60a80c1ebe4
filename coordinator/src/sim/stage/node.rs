//! One machine of the simulation: what it has, what runs on it, GPU by GPU (`room`), and what its agent says (`agent`).
//!
//! Changed by the stage and the placers. **Invariant:** what runs never exceeds what the node has.

mod agent;
mod room;

use super::Pool;
use crate::ports::demand::Occupied;
use crate::ports::link::AgentView;
use crate::records::{DrainPolicy, NodeRecord, OrderRecord};
use crate::sim::offered::allocatable;
use crate::world::{GroupSpec, InstanceRecord, OfferingSpec};
use agent::{list, view};
use drover_core::model::{InstanceId, MicroUsd, NodeId, PoolId, Resources, Running, UnixMs};
use drover_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum State {
    Booting,
    Up,
    Ended,
}

/// A part of a job on a node.
#[derive(Debug, Clone)]
struct Work {
    job: usize,
    count: u32,
    /// What one unit takes; all of the node where it takes a whole one.
    unit: Resources,
    /// What one unit asked for.
    asked: Resources,
    team: String,
    started: UnixMs,
    ends: Option<UnixMs>,
    movable: bool,
    /// GPUs it has: (index, thousandths).
    gpus: Vec<(usize, u32)>,
}

/// A machine.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Node {
    pub(in crate::sim) id: NodeId,
    pub(in crate::sim) instance: String,
    pub(in crate::sim) pool: PoolId,
    pub(in crate::sim) region: String,
    pub(in crate::sim) zone: String,
    pub(in crate::sim) price: MicroUsd,
    pub(in crate::sim) allocatable: Resources,
    pub(in crate::sim) gpu_model: String,
    pub(in crate::sim) labels: BTreeMap<String, String>,
    pub(in crate::sim) taints: BTreeMap<String, String>,
    pub(in crate::sim) launched: UnixMs,
    pub(in crate::sim) state: State,
    pub(in crate::sim) token: String,
    /// Newest order, and whether the agent has acted on it.
    pub(in crate::sim) order: Option<OrderRecord>,
    /// Its agent keeps new work off.
    pub(in crate::sim) cordoned: bool,
    /// Free whole amounts; GPUs stand in `gpus`.
    free: Resources,
    /// Free thousandths of each GPU.
    gpus: Vec<u32>,
    work: Vec<Work>,
    pub(in crate::sim) view: Arc<AgentView>,
    occupied: Occupied,
}

impl Node {
    pub(super) fn new(
        record: &InstanceRecord,
        group: &GroupSpec,
        offering: &OfferingSpec,
        pool: &Pool,
        now: UnixMs,
    ) -> Self {
        let id = NodeId(format!("n-{}", record.id.trim_start_matches("i-")));
        let allocatable = allocatable(offering);
        let price = pool.prices.get(&offering.instance_type).copied();
        Self {
            view: Arc::new(view(&id, record, offering)),
            id,
            instance: record.id.clone(),
            pool: pool.id.clone(),
            region: group.region.clone(),
            zone: offering.zone.clone(),
            price: price.unwrap_or(MicroUsd(offering.price_micro_usd_per_hour)),
            gpu_model: offering.gpu_model.clone(),
            labels: pool.labels.clone(),
            taints: pool.taints.clone(),
            launched: now,
            state: State::Booting,
            token: record.token.clone(),
            order: None,
            cordoned: false,
            free: allocatable.clone(),
            gpus: vec![1_000; offering.gpus as usize],
            work: Vec::new(),
            allocatable,
            occupied: Occupied::default(),
        }
    }

    /// Its enrolment.
    pub(super) fn record(&self, now: UnixMs) -> NodeRecord {
        NodeRecord {
            pool: Some(self.pool.clone()),
            instance: Some(InstanceId::new(self.instance.clone())),
            not_after: UnixMs(u64::MAX),
            ..NodeRecord::joined(self.id.clone(), self.view.facts.hostname.clone(), now)
        }
    }

    /// Takes new work.
    pub(in crate::sim) fn is_open(&self) -> bool {
        self.state == State::Up && !self.cordoned
    }

    pub(in crate::sim) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// Jobs that run here, each once.
    pub(super) fn jobs(&self) -> impl Iterator<Item = usize> {
        let all: BTreeSet<usize> = self.work.iter().map(|work| work.job).collect();
        all.into_iter()
    }

    /// Its agent makes what runs here move.
    pub(super) fn evicts(&self) -> bool {
        let drain = self.order.as_ref().and_then(|order| order.drain.as_ref());
        drain.is_some_and(|drain| drain.policy == DrainPolicy::Evict)
    }

    /// What a scheduler knows of its work.
    pub(in crate::sim) const fn occupied(&self) -> &Occupied {
        &self.occupied
    }

    /// Brings what is said of its work up to date.
    fn changed(&mut self) {
        let mut workloads: Vec<Running> = Vec::new();
        for work in &self.work {
            let running = Running {
                count: work.count,
                unit: work.unit.clone(),
                labels: BTreeMap::new(),
                namespace: String::new(),
                team: work.team.clone(),
                host_ports: BTreeSet::new(),
                anti_affinity: Vec::new(),
                started: Some(work.started),
                ends: work.ends,
                movable: work.movable,
            };
            let alike = |other: &&mut Running| {
                Running {
                    count: running.count,
                    ..(**other).clone()
                } == running
            };
            match workloads.iter_mut().find(alike) {
                Some(other) => other.count += running.count,
                None => workloads.push(running),
            }
        }
        let partly = self.gpus.iter().filter(|free| **free > 0 && **free < 1_000);
        self.occupied = Occupied {
            workloads,
            gpu_shares: partly.copied().collect(),
        };
        let items = self.work.iter().map(|work| v1::Workload {
            kind: v1::WorkloadKind::Job.into(),
            id: format!("job {}", work.job),
            movable: work.movable,
            ..v1::Workload::default()
        });
        let items: Vec<v1::Workload> = items.collect();
        let view = Arc::make_mut(&mut self.view);
        view.workloads = Some(Arc::new(list(items)));
        self.obey();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stage;
    use super::*;
    use drover_core::model::MilliCpu;

    fn unit(gpus: u32, milli: u32) -> Resources {
        Resources {
            cpu: MilliCpu(1_000),
            gpus,
            gpu_milli: milli,
            ..Resources::default()
        }
    }

    #[test]
    fn room_is_counted_gpu_by_gpu() {
        let (mut stage, at) = stage();
        let node = &mut stage.nodes[at];
        let put = |node: &mut Node, job, unit: &Resources, whole, count| {
            node.put(job, (unit, whole), count, "", (UnixMs(1), None, false));
        };
        assert_eq!(node.room(&unit(1, 0), false), 8);
        put(node, 0, &unit(0, 600), false, 2);
        assert_eq!(node.free().gpus, 6, "two GPUs are shared");
        assert_eq!(node.room(&unit(0, 400), false), 2 + 6 * 2);
        assert_eq!(node.occupied().gpu_shares, [400, 400]);
        put(node, 1, &unit(0, 400), false, 1);
        assert_eq!(node.occupied().gpu_shares, [400], "the fullest first");
        assert_eq!(node.room(&unit(0, 0), true), 0, "whole only when empty");
        put(node, 2, &unit(6, 0), false, 1);
        assert_eq!(node.room(&unit(1, 0), false), 0);
        for job in [0, 1, 2] {
            node.remove(job);
        }
        assert_eq!(node.free(), node.allocatable);
        put(node, 3, &unit(1, 0), true, 1);
        assert_eq!(node.room(&unit(0, 0), false), 0);
        assert_eq!(node.used(), unit(1, 0));
        assert_eq!(node.occupied().workloads[0].unit, node.allocatable);
    }
}
