//! Drained nodes leave: empty by evidence, drained by Drover itself, wanted by nobody in this plan. Called by `shrink`
//! before its strategies. The removal quota counted them when their drain began.

use super::super::state::Work;
use super::super::supply::removal_stop;
use super::{Removal, Shrunk, keep, nodes_of};
use crate::model::{Busy, Cordon, Emptying, Lifecycle, PoolKind, Reason};

pub(super) fn leave(work: &Work<'_>, p: usize, out: &mut Shrunk) {
    let pool = &work.input.pools[p];
    for (i, node) in nodes_of(work, p) {
        let ours = node.cordon == Some(Cordon::Drover)
            && (node.drain.as_ref().is_some_and(|d| d.own_idle) || node.faulty.is_some());
        let empty = matches!(node.busy, Busy::Idle { .. }) && node.reserved.is_empty();
        let known_dead = pool.kind == PoolKind::Static && node.faulty.is_some();
        if node.lifecycle != Lifecycle::Drained || !ours || !empty || node.unreachable || known_dead
        {
            continue;
        }
        if keep::is_used(work, i) {
            continue;
        }
        if let Some(stop) = removal_stop(pool) {
            out.stays.insert(i, Reason::Stopped { stop: stop.clone() });
        } else if pool.removable {
            out.removals.push(Removal {
                node: i,
                leave: true,
                reason: Reason::DrainedEmpty,
                how: Emptying::Wait,
            });
        } else {
            out.stays.insert(i, Reason::NotRemovable);
        }
    }
}
