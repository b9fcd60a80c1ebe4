//! The fleet of the field cases (`scaler-cases`), as planner input. Used by the scripts and the property tests.

use drover_core::model::{
    Busy, Bytes, Class, Constraints, Learnt, Lifecycle, Market, MicroUsd, MilliCpu, Millis, Mode,
    NodeInput, Offering, PLAN_VERSION, PlanInput, Policy, PoolInput, PoolKind, Quota, Resources,
    Source, Steering, UnixMs,
};
use std::collections::BTreeMap;

/// 2026-01-01 00:00 UTC: t = 0 of every case.
pub const START: u64 = 1_767_225_600_000;

pub fn size(cpu: u64, gib: u64, gpus: u32) -> Resources {
    Resources {
        gpu_milli: 0,
        cpu: MilliCpu(cpu * 1000),
        memory: Bytes(gib << 30),
        gpus,
        extended: BTreeMap::new(),
    }
}

/// A group of one type in one zone.
pub fn pool(
    name: &str,
    site: &str,
    zone: &str,
    itype: &str,
    size: Resources,
    price: u64,
    rank: u32,
) -> PoolInput {
    let model = match itype.split('.').next() {
        Some("p4d") => "NVIDIA A100-SXM4-40GB",
        Some("g5") => "NVIDIA A10G",
        _ => "",
    };
    PoolInput {
        disruption: Vec::new(),
        expire_after: None,
        id: name.into(),
        kind: PoolKind::Asg,
        site: site.into(),
        mode: Mode::Full,
        stops: Vec::new(),
        min: 0,
        floor: 0,
        max: 20,
        config_max: None,
        spare: 0,
        idle_after: Millis::minutes(10),
        anticipate: None,
        quota: Quota::Percent(10),
        rank,
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        offerings: vec![Offering {
            id: format!("{name}/{itype}/{zone}/on_demand").as_str().into(),
            instance_type: itype.to_owned(),
            zone: zone.to_owned(),
            market: Market::OnDemand,
            price: MicroUsd(price),
            allocatable: Some(size),
            gpu_model: model.to_owned(),
            boot: Millis::minutes(4),
            available: None,
            reservations: Vec::new(),
        }],
        steering: Steering::Zone,
        removable: true,
        unmanaged: 0,
        read_at: UnixMs(START),
    }
}

/// A ready node of a pool, idle since the beginning of the case.
pub fn node(input: &PlanInput, name: &str, pool: &str) -> NodeInput {
    let pool = input.pools.iter().find(|p| p.id.as_str() == pool);
    let offering = pool.and_then(|p| p.offerings.first());
    let desk = pool.is_none_or(|p| p.kind == PoolKind::Static);
    NodeInput {
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        launched: None,
        last_ran: None,
        id: name.into(),
        name: name.to_owned(),
        pool: pool.map(|p| p.id.clone()),
        site: pool.map(|p| p.site.clone()),
        zone: offering.map(|o| o.zone.clone()).unwrap_or_default(),
        instance: None,
        offering: offering.map(|o| o.id.clone()),
        lifecycle: Lifecycle::Ready,
        cordon: None,
        unreachable: false,
        faulty: None,
        allocatable: offering
            .and_then(|o| o.allocatable.clone())
            .unwrap_or_else(|| size(12, 64, 4)),
        used: Resources::default(),
        reserved: Vec::new(),
        gpu_model: if desk {
            "NVIDIA TITAN X (Pascal)".to_owned()
        } else {
            offering.map(|o| o.gpu_model.clone()).unwrap_or_default()
        },
        labels: pool.map(|p| p.labels.clone()).unwrap_or_default(),
        taints: pool.map(|p| p.taints.clone()).unwrap_or_default(),
        busy: Busy::Idle { since: input.now },
        drain: None,
        price: offering.map_or(MicroUsd::ZERO, |o| o.price),
    }
}

pub fn class(name: &str, count: u32, unit: Resources) -> Class {
    Class {
        labels: std::collections::BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        run_time: None,
        max_wait: None,
        deadline: None,
        source: Source::Scheduler(name.to_owned()),
        unit,
        whole_node: false,
        count,
        constraints: Constraints::default(),
        gang: None,
        priority: 0,
        submitted: UnixMs(START),
    }
}

/// Five groups without nodes, and a desk whose four boxes are busy.
pub fn default_fleet() -> PlanInput {
    let mut input = PlanInput {
        version: PLAN_VERSION,
        now: UnixMs(START),
        seed: 7,
        pools: vec![
            pool(
                "g5",
                "us-east-1",
                "us-east-1a",
                "g5.xlarge",
                size(4, 16, 1),
                1_006_000,
                1,
            ),
            pool(
                "g5w",
                "us-west-2",
                "us-west-2a",
                "g5.xlarge",
                size(4, 16, 1),
                1_006_000,
                2,
            ),
            pool(
                "p4",
                "us-east-1",
                "us-east-1a",
                "p4d.24xlarge",
                size(96, 1152, 8),
                21_960_000,
                3,
            ),
            pool(
                "p4w",
                "us-west-2",
                "us-west-2a",
                "p4d.24xlarge",
                size(96, 1152, 8),
                21_960_000,
                4,
            ),
            pool(
                "cpu",
                "us-east-1",
                "us-east-1a",
                "c5.xlarge",
                size(4, 8, 0),
                170_000,
                5,
            ),
        ],
        nodes: Vec::new(),
        classes: Vec::new(),
        launches: Vec::new(),
        memory: Vec::new(),
        policy: Policy::default(),
        learnt: Learnt::default(),
    };
    input.pools.push(PoolInput {
        kind: PoolKind::Static,
        offerings: Vec::new(),
        removable: false,
        steering: Steering::Host,
        ..pool("desk", "office", "", "box", size(12, 64, 4), 0, 0)
    });
    for n in 1..=4 {
        let mut desk = node(&input, &format!("desk-{n}"), "desk");
        desk.used = desk.allocatable.clone();
        desk.busy = Busy::Working {
            what: vec!["training".to_owned()],
            movable: false,
        };
        input.nodes.push(desk);
    }
    input
}
