//! The score of a run: cost beside the bounds, waits above the boot, waste by cause, jobs that were harmed.
//!
//! Called by `drover simulate`, the report and the benchmarks. Computed from the trace, the history and what was offered
//! alone, so that anyone can do it again from `--jobs`. `docs/simulate.md` says what each figure is.

pub mod jobs_file;
mod object;
pub mod table;
mod waits;
mod waste;

use super::bounds::{Bounds, bounds, usd_hours};
use super::config::Cost;
use super::history::{History, NodeHistory};
use super::offered::{self, Offered};
use super::trace::Trace;
use drover_core::model::{MicroUsd, Millis};

pub use object::object;
pub use table::{differences, table};
pub use waits::{GangSize, Waits};
pub use waste::Waste;

/// The price of one node-hour where node-hours are counted.
const ONE: MicroUsd = MicroUsd(1_000_000);

/// Everything that a score is computed from.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What was asked for.
    pub trace: &'a Trace,
    /// What happened.
    pub history: &'a History,
    /// What could be opened.
    pub offered: &'a [Offered],
    /// What is counted.
    pub cost: Cost,
    /// Who placed, for people.
    pub placer: &'a str,
    /// Seed of the run.
    pub seed: u64,
}

/// What cost is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// USD.
    Usd,
    /// Node-hours.
    NodeHours,
}

impl Unit {
    /// As a suffix of a key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Usd => "usd",
            Self::NodeHours => "node_hours",
        }
    }

    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Usd => "USD",
            Self::NodeHours => "node-hours",
        }
    }
}

/// The figures of one run. Money is in `unit`; waits are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Name of the trace.
    pub trace: String,
    /// Who decided.
    pub policy: String,
    /// Who placed.
    pub placer: String,
    /// Seed.
    pub seed: u64,
    /// What cost is counted in.
    pub unit: Unit,
    /// Of all nodes, from the grant to the end.
    pub cost: f64,
    /// Lower bounds and no packing, both without any boot.
    pub bounds: Bounds,
    /// All node-hours.
    pub node_hours: f64,
    /// Nodes that ever were.
    pub nodes: usize,
    /// Most nodes at once.
    pub most_nodes: usize,
    /// Waits above the boot floor.
    pub waits: Waits,
    /// The same by gang size.
    pub by_gang_size: Vec<GangSize>,
    /// Part of all jobs that did not start the moment they were submitted; those that never started are among them.
    pub share_waited: f64,
    /// Part of all jobs whose start waited for a node to boot: none that waited for a boot and then got room that another
    /// job left.
    pub share_waited_for_boot: f64,
    /// Jobs of the trace.
    pub jobs: usize,
    /// Jobs that were killed at least once.
    pub jobs_killed: usize,
    /// All kills.
    pub kills: u32,
    /// Times that work which says that it can move was moved. No kill.
    pub moves: u32,
    /// Jobs that never started.
    pub jobs_unstarted: usize,
    /// Jobs that started and had not ended when the run was over.
    pub jobs_unfinished: usize,
    /// What those that never started waited for, in words; empty where nothing is known of it.
    pub waited_for: Vec<String>,
    /// Node-hours without use, by cause.
    pub waste: Waste,
    /// The same in money.
    pub waste_cost: Waste,
    /// Plans made.
    pub plans: u64,
    /// Core time of all plans.
    pub plan_seconds: f64,
    /// Asks for capacity that were refused.
    pub refusals: u32,
    /// Violations of invariants, in words.
    pub violations: Vec<String>,
    /// Virtual time.
    pub days: f64,
    /// Rows of the trace that were left out: why, how many.
    pub skipped: Vec<(String, u32)>,
}

impl Score {
    /// All jobs were done. Else the cost is that of less work than the bounds and other runs are about.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.jobs_unstarted == 0 && self.jobs_unfinished == 0
    }

    /// Cost over the lower bound without delay; this and the other ratios only of a run that did all its work.
    #[must_use]
    pub fn over_bound(&self) -> Option<f64> {
        self.over(self.bounds.fluid)
    }

    /// Cost over the bound that knows the boot.
    #[must_use]
    pub fn over_boot_aware(&self) -> Option<f64> {
        self.over(self.bounds.boot_aware)
    }

    /// Cost over a node for each unit.
    #[must_use]
    pub fn over_no_packing(&self) -> Option<f64> {
        self.over(self.bounds.no_packing)
    }

    /// 0: no better than no packing; 1: the lower bound.
    #[must_use]
    pub fn gap_closed(&self) -> Option<f64> {
        let Bounds {
            no_packing, fluid, ..
        } = self.bounds;
        let gap = no_packing - fluid;
        // Work that nothing can pack has no gap, whatever the last digits of two sums say.
        let is_one = self.is_whole() && gap > no_packing * 1e-9;
        is_one.then(|| (no_packing - self.cost) / gap)
    }

    fn over(&self, bound: f64) -> Option<f64> {
        quotient(self.cost, self.is_whole().then_some(bound)?)
    }
}

