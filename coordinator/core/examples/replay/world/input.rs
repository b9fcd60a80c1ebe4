//! What the planner is told: one pool in one zone, nodes with the work on them, and the classes of a job. Called by the
//! replay and where a plan is made; decides nothing.

use super::{Node, Setup, ms};
use crate::traces::{Job, Type};
use drover_core::model::{
    Busy, Class, Constraints, Gang, Learnt, Lifecycle, Locality, Market, MicroUsd, Millis, Mode,
    NodeId, NodeInput, Offering, PLAN_VERSION, PlanInput, Policy, PoolInput, PoolKind, Quota,
    Resources, Running, Source, Steering, UnixMs,
};
use std::collections::{BTreeMap, BTreeSet};

impl Node {
    /// What the planner sees after its work changed.
    pub(super) fn refresh(&mut self, now: UnixMs, stated: bool) {
        let mut used = Resources::default();
        self.input.workloads.clear();
        for (_, unit, start, end) in &self.work {
            used = used.plus(unit);
            self.input.workloads.push(Running {
                count: 1,
                unit: unit.clone(),
                labels: BTreeMap::new(),
                namespace: String::new(),
                team: String::new(),
                host_ports: BTreeSet::new(),
                anti_affinity: Vec::new(),
                started: Some(ms(*start)),
                ends: stated.then(|| ms(*end)),
                movable: false,
            });
        }
        self.input.used = used;
        let idle = matches!(self.input.busy, Busy::Idle { .. });
        if self.work.is_empty() && !idle {
            self.input.busy = Busy::Idle { since: now };
        } else if !self.work.is_empty() {
            let what = vec!["job".to_owned()];
            self.input.busy = Busy::Working {
                what,
                movable: false,
            };
        }
    }
}

pub(super) fn input(types: &[Type], setup: &Setup) -> PlanInput {
    let offering = |t: &Type| Offering {
        id: format!("cloud/{}/a/on_demand", t.name).as_str().into(),
        instance_type: t.name.clone(),
        zone: "a".to_owned(),
        market: Market::OnDemand,
        price: MicroUsd(t.price),
        allocatable: Some(t.size.clone()),
        gpu_model: String::new(),
        boot: setup.boot,
        available: None,
        reservations: Vec::new(),
    };
    let pool = PoolInput {
        id: "cloud".into(),
        kind: PoolKind::Sim,
        site: "site".into(),
        mode: Mode::Full,
        stops: Vec::new(),
        min: 0,
        floor: 0,
        max: 100_000,
        config_max: None,
        spare: 0,
        idle_after: setup.idle_after,
        anticipate: setup.anticipate.clone(),
        expire_after: None,
        quota: Quota::Percent(100),
        disruption: Vec::new(),
        rank: 0,
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        offerings: types.iter().map(offering).collect(),
        steering: Steering::Zone,
        removable: true,
        unmanaged: 0,
        read_at: ms(0),
    };
    PlanInput {
        version: PLAN_VERSION,
        now: ms(0),
        seed: 1,
        pools: vec![pool],
        nodes: Vec::new(),
        classes: Vec::new(),
        launches: Vec::new(),
        memory: Vec::new(),
        policy: Policy::default(),
        learnt: Learnt::default(),
    }
}

pub(super) fn node(
    pool: &PoolInput,
    offering: usize,
    name: String,
    launched: UnixMs,
    up: UnixMs,
) -> NodeInput {
    let offering = &pool.offerings[offering];
    NodeInput {
        id: NodeId::new(name.clone()),
        name,
        pool: Some(pool.id.clone()),
        site: Some(pool.site.clone()),
        zone: offering.zone.clone(),
        instance: None,
        offering: Some(offering.id.clone()),
        lifecycle: Lifecycle::Ready,
        cordon: None,
        unreachable: false,
        faulty: None,
        allocatable: offering.allocatable.clone().unwrap_or_default(),
        used: Resources::default(),
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        reserved: Vec::new(),
        gpu_model: String::new(),
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        busy: Busy::Idle { since: up },
        drain: None,
        price: offering.price,
        launched: Some(launched),
        last_ran: None,
    }
}

/// A job's classes: whole nodes as a gang, and the unit that is smaller than a node.
pub(super) fn classes(at: usize, job: &Job, stated: bool) -> Vec<Class> {
    let one = Class {
        source: Source::Scheduler(format!("job-{at}")),
        unit: job.unit.clone(),
        whole_node: false,
        count: 1,
        constraints: Constraints::default(),
        gang: None,
        priority: 0,
        submitted: ms(job.submit),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: stated.then(|| Millis::seconds(job.seconds)),
        max_wait: None,
        deadline: None,
    };
    let gang = Gang {
        min: job.nodes,
        assigned: 0,
        locality: Locality::Any,
        hold: Millis::minutes(60),
        holding_since: None,
    };
    let mut all = Vec::new();
    if job.nodes > 0 {
        all.push(Class {
            unit: Resources {
                gpus: 8,
                ..Resources::default()
            },
            whole_node: true,
            count: job.nodes,
            gang: (job.nodes > 1).then_some(gang),
            ..one.clone()
        });
    }
    if !job.unit.is_zero() {
        all.push(one);
    }
    all
}
