//! What was asked of pools since the start: launches and removals. Written by `metrics`.

use super::Snapshot;
use super::family::{Family, Sheet};
use crate::control::events::failure_word;
use crate::control::tally::{Arrival, Removal};
use drover_core::model::PoolId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const ARRIVALS: Family = Family::counter(
    "pool_launch_nodes",
    "Nodes that were asked for, joined, did not join in time, or were given back unfilled",
);
const LAUNCH_FAILURES: Family = Family::counter(
    "pool_launch_failures",
    "Asks that failed wholly or in part, by kind of failure",
);
const REMOVALS: Family = Family::counter(
    "pool_removals",
    "Machines that were told to go, or taken off the provider's books",
);
const REMOVAL_FAILURES: Family = Family::counter(
    "removal_failures",
    "Removals that a provider refused, by kind of failure",
);

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let counts = &page.counts;
    let arrivals = with_zeros(page, &Arrival::ALL, &counts.arrivals);
    let arrivals = arrivals.map(|(pool, what, count)| {
        let labels = [("pool", pool.as_str()), ("outcome", what.word())];
        (labels, count)
    });
    sheet.counters(&ARRIVALS, arrivals)?;
    let failures = counts.launch_failures.iter();
    let failures = failures.map(|((pool, kind), count)| {
        let labels = [("pool", pool.as_str()), ("reason", failure_word(*kind))];
        (labels, *count)
    });
    sheet.counters(&LAUNCH_FAILURES, failures)?;
    let removals = with_zeros(page, &Removal::ALL, &counts.removals);
    let removals = removals.map(|(pool, how, count)| {
        let labels = [("pool", pool.as_str()), ("act", how.word())];
        (labels, count)
    });
    sheet.counters(&REMOVALS, removals)?;
    let refused = counts.removal_failures.iter();
    let refused = refused.map(|(kind, count)| ([("reason", failure_word(*kind))], *count));
    sheet.counters(&REMOVAL_FAILURES, refused)
}

/// Every pool that there is or that something was counted for, with every word: a rate needs its first zero.
fn with_zeros<'a, W: Copy + Ord>(
    page: &'a Snapshot,
    words: &'a [W],
    counts: &'a BTreeMap<(PoolId, W), u64>,
) -> impl Iterator<Item = (&'a PoolId, W, u64)> {
    let here = page.view.pools.iter().map(|pool| &pool.name);
    let counted = counts.keys().map(|(pool, _)| pool);
    let pools: BTreeSet<&PoolId> = here.chain(counted).collect();
    pools.into_iter().flat_map(move |pool| {
        words.iter().map(move |word| {
            let count = counts.get(&(pool.clone(), *word)).copied();
            (pool, *word, count.unwrap_or(0))
        })
    })
}
