//! As old as the pool allows: replaced once it is empty, or, where the policy consolidates, once all its work says that
//! it can move and fits elsewhere at no more cost. The oldest first. Second strategy of `shrink`.

use super::super::state::Work;
use super::elsewhere::{Elsewhere, Limit, movable};
use super::empty::idle_nodes;
use super::nodes_of;
use crate::model::{Busy, Emptying, NodeInput, Reason, UnixMs};

pub(super) fn candidates(work: &Work<'_>, p: usize) -> Vec<usize> {
    if work.input.pools[p].expire_after.is_none() {
        return Vec::new();
    }
    let moving = nodes_of(work, p).filter(|(_, n)| movable(work, n));
    let mut all: Vec<(UnixMs, usize)> = idle_nodes(work, p)
        .chain(moving.map(|(i, _)| i))
        .filter_map(|n| Some((expired_at(work, n)?, n)))
        .collect();
    all.sort();
    all.into_iter().map(|(_, n)| n).collect()
}

pub(super) fn going(
    work: &Work<'_>,
    elsewhere: &mut Elsewhere,
    node: usize,
) -> Option<(Reason, Emptying)> {
    let at = expired_at(work, node)?;
    let how = if matches!(work.input.nodes[node].busy, Busy::Idle { .. }) {
        Emptying::Wait
    } else {
        elsewhere.move_work(work, node, Limit::NoDearer)?;
        Emptying::Evict
    };
    Some((Reason::ExpiredAt { at }, how))
}

/// When a node reached the age that its pool allows; none: it has not, or its age is not known.
fn expired_at(work: &Work<'_>, node: usize) -> Option<UnixMs> {
    let NodeInput { launched, .. } = work.input.nodes[node];
    let pool = &work.input.pools[work.node_pool[node]?];
    let at = launched?.after(pool.expire_after?);
    (at <= work.input.now).then_some(at)
}
