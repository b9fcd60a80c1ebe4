//! Budgets of teams: what a team uses and grows may not go beyond its limits of USD per hour and of GPUs. Demand of a team
//! over its budget is still placed on what exists, which costs nothing more; nothing is asked for it. Called by `plan` in
//! place of `grow` for single classes, by `gangs` before it takes a way, by `state` to book what is placed; what a share of
//! a node is, the check asks here too.

use super::fit;
use super::grow;
use super::packing::Packing;
use super::state::Work;
use super::supply::{At, Bin};
use crate::model::{Budget, MicroUsd, PlanInput, Reason, Resources, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of packing at most: each asks for less, the last for what is surely within the limits.
const ROUNDS: u32 = 4;

/// Cost and GPUs of a team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Use {
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
    fn max(self, other: Self) -> Self {
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
pub(super) fn share(unit: &Resources, whole: bool, gpus: u32, cpu: u64, price: u64) -> Use {
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

/// What every team with a limit uses.
#[derive(Default)]
pub(super) struct Teams<'a> {
    used: BTreeMap<&'a str, Use>,
    /// Classes of which something was not asked for, and why.
    held_back: BTreeMap<usize, Reason>,
}

impl<'a> Teams<'a> {
    /// Running work and what requests hold, on nodes and on their way.
    pub fn new(input: &'a PlanInput) -> Self {
        Self {
            used: running(input),
            held_back: BTreeMap::new(),
        }
    }

    fn book(&mut self, team: &'a str, more: Use) {
        let slot = self.used.entry(team).or_default();
        *slot = slot.plus(more);
    }

    fn used(&self, team: &str) -> Use {
        self.used.get(team).copied().unwrap_or_default()
    }
}

/// What running work and requests use, per team with a limit.
pub(super) fn running(input: &PlanInput) -> BTreeMap<&str, Use> {
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
    for node in input.nodes.iter().filter(|n| super::supply::is_present(n)) {
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

impl<'a> Work<'a> {
    /// The limits that hold for a class, with its team.
    pub fn team(&self, class: usize) -> Option<(&'a str, &'a Budget)> {
        let teams = &self.input.policy.teams;
        if teams.is_empty() {
            return None;
        }
        let (team, limit) = teams.get_key_value(&self.input.classes[class].team)?;
        let limited = limit.max_cost.is_some() || limit.max_gpus.is_some();
        limited.then_some((team.as_str(), limit))
    }

    /// Books units that go to a bin.
    pub fn book_bin(&mut self, class: usize, bin: usize, units: u32) {
        if let Some((team, _)) = self.team(class) {
            let more = self.share_of_bin(class, &self.bins[bin]).times(units);
            self.teams.book(team, more);
        }
    }

    /// What one unit takes of a bin.
    pub fn share_of_bin(&self, class: usize, bin: &Bin) -> Use {
        let unit = &self.input.classes[class];
        let price = match bin.at {
            At::Node(n) => self.input.nodes[n].price.0,
            At::Coming(l, _) => {
                let launch = &self.input.launches[l];
                let offerings = bin.pool.map(|p| &self.input.pools[p].offerings);
                let mut all = offerings.into_iter().flatten();
                all.find(|o| o.id == launch.offering)
                    .map_or(0, |o| o.price.0)
            }
        };
        share(
            &unit.unit,
            unit.whole_node,
            bin.total.gpus,
            bin.total.cpu,
            price,
        )
    }

    /// What one unit takes of a new node.
    fn share_of_new(&self, class: usize, offer: usize) -> Use {
        let (unit, offer) = (&self.input.classes[class], &self.offers[offer]);
        let (gpus, cpu) = (offer.size.gpus, offer.size.cpu);
        share(&unit.unit, unit.whole_node, gpus, cpu, offer.price)
    }

    /// What the new units of a class in a packing use.
    pub fn share_of_packing(&self, class: usize, packing: &Packing) -> Use {
        let of = |sum: Use, g: &super::state::Group| match g.units(class) {
            0 => sum,
            units => sum.plus(self.share_of_new(class, g.offer).times(units)),
        };
        let all = packing.groups.iter().fold(Use::default(), of);
        // The packing has not all open nodes: only those it has are subtracted.
        let origins: BTreeSet<usize> = packing.groups.iter().filter_map(|g| g.origin).collect();
        let old = origins.iter().filter_map(|g| self.groups.get(*g));
        let old = old.fold(Use::default(), of);
        Use {
            cost: all.cost.saturating_sub(old.cost),
            milli: all.milli.saturating_sub(old.milli),
        }
    }

    /// The limit of its team that more of a class would go beyond, beside what it takes of existing nodes.
    pub fn over_budget(&self, class: usize, fits: Use, more: Use) -> Option<Reason> {
        let (team, limit) = self.team(class)?;
        let what = self.teams.used(team).plus(fits).beyond(more, limit)?;
        Some(Reason::TeamBudget {
            team: team.to_owned(),
            what: what.to_owned(),
        })
    }

    /// Something of the class is not asked for: said in the end, if it is still open.
    pub fn hold_back(&mut self, class: usize, reason: Reason) {
        self.teams.held_back.entry(class).or_insert(reason);
    }

    /// Books new units, without asking.
    pub fn book_packing(&mut self, class: usize, packing: &Packing) {
        if let Some((team, _)) = self.team(class) {
            let more = self.share_of_packing(class, packing);
            self.teams.book(team, more);
        }
    }
}

/// Places classes on what exists, as far as their teams may pay for: what is beyond comes when everybody else of this
/// priority has been served (`leftover`), or it would take what others wait for and have to be given anew.
pub(super) fn fit(work: &mut Work<'_>, class: usize, would: bool) {
    let open = work.open[class];
    let mut most = open;
    if let (Some((team, limit)), false) = (work.team(class), would) {
        let bins = work.order_for(class).iter();
        let fitting = bins.filter(|b| {
            !work.bins[**b].would && !work.kept_out(class, **b) && work.room(class, **b) > 0
        });
        let least = fitting
            .map(|b| work.share_of_bin(class, &work.bins[*b]))
            .min_by_key(|u| (u.cost, u.milli));
        let Some(least) = least else { return };
        most = affordable(work.teams.used(team), least, limit).min(open);
    }
    work.open[class] = most;
    fit::fit_class(work, class, would);
    work.open[class] += open - most;
}

/// Places what is left of classes with a team on what is left of what exists: it costs nothing more.
pub(super) fn leftover(work: &mut Work<'_>, classes: &[usize]) {
    for class in classes {
        if work.team(*class).is_some() && work.open[*class] > 0 {
            fit::fit_class(work, *class, false);
        }
    }
}

/// Says what was held back and is still open.
pub(super) fn say(work: &mut Work<'_>) {
    for (class, reason) in std::mem::take(&mut work.teams.held_back) {
        if work.open[class] > 0 {
            work.note(class, reason);
        }
    }
}

/// Units that a team may still use, each of this much.
fn affordable(used: Use, each: Use, limit: &Budget) -> u32 {
    let usd = limit
        .max_cost
        .map(|m| u128::from(m.0).saturating_sub(used.cost));
    let gpus = limit
        .max_gpus
        .map(|m| (u128::from(m) * 1_000).saturating_sub(used.milli));
    let mut n = u32::MAX;
    for (left, each) in [(usd, each.cost), (gpus, each.milli)] {
        if let Some(most) = left.and_then(|l| l.checked_div(each)) {
            n = n.min(u32::try_from(most).unwrap_or(u32::MAX));
        }
    }
    n
}

/// Grows for the classes in `order` (largest first), as far as their teams may pay; `waits`: units per entry that wait
/// for running work instead.
pub(super) fn grow(work: &mut Work<'_>, order: &[usize], waits: &[u32], would: bool) {
    let open: Vec<u32> = order.iter().map(|c| work.open[*c]).collect();
    let wanted: Vec<u32> = open.iter().zip(waits).map(|(n, w)| n - w.min(n)).collect();
    let limited = (0..order.len()).any(|i| wanted[i] > 0 && work.team(order[i]).is_some());
    let (packing, asked) = if would || !limited {
        (pack(work, order, wanted.clone(), would), wanted.clone())
    } else {
        // Nothing is asked for while there is room on what exists, though the team may not pay for that.
        let room = |class: usize| {
            let mut bins = work.bins.iter().enumerate().filter(|(_, bin)| !bin.would);
            bins.any(|(b, _)| work.room(class, b) > 0 && !work.kept_out(class, b))
        };
        let pays = |i: usize| work.team(order[i]).is_none() || !room(order[i]);
        let most = |i: usize| if pays(i) { wanted[i] } else { 0 };
        let most: Vec<u32> = (0..order.len()).map(most).collect();
        within(work, order, &most)
    };
    for (i, class) in order.iter().enumerate() {
        if !would {
            work.book_packing(*class, &packing);
        }
        if asked[i] < wanted[i]
            && let Some(reason) = budget_reason(work, *class)
        {
            work.hold_back(*class, reason);
        }
    }
    grow::commit(work, order, packing);
    // What was not asked for is open as before.
    for (i, class) in order.iter().enumerate() {
        work.open[*class] += open[i] - asked[i];
    }
}

fn pack(work: &Work<'_>, order: &[usize], left: Vec<u32>, would: bool) -> Packing {
    grow::attempt(work, order, left, &work.ledger, &|_, o| o.would == would)
}

/// A packing in which no team goes beyond its limits, and the units that were asked for.
fn within(work: &Work<'_>, order: &[usize], wanted: &[u32]) -> (Packing, Vec<u32>) {
    let suits = |class: usize| {
        let unit = &work.input.classes[class];
        let open = work.offers.iter().enumerate().filter(|(_, o)| !o.would);
        open.filter(move |(o, offer)| {
            work.matches(class, offer.kind)
                && offer.times(unit) > 0
                && (work.ledger.room(&work.offers, *o) > 0
                    || work.groups.iter().any(|g| g.offer == *o))
        })
        .map(move |(o, _)| work.share_of_new(class, o))
    };
    let mut each: Vec<Use> = order
        .iter()
        .map(|c| {
            suits(*c)
                .min_by_key(|u| (u.cost, u.milli))
                .unwrap_or_default()
        })
        .collect();
    for round in 1.. {
        let asked = cap(work, order, wanted, &each);
        let packing = pack(work, order, asked.clone(), false);
        let mut more: BTreeMap<&str, (Use, &Budget)> = BTreeMap::new();
        for class in order {
            if let Some((team, limit)) = work.team(*class) {
                let slot = more.entry(team).or_insert((Use::default(), limit));
                slot.0 = slot.0.plus(work.share_of_packing(*class, &packing));
            }
        }
        let over = |team: &str, (sum, limit): &(Use, &Budget)| {
            work.teams.used(team).beyond(*sum, limit).is_some()
        };
        if round == ROUNDS || !more.iter().any(|(team, sum)| over(team, sum)) {
            return (packing, asked);
        }
        for (i, class) in order.iter().enumerate() {
            each[i] = if round + 1 == ROUNDS {
                suits(*class).fold(Use::default(), Use::max)
            } else {
                let groups = packing.groups.iter().filter(|g| g.units(*class) > 0);
                let shares = groups.map(|g| work.share_of_new(*class, g.offer));
                shares.fold(each[i], Use::max)
            };
        }
    }
    (
        pack(work, order, vec![0; order.len()], false),
        vec![0; order.len()],
    )
}

/// Units per entry that the teams may pay for, at this use for each: the oldest first.
fn cap(work: &Work<'_>, order: &[usize], wanted: &[u32], each: &[Use]) -> Vec<u32> {
    let mut asked = wanted.to_vec();
    let mut used: BTreeMap<&str, Use> = BTreeMap::new();
    let mut by_age: Vec<usize> = (0..order.len()).collect();
    by_age.sort_by_key(|i| (work.input.classes[order[*i]].submitted, order[*i]));
    for i in by_age {
        if let Some((team, limit)) = work.team(order[i]) {
            let sum = used.entry(team).or_insert_with(|| work.teams.used(team));
            asked[i] = asked[i].min(affordable(*sum, each[i], limit));
            *sum = sum.plus(each[i].times(asked[i]));
        }
    }
    asked
}

/// Why one unit more may not be asked for.
fn budget_reason(work: &Work<'_>, class: usize) -> Option<Reason> {
    let (team, limit) = work.team(class)?;
    let unit = &work.input.classes[class].unit;
    let milli = u128::from(unit.gpus) * 1_000 + u128::from(unit.gpu_milli);
    let more = Use { cost: 0, milli };
    let gpus = work.teams.used(team).beyond(more, limit);
    Some(Reason::TeamBudget {
        team: team.to_owned(),
        what: gpus.unwrap_or("USD/h").to_owned(),
    })
}
