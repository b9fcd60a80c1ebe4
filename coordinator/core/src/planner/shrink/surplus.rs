//! Idle for the pool's time, beyond the spare that the pool keeps. Fourth strategy of `shrink`; that the spare itself
//! stays is said by `keep`.

use super::super::state::Work;
use super::elsewhere::Elsewhere;
use super::empty::{idle_long, idle_since};
use crate::model::{Emptying, Reason};

pub(super) fn candidates(work: &Work<'_>, p: usize) -> Vec<usize> {
    if work.input.pools[p].spare == 0 {
        return Vec::new();
    }
    idle_long(work, p)
}

pub(super) fn going(work: &Work<'_>, _: &mut Elsewhere, node: usize) -> Option<(Reason, Emptying)> {
    let since = idle_since(work, node)?;
    let spare = work.input.pools[work.node_pool[node]?].spare;
    Some((Reason::Surplus { since, spare }, Emptying::Wait))
}
