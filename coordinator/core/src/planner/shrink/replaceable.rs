//! Nodes whose work all says that it can move and fits elsewhere for less: on nodes that exist, or on one cheaper new
//! one. Only where the policy consolidates. The dearest for what it carries first, one pass. Last strategy of `shrink`.

use super::super::state::Work;
use super::elsewhere::{Elsewhere, Limit, movable};
use super::nodes_of;
use crate::model::{Emptying, MicroUsd, NodeInput, Reason};
use std::cmp::Reverse;

pub(super) fn candidates(work: &Work<'_>, p: usize) -> Vec<usize> {
    let mut all: Vec<_> = nodes_of(work, p)
        .filter(|(_, n)| n.price > MicroUsd::ZERO && movable(work, n) && settled(work, p, n))
        .map(|(i, n)| (Reverse(n.price), n.used.gpus, n.used.cpu, &n.id, i))
        .collect();
    all.sort();
    all.into_iter().map(|(.., i)| i).collect()
}

pub(super) fn going(
    work: &Work<'_>,
    elsewhere: &mut Elsewhere,
    node: usize,
) -> Option<(Reason, Emptying)> {
    let moved = elsewhere.move_work(work, node, Limit::Cheaper)?;
    let reason = Reason::Replaceable {
        saves: moved.saves,
        by: moved.by,
    };
    Some((reason, Emptying::Evict))
}

/// Nothing on it has begun within the pool's idle time: what has just been moved, or has just started, stays a while.
fn settled(work: &Work<'_>, p: usize, node: &NodeInput) -> bool {
    let after = work.input.pools[p].idle_after;
    let started = node.workloads.iter().filter_map(|w| w.started);
    started
        .into_iter()
        .all(|at| at.after(after) <= work.input.now)
}
