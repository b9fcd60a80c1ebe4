//! Nodes, GPUs and cost by pool, summed over the nodes of the last cycle. Written by `metrics`. **Missing is not zero**: a
//! sum of which nothing is known is not written.

use super::Snapshot;
use super::family::{Family, Sheet, float};
use crate::control::view::{FleetView, NodeView};
use crate::serve::convert::nodes::lifecycle as state_word;
use drover_core::model::Lifecycle;
use std::collections::BTreeMap;
use std::fmt;

const NODES: Family = Family::gauge("pool_nodes", "Nodes by where they are in their life");
const CONDITIONS: Family = Family::gauge(
    "pool_node_conditions",
    "Nodes of which this holds; a node may be in several or in none",
);
const GPUS: Family = Family::gauge(
    "pool_gpus",
    "GPUs of nodes that have joined and not left, as far as known",
);
const FREE: Family = Family::gauge(
    "pool_gpus_free",
    "Of these GPUs, those that are neither used nor held by a request",
);
const COST: Family = Family::gauge(
    "pool_cost_usd_per_hour",
    "Cost of what runs, as far as prices are known",
);
const UNPRICED: Family = Family::gauge("pool_unpriced_nodes", "Nodes whose price is not known");

const LIVES: [Lifecycle; 9] = [
    Lifecycle::Requested,
    Lifecycle::Launched,
    Lifecycle::Joined,
    Lifecycle::Ready,
    Lifecycle::Draining,
    Lifecycle::Drained,
    Lifecycle::Leaving,
    Lifecycle::Gone,
    Lifecycle::Off,
];

/// A condition's word, and whether it holds.
type Condition = (&'static str, fn(&NodeView) -> bool);

const CONDITIONS_OF: [Condition; 6] = [
    ("available", NodeView::is_available),
    ("cordoned", |node| node.cordon.is_some()),
    ("faulty", |node| node.faulty.is_some()),
    ("idle", |node| node.idle_since.is_some()),
    ("quarantined", |node| node.quarantine.is_some()),
    ("unreachable", |node| node.unreachable),
];

/// The nodes of one pool; those in no pool are under an empty name.
#[derive(Default)]
struct Sums {
    lives: BTreeMap<Lifecycle, u64>,
    conditions: BTreeMap<&'static str, u64>,
    gpus: Sum,
    free: Sum,
    cost: Sum,
}

/// A sum of values that may be missing.
#[derive(Default)]
struct Sum {
    known: u64,
    missing: u64,
    value: u64,
}

impl Sum {
    fn add(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.known += 1;
                self.value = self.value.saturating_add(value);
            }
            None => self.missing += 1,
        }
    }

    /// Nothing to sum is zero; nothing known is nothing.
    const fn told(&self) -> Option<u64> {
        if self.known == 0 && self.missing > 0 {
            None
        } else {
            Some(self.value)
        }
    }
}

impl Sums {
    fn add(&mut self, node: &NodeView) {
        *self.lives.entry(node.lifecycle).or_default() += 1;
        for (word, holds) in CONDITIONS_OF {
            *self.conditions.entry(word).or_default() += u64::from(holds(node));
        }
        let here = matches!(
            node.lifecycle,
            Lifecycle::Joined | Lifecycle::Ready | Lifecycle::Draining | Lifecycle::Drained
        );
        if here {
            self.gpus.add(node.gpus.map(u64::from));
            self.free.add(node.gpus_free.map(u64::from));
        }
        if !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off) {
            self.cost.add(node.price.map(|price| price.0));
        }
    }
}

fn sums(view: &FleetView) -> BTreeMap<&str, Sums> {
    let mut all: BTreeMap<&str, Sums> = BTreeMap::new();
    for pool in &view.pools {
        all.entry(pool.name.as_str()).or_default();
    }
    for node in &view.nodes {
        let pool = node.pool.as_ref().map_or("", |pool| pool.as_str());
        all.entry(pool).or_default().add(node);
    }
    all
}

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let all = sums(&page.view);
    let lives = all.iter().flat_map(|(pool, sums)| {
        LIVES.iter().map(|life| {
            let count = sums.lives.get(life).copied();
            let labels = [("pool", *pool), ("state", state_word(*life))];
            (labels, count.unwrap_or(0))
        })
    });
    sheet.gauges(&NODES, lives)?;
    let conditions = all.iter().flat_map(|(pool, sums)| {
        CONDITIONS_OF.iter().map(|(word, _)| {
            let count = sums.conditions.get(word).copied();
            ([("pool", *pool), ("condition", *word)], count.unwrap_or(0))
        })
    });
    sheet.gauges(&CONDITIONS, conditions)?;
    let told = |of: fn(&Sums) -> &Sum| {
        let all = all.iter();
        all.filter_map(move |(pool, sums)| Some(([("pool", *pool)], of(sums).told()?)))
    };
    sheet.gauges(&GPUS, told(|sums| &sums.gpus))?;
    sheet.gauges(&FREE, told(|sums| &sums.free))?;
    let costs = told(|sums| &sums.cost);
    // Micro-USD inside.
    let costs = costs.map(|(labels, micro_usd)| (labels, float(micro_usd) / 1e6));
    sheet.gauges(&COST, costs)?;
    let unpriced = all.iter();
    sheet.gauges(
        &UNPRICED,
        unpriced.map(|(pool, sums)| ([("pool", *pool)], sums.cost.missing)),
    )
}