/// Absent where there is nothing to divide by.
fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The score.
#[must_use]
pub fn score(run: &Run<'_>) -> Score {
    let Run {
        trace,
        history,
        cost,
        ..
    } = *run;
    let offered = counted(run.offered, cost);
    let unit = unit(history, &offered, cost);
    let price = |node: &NodeHistory| match cost {
        Cost::Usd => node.price,
        Cost::NodeHours => ONE,
    };
    let lost = waste::waste(history);
    let waited = waits::All::new(trace, history, &offered);
    let (share_waited, share_waited_for_boot) = waited.shares();
    let having = |what: fn(&super::history::JobHistory) -> bool| {
        history.jobs.iter().filter(|job| what(job)).count()
    };
    Score {
        trace: trace.name.clone(),
        policy: history.policy.clone(),
        placer: run.placer.to_owned(),
        seed: run.seed,
        unit,
        cost: total(history, price),
        bounds: bounds(trace, &offered),
        node_hours: total(history, |_| ONE),
        nodes: history.nodes.len(),
        most_nodes: most_at_once(history),
        waits: waited.waits(),
        by_gang_size: waited.by_size(),
        share_waited,
        share_waited_for_boot,
        jobs: trace.jobs.len(),
        jobs_killed: having(|job| job.kills > 0),
        kills: history.jobs.iter().map(|job| job.kills).sum(),
        moves: history.jobs.iter().map(|job| job.moves).sum(),
        jobs_unstarted: having(|job| job.started.is_none()),
        jobs_unfinished: having(|job| job.started.is_some() && job.ended.is_none()),
        waited_for: history.waited_for.clone(),
        waste: lost.iter().map(|(_, lost)| *lost).sum(),
        waste_cost: lost
            .iter()
            .map(|(node, lost)| lost.times(usd_hours(price(node).0, Millis::minutes(60))))
            .sum(),
        plans: history.plans,
        plan_seconds: history.plan_seconds,
        refusals: history.refusals.values().sum(),
        violations: history
            .violations
            .iter()
            .map(|(at, which, what)| format!("{}s {which}: {what}", at.0 / 1_000))
            .collect(),
        days: usd_hours(ONE.0, history.end) / 24.0,
        skipped: trace.skipped.clone(),
    }
}

/// What is offered, at the price that is counted.
pub(super) fn counted(offered: &[Offered], cost: Cost) -> Vec<Offered> {
    let mut offered = offered.to_vec();
    if cost == Cost::NodeHours {
        for kind in &mut offered {
            kind.price = ONE;
        }
    }
    offered
}

fn unit(history: &History, offered: &[Offered], cost: Cost) -> Unit {
    let one = offered.iter().all(|kind| kind.price == ONE)
        && history.nodes.iter().all(|node| node.price == ONE);
    if one || cost == Cost::NodeHours {
        Unit::NodeHours
    } else {
        Unit::Usd
    }
}

/// What all nodes cost by their own prices.
#[must_use]
pub fn cost(history: &History) -> f64 {
    total(history, |node| node.price)
}

fn total(history: &History, price: impl Fn(&NodeHistory) -> MicroUsd) -> f64 {
    history
        .nodes
        .iter()
        .map(|node| usd_hours(price(node).0, life(node, history.end)))
        // The sum of nothing is -0.
        .fold(0.0, |sum, one| sum + one)
}

/// From the grant to the end.
fn life(node: &NodeHistory, end: Millis) -> Millis {
    Millis(end_of(node, end).0 - node.launched.0)
}

fn end_of(node: &NodeHistory, end: Millis) -> Millis {
    node.ended.unwrap_or(end).max(node.launched)
}

fn most_at_once(history: &History) -> usize {
    let mut changes: Vec<(Millis, bool)> = Vec::new();
    for node in &history.nodes {
        changes.push((node.launched, true));
        changes.push((end_of(node, history.end), false));
    }
    // Ends before beginnings at one moment.
    changes.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, begins) in changes {
        now = if begins {
            now + 1
        } else {
            now.saturating_sub(1)
        };
        most = most.max(now);
    }
    most
}

/// The smallest boot of anything that can hold each part of the job: no start can be earlier where nothing is up.
fn boot_floor(job: &super::trace::Job, offered: &[Offered]) -> Millis {
    offered::parts(job)
        .iter()
        .filter_map(|part| {
            offered
                .iter()
                .filter(|kind| kind.holds(part, &job.constraints))
                .map(|kind| kind.boot)
                .min()
        })
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
