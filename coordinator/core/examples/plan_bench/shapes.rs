//! What the cases are made of: sizes, pools, dice. Used by the cases; knows nothing of them.

use drover_core::model::{
    Action, Bytes, Class, Constraints, Learnt, Market, MicroUsd, MilliCpu, Millis, Mode, Offering,
    PLAN_VERSION, PlanInput, Planned, Policy, PoolInput, PoolKind, Quota, Requirement, Resources,
    Selector, Source, Steering, UnixMs,
};
use std::collections::BTreeMap;

/// The moment of every case: 2026-01-01 00:00 UTC.
pub(crate) const NOW: UnixMs = UnixMs(1_767_225_600_000);

/// splitmix64: one seed, one input.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.next() % all.len() as u64;
        all[usize::try_from(at).expect("an index")]
    }
}

pub(crate) fn size(milli_cpu: u64, bytes: u64, gpus: u32) -> Resources {
    Resources {
        gpu_milli: 0,
        cpu: MilliCpu(milli_cpu),
        memory: Bytes(bytes),
        gpus,
        extended: BTreeMap::new(),
    }
}

/// No pools, no nodes, no demand, no limits.
pub(crate) fn empty() -> PlanInput {
    PlanInput {
        version: PLAN_VERSION,
        now: NOW,
        seed: 42,
        pools: Vec::new(),
        nodes: Vec::new(),
        classes: Vec::new(),
        launches: Vec::new(),
        memory: Vec::new(),
        policy: Policy::default(),
        learnt: Learnt::default(),
    }
}

/// A cloud pool without offerings.
pub(crate) fn pool(name: &str, site: &str, max: u32, rank: u32) -> PoolInput {
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
        max,
        config_max: None,
        spare: 0,
        idle_after: Millis::minutes(10),
        anticipate: None,
        quota: Quota::Percent(10),
        rank,
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        offerings: Vec::new(),
        steering: Steering::Zone,
        removable: true,
        unmanaged: 0,
        read_at: NOW,
    }
}

pub(crate) fn offering(
    pool: &PoolInput,
    kind: &str,
    zone: &str,
    market: Market,
    price: MicroUsd,
    allocatable: Resources,
) -> Offering {
    let market_name = if market == Market::Spot {
        "spot"
    } else {
        "on_demand"
    };
    let gpu_model = if allocatable.gpus > 0 {
        "NVIDIA H100 80GB HBM3"
    } else {
        ""
    };
    Offering {
        id: format!("{}/{kind}/{zone}/{market_name}", pool.id)
            .as_str()
            .into(),
        instance_type: kind.to_owned(),
        zone: zone.to_owned(),
        market,
        price,
        allocatable: Some(allocatable),
        gpu_model: gpu_model.to_owned(),
        boot: Millis::minutes(4),
        available: None,
        reservations: Vec::new(),
    }
}

pub(crate) fn class(name: &str, count: u32, unit: Resources) -> Class {
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
        submitted: NOW,
    }
}

/// Does a selector name pods with these labels? All are in one namespace.
pub(crate) fn selects(select: &Selector, labels: &BTreeMap<String, String>) -> bool {
    let value = |r: &Requirement| labels.get(&r.key).map(String::as_str);
    select.requirements.iter().all(|r| r.holds(value(r)))
}

/// Nodes that the plan asks for.
pub(crate) fn launched(planned: &Planned) -> u32 {
    planned
        .plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Launch { count, .. } => *count,
            _ => 0,
        })
        .sum()
}

/// Units that got a place, and units without.
pub(crate) fn placed(planned: &Planned) -> (u32, u32) {
    planned
        .report
        .classes
        .iter()
        .fold((0, 0), |(with, without), outcome| {
            let here = outcome.fitted + outcome.coming + outcome.grown;
            (with + here, without + outcome.unplaced)
        })
}

/// An error unless both are equal.
pub(crate) fn same(what: &str, found: u32, expected: u32) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found}, expected {expected}"))
    }
}
