//! Node-hours that were paid and did no work, each with one cause; with the useful ones they are all node-hours.
//!
//! Called by `score`. The causes, first match wins:
//! - **churn**: all of a node that never ran anything, and the boot of a node that was asked for within one boot of the end
//!   of another of its pool and type: keeping that one would have cost less;
//! - **boot**: from the grant to ready;
//! - **gang hold**: up, without work, held for a gang that waits for its other nodes;
//! - **idle**: up, without work;
//! - **fragmentation**: the part of a working node that is not used, by the amount that is used most.

use super::end_of;
use crate::sim::bounds::HOUR_MS;
use crate::sim::history::{History, NodeHistory};
use crate::sim::offered::{amounts, ratio};
use drover_core::model::{Millis, Resources};
use std::collections::BTreeMap;
use std::iter::Sum;

/// Node-hours, or money, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waste {
    /// Booting.
    pub boot: f64,
    /// Held for a gang.
    pub gang_hold: f64,
    /// Unused parts of working nodes.
    pub fragmentation: f64,
    /// Without work.
    pub idle: f64,
    /// For nothing.
    pub churn: f64,
    /// The rest: used.
    pub useful: f64,
}

impl Waste {
    /// Causes by name, in one order; the useful part is not one.
    #[must_use]
    pub fn causes(&self) -> [(&'static str, f64); 5] {
        [
            ("boot", self.boot),
            ("gang_hold", self.gang_hold),
            ("fragmentation", self.fragmentation),
            ("idle", self.idle),
            ("churn", self.churn),
        ]
    }

    /// All of it, each times a price.
    #[must_use]
    pub fn times(&self, price: f64) -> Self {
        Self {
            boot: self.boot * price,
            gang_hold: self.gang_hold * price,
            fragmentation: self.fragmentation * price,
            idle: self.idle * price,
            churn: self.churn * price,
            useful: self.useful * price,
        }
    }
}

impl Sum for Waste {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            boot: a.boot + b.boot,
            gang_hold: a.gang_hold + b.gang_hold,
            fragmentation: a.fragmentation + b.fragmentation,
            idle: a.idle + b.idle,
            churn: a.churn + b.churn,
            useful: a.useful + b.useful,
        })
    }
}

/// Of each node.
pub(super) fn waste(history: &History) -> Vec<(&NodeHistory, Waste)> {
    let again = booted_again(history);
    history
        .nodes
        .iter()
        .zip(again)
        .map(|(node, again)| (node, of_node(node, again, history.end)))
        .collect()
}

/// Per node: was a like one ended less than its boot before it was asked for? Each end is held against one boot only.
fn booted_again(history: &History) -> Vec<bool> {
    let mut ends: BTreeMap<(&str, &str), Vec<Millis>> = BTreeMap::new();
    for node in &history.nodes {
        if let (Some(end), Some(_)) = (node.ended, node.ready) {
            let like = (node.pool.as_str(), node.instance_type.as_str());
            ends.entry(like).or_default().push(end);
        }
    }
    for ends in ends.values_mut() {
        ends.sort_unstable();
    }
    let mut order: Vec<usize> = (0..history.nodes.len()).collect();
    order.sort_by_key(|at| history.nodes[*at].launched);
    let mut again = vec![false; history.nodes.len()];
    for at in order {
        let node = &history.nodes[at];
        let like = (node.pool.as_str(), node.instance_type.as_str());
        let (Some(ready), Some(ends)) = (node.ready, ends.get_mut(&like)) else {
            continue;
        };
        let boot = ready.0 - node.launched.0;
        // The last end that is not after the ask.
        let before = ends.partition_point(|end| *end <= node.launched);
        let Some(last) = before.checked_sub(1) else {
            continue;
        };
        if node.launched.0 - ends[last].0 < boot {
            ends.remove(last);
            again[at] = true;
        }
    }
    again
}

fn of_node(node: &NodeHistory, again: bool, end: Millis) -> Waste {
    let mut lost = Waste::default();
    let end = end_of(node, end);
    let Some(ready) = node.ready.filter(|_| ran(node)) else {
        lost.churn = hours(node.launched, end);
        return lost;
    };
    let ready = ready.min(end);
    let boot = hours(node.launched, ready);
    if again {
        lost.churn = boot;
    } else {
        lost.boot = boot;
    }
    let nothing = (ready, Resources::default());
    let all: Vec<&(Millis, Resources)> = std::iter::once(&nothing).chain(&node.used).collect();
    for (at, (from, used)) in all.iter().enumerate() {
        let until = all.get(at + 1).map_or(end, |next| next.0).min(end);
        let from = (*from).max(ready);
        if until <= from {
            continue;
        }
        let span = hours(from, until);
        if used.is_zero() {
            let held = held(node, from, until);
            lost.gang_hold += held;
            lost.idle += span - held;
        } else {
            let share = share(used, &node.allocatable);
            lost.useful += span * share;
            lost.fragmentation += span * (1.0 - share);
        }
    }
    lost
}

fn ran(node: &NodeHistory) -> bool {
    node.used.iter().any(|(_, used)| !used.is_zero())
}

/// Hours of a span in which it was held for a gang. The spans of a node do not overlap.
fn held(node: &NodeHistory, from: Millis, until: Millis) -> f64 {
    node.gang_held
        .iter()
        .map(|(begin, end)| ((*begin).max(from), (*end).min(until)))
        .filter(|(begin, end)| begin < end)
        .map(|(begin, end)| hours(begin, end))
        .sum::<f64>()
        .min(hours(from, until))
}

/// The largest share of the node that is in use, over everything that it has; 0 to 1.
fn share(used: &Resources, all: &Resources) -> f64 {
    let taken: BTreeMap<&str, u64> = amounts(used).into_iter().collect();
    amounts(all)
        .into_iter()
        .filter(|(_, all)| *all > 0)
        .map(|(name, all)| ratio(taken.get(name).copied().unwrap_or(0), all))
        .fold(0.0, f64::max)
        .min(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "a score, not an amount")]
fn hours(from: Millis, until: Millis) -> f64 {
    until.0.saturating_sub(from.0) as f64 / HOUR_MS
}
