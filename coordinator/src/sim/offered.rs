//! What a simulation can open, as plain facts, and what of a job a node must hold.
//!
//! Derived from the simulation's world; read by the bounds, the policies for comparison, the score and the report.
//! Knows no planner and no provider.

use super::config::{Cost, SimConfig};
use super::trace::Job;
use crate::config::PoolSource;
use crate::world::OfferingSpec;
use drover_core::model::{Bytes, Constraints, MicroUsd, MilliCpu, Millis, Requirement, Resources};
use std::collections::BTreeMap;

/// One way to get a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Instance type.
    pub name: String,
    /// Pool that opens it.
    pub pool: String,
    /// Zone.
    pub zone: String,
    /// Price per hour.
    pub price: MicroUsd,
    /// What a new node offers workloads. GPUs are whole here.
    pub allocatable: Resources,
    /// Least time from asking to ready.
    pub boot: Millis,
    /// GPU model; empty without GPUs.
    pub gpu_model: String,
    /// Labels of its nodes.
    pub labels: BTreeMap<String, String>,
    /// Spans without any capacity, since the start of the simulation: (from, until).
    pub short: Vec<(Millis, Millis)>,
    /// Most nodes at once; absent: no end.
    pub most: Option<u32>,
}

/// Everything that the pools of a simulation can open, in their order. A group that no pool drives opens nothing.
#[must_use]
pub fn of_config(sim: &SimConfig) -> Vec<Offered> {
    let mut all = Vec::new();
    for pool in &sim.config.pools {
        let PoolSource::Sim(source) = &pool.source else {
            continue;
        };
        let groups = &sim.world.groups;
        let Some(group) = groups.iter().find(|group| group.name == source.group) else {
            continue;
        };
        all.extend(group.offerings.iter().map(|offering| {
            Offered {
                name: offering.instance_type.clone(),
                pool: pool.name.to_string(),
                zone: offering.zone.clone(),
                price: match sim.simulate.cost {
                    Cost::NodeHours => MicroUsd(1_000_000),
                    Cost::Usd => pool
                        .prices
                        .get(&offering.instance_type)
                        .copied()
                        .unwrap_or(MicroUsd(offering.price_micro_usd_per_hour)),
                },
                allocatable: allocatable(offering),
                boot: Millis(offering.boot_ms.saturating_add(sim.simulate.join_delay.0)),
                gpu_model: offering.gpu_model.clone(),
                labels: pool.labels.clone(),
                short: offering
                    .shortages
                    .iter()
                    .map(|window| (Millis(window.from_ms), Millis(window.until_ms)))
                    .collect(),
                most: Some(pool.max.min(group.max)),
            }
        }));
    }
    all
}

impl Offered {
    /// May a job with these constraints ever go here? Looks at no amounts.
    #[must_use]
    pub fn allows(&self, wanted: &Constraints) -> bool {
        let holds = |rule: &Requirement| rule.holds(self.labels.get(&rule.key).map(String::as_str));
        (wanted.pools.is_empty() || wanted.pools.iter().any(|pool| pool.as_str() == self.pool))
            && plain(&self.gpu_model).contains(&plain(&wanted.gpu_model))
            && wanted.requirements.iter().all(holds)
            && (wanted.any_of.is_empty() || wanted.any_of.iter().any(|all| all.iter().all(holds)))
            && wanted.unsupported.is_empty()
    }

    /// Can a new node of it hold this part of a job?
    #[must_use]
    pub fn holds(&self, part: &Part, wanted: &Constraints) -> bool {
        part.need.fits(&self.allocatable) && self.allows(wanted)
    }

    /// In a span without capacity at this moment; its end.
    #[must_use]
    pub fn short_until(&self, now: Millis) -> Option<Millis> {
        self.short
            .iter()
            .find(|(from, until)| *from <= now && now < *until)
            .map(|(_, until)| *until)
    }
}

/// A GPU model's name without case, dashes, underscores and blanks, as the planner compares it.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// What must be on one node: a unit of a job, or its remainder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// How much. A share of a GPU counts as a whole one.
    pub need: Resources,
    /// The node holds nothing else.
    pub whole: bool,
}

/// A job's parts, whole nodes first.
#[must_use]
pub fn parts(job: &Job) -> Vec<Part> {
    let unit = Part {
        need: whole_gpus(&job.unit),
        whole: job.whole_node,
    };
    let mut parts = vec![unit; job.units as usize];
    parts.extend(job.rest.as_ref().map(|rest| Part {
        need: whole_gpus(rest),
        whole: false,
    }));
    parts
}

/// Can every part of the job be held by something that is offered?
#[must_use]
pub fn possible(job: &Job, offered: &[Offered]) -> bool {
    parts(job).iter().all(|part| {
        offered
            .iter()
            .any(|kind| kind.holds(part, &job.constraints))
    })
}

/// The cheapest kind that holds the part alone; the first of equals.
#[must_use]
pub fn cheapest(part: &Part, wanted: &Constraints, offered: &[Offered]) -> Option<usize> {
    (0..offered.len())
        .filter(|kind| offered[*kind].holds(part, wanted))
        .min_by_key(|kind| offered[*kind].price)
}

fn whole_gpus(unit: &Resources) -> Resources {
    let mut need = unit.clone();
    if need.gpu_milli > 0 {
        need.gpus = need.gpus.saturating_add(need.gpu_milli.div_ceil(1_000));
        need.gpu_milli = 0;
    }
    need
}

/// The kinds of amount there are, in one order.
#[must_use]
pub(super) fn amounts(of: &Resources) -> Vec<(&str, u64)> {
    let Resources {
        cpu: MilliCpu(cpu),
        memory: Bytes(memory),
        gpus,
        gpu_milli,
        extended,
    } = of;
    let gpus = u64::from(*gpus) * 1_000 + u64::from(*gpu_milli);
    let mut all = vec![("gpu", gpus), ("cpu", *cpu), ("memory", *memory)];
    all.extend(
        extended
            .iter()
            .map(|(name, amount)| (name.as_str(), *amount)),
    );
    all
}

/// A quotient for people and scores.
#[expect(clippy::cast_precision_loss, reason = "a share, not an amount")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// What an instance offers workloads.
pub(in crate::sim) fn allocatable(offering: &OfferingSpec) -> Resources {
    Resources {
        cpu: MilliCpu(offering.milli_cpus()),
        memory: Bytes(offering.memory_bytes()),
        gpus: offering.gpus,
        ..Resources::default()
    }
}
