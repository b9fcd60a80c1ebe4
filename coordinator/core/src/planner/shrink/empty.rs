//! Idle for the pool's time, in a pool without a spare: the dearest first, then the longest idle. Third strategy of
//! `shrink`; `surplus` is the same for pools with a spare.

use super::super::anticipate;
use super::super::state::Work;
use super::super::supply::{At, Tier};
use super::elsewhere::Elsewhere;
use crate::model::{Busy, Emptying, Lifecycle, Reason, UnixMs};
use std::cmp::Reverse;

pub(super) fn candidates(work: &Work<'_>, p: usize) -> Vec<usize> {
    if work.input.pools[p].spare > 0 {
        return Vec::new();
    }
    idle_long(work, p)
}

pub(super) fn going(work: &Work<'_>, _: &mut Elsewhere, node: usize) -> Option<(Reason, Emptying)> {
    let since = idle_since(work, node)?;
    Some((Reason::IdleSince { since }, Emptying::Wait))
}

/// Since when a node is idle by evidence; none: it is not.
pub(super) fn idle_since(work: &Work<'_>, node: usize) -> Option<UnixMs> {
    match work.input.nodes[node].busy {
        Busy::Idle { since } => Some(since),
        Busy::Working { .. } | Busy::Unknown { .. } => None,
    }
}

/// Nodes of a pool that are idle for its time.
pub(super) fn idle_long(work: &Work<'_>, p: usize) -> Vec<usize> {
    let after = work.input.pools[p].idle_after;
    let mut all: Vec<_> = idle_nodes(work, p)
        .filter_map(|n| {
            let node = &work.input.nodes[n];
            let since = idle_since(work, n)?;
            (work.input.now >= since.after(after)).then_some((
                Reverse(node.price),
                anticipate::held_until(work, n).unwrap_or(since),
                since,
                &node.id,
                n,
            ))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(.., n)| n).collect()
}

/// Ready nodes of a pool that are idle, and those that Drover cordoned and left so: their drain begins (again).
pub(super) fn idle_nodes<'w>(work: &'w Work<'_>, p: usize) -> impl Iterator<Item = usize> + 'w {
    let bins = work.bins_of[p].iter().map(|b| &work.bins[*b]);
    bins.filter(|b| b.idle).filter_map(|b| {
        let At::Node(n) = b.at else { return None };
        let node = &work.input.nodes[n];
        let free = match b.tier {
            Tier::Ready => true,
            Tier::OwnCordoned => node.drain.is_none(),
            Tier::Coming => false,
        };
        (free && node.lifecycle == Lifecycle::Ready).then_some(n)
    })
}
