//! Idle faulty nodes: replaced. Physical ones stay, a person is told. First strategy of `shrink`.

use super::super::state::Work;
use super::elsewhere::Elsewhere;
use super::nodes_of;
use crate::model::{Busy, Cordon, Emptying, Lifecycle, PoolKind, Reason};

pub(super) fn candidates(work: &Work<'_>, p: usize) -> Vec<usize> {
    if work.input.pools[p].kind == PoolKind::Static {
        return Vec::new();
    }
    nodes_of(work, p)
        .filter(|(_, n)| {
            n.faulty.is_some()
                && matches!(n.lifecycle, Lifecycle::Joined | Lifecycle::Ready)
                && matches!(n.busy, Busy::Idle { .. })
                && n.drain.is_none()
                && !matches!(n.cordon, Some(Cordon::Person { .. }))
                && n.reserved.is_empty()
                && !n.unreachable
        })
        .map(|(i, _)| i)
        .collect()
}

pub(super) fn going(work: &Work<'_>, _: &mut Elsewhere, node: usize) -> Option<(Reason, Emptying)> {
    let what = work.input.nodes[node].faulty.clone()?;
    Some((Reason::Faulty { what }, Emptying::Wait))
}
