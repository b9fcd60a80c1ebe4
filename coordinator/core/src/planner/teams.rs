//! Budgets of teams: what a team uses and grows may not go beyond its limits of USD per hour and of GPUs. Demand of a team
//! over its budget is still placed on what exists, which costs nothing more; nothing is asked for it. Called by `plan` in
//! place of `grow` for single classes, by `gangs` before it takes a way, by `state` to book what is placed; what a share of
//! a node is, the check asks here too (`usage`). Growth is in `growth`.

mod growth;
mod usage;

pub(super) use growth::grow;
pub(super) use usage::{Use, running, share};

use super::fit;
use super::packing::Packing;
use super::state::Work;
use super::supply::{At, Bin};
use crate::model::{Budget, PlanInput, Reason};
use std::collections::{BTreeMap, BTreeSet};

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
        let parts = packing.groups.iter();
        let origins: BTreeSet<(usize, usize)> =
            parts.filter_map(|g| Some((g.offer, g.origin?))).collect();
        let old = origins
            .iter()
            .filter_map(|(o, leaf)| self.groups.at(*o, *leaf));
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
