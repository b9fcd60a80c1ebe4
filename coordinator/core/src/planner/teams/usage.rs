//! What a team uses: cost and GPUs as one amount, the share of a node that a unit takes, and what running work and requests
//! use already. Called by `teams`, and by the check for its own count; knows no plan.

use crate::model::{Budget, MicroUsd, PlanInput, Resources, Source};
use crate::planner::supply;
use std::collections::BTreeMap;

/// Cost and GPUs of a team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::planner) struct Use {
    /// Micro-USD per hour.
    pub cost: u128,
    /// Thousandths of a GPU.
    pub milli: u128,
}

impl Use {
    /// So many times.
    #[must_use]
    pub fn times(self, n: u32) -> Self {
        Self {
            cost: self.cost * u128::from(n),
            milli: self.milli * u128::from(n),
        }
    }
    /// Both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost + other.cost,
            milli: self.milli + other.milli,
        }
    }
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            cost: self.cost.max(other.cost),
            milli: self.milli.max(other.milli),
        }
    }
    /// The limit that more of it would go beyond; what takes no GPUs is not held up by a limit of GPUs, nor what is free
    /// by one of cost.
    pub fn beyond(self, more: Self, limit: &Budget) -> Option<&'static str> {
        let sum = self.plus(more);
        let usd = |m: MicroUsd| more.cost > 0 && sum.cost > u128::from(m.0);
        let gpus = |m: u32| more.milli > 0 && sum.milli > u128::from(m) * 1_000;
        if limit.max_cost.is_some_and(usd) {
            Some("USD/h")
        } else if limit.max_gpus.is_some_and(gpus) {
            Some("GPUs")
        } else {
            None
        }
    }
}

/// What one unit takes of a node with so many GPUs and milli-CPU: its share of the price by GPUs, or by CPU when it wants
/// none, rounded up; a unit that takes the whole node, all of it.
pub(in crate::planner) fn share(
    unit: &Resources,
    whole: bool,
    gpus: u32,
    cpu: u64,
    price: u64,
) -> Use {
    let all = u128::from(gpus) * 1_000;
    if whole {
        return Use {
            cost: price.into(),
            milli: all,
        };
    }
    let milli = u128::from(unit.gpus) * 1_000 + u128::from(unit.gpu_milli);
    let (part, of) = if milli > 0 {
        (milli, all)
    } else {
        (unit.cpu.0.into(), cpu.into())
    };
    let cost = (u128::from(price) * part.min(of)).div_ceil(of.max(1));
    Use { cost, milli }
}

/// What running work and requests use, per team with a limit.
pub(in crate::planner) fn running(input: &PlanInput) -> BTreeMap<&str, Use> {
    let mut used: BTreeMap<&str, Use> = BTreeMap::new();
    let teams = &input.policy.teams;
    if teams.is_empty() {
        return used;
    }
    let mut add = |team: &'_ str, more: Use| {
        if let Some((team, _)) = teams.get_key_value(team) {
            let slot = used.entry(team.as_str()).or_default();
            *slot = slot.plus(more);
        }
    };
    for node in input.nodes.iter().filter(|n| supply::is_present(n)) {
        let size = &node.allocatable;
        let of = |unit: &Resources| share(unit, false, size.gpus, size.cpu.0, node.price.0);
        for work in &node.workloads {
            add(&work.team, of(&work.unit).times(work.count));
        }
        for held in &node.reserved {
            add(&held.team, of(&held.amount));
        }
    }
    for launch in &input.launches {
        for (request, units) in &launch.reserved {
            let name = Source::Request(request.clone());
            let class = input.classes.iter().find(|c| c.source == name);
            let pool = input.pools.iter().find(|p| p.id == launch.pool);
            let offering = pool.and_then(|p| p.offerings.iter().find(|o| o.id == launch.offering));
            if let (Some(class), Some(offering)) = (class, offering)
                && let Some(size) = &offering.allocatable
            {
                let (gpus, cpu) = (size.gpus, size.cpu.0);
                let each = share(&class.unit, class.whole_node, gpus, cpu, offering.price.0);
                add(&class.team, each.times(*units));
            }
        }
    }
    used
}
