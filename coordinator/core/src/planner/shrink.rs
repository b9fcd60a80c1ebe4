//! Shrink: which nodes begin to leave, which drained ones go. An ordered, visible list of strategies. Called last by
//! `plan`, so that whatever demand, gangs and targets use is kept. Running work is never touched, but for work that says
//! that it can move, where the policy consolidates.

mod alike;
mod budget;
mod elsewhere;
mod empty;
mod expired;
mod faulty;
mod keep;
mod leave;
mod replaceable;
mod surplus;

pub(super) use keep::kept_for;

use super::state::Work;
use super::supply::{Bin, Tier, is_present};
use crate::model::{Busy, Cordon, Emptying, Lifecycle, NodeInput, Reason};
use budget::Room;
use elsewhere::Elsewhere;
use std::collections::{BTreeMap, BTreeSet};

/// One way to find nodes that may go.
struct Strategy {
    /// What disruption budgets call it.
    name: &'static str,
    /// The minimum and the spare of the pool hold its nodes; else a node that goes is to be replaced.
    counts: bool,
    /// Candidates in one pool, worst first.
    candidates: fn(&Work<'_>, usize) -> Vec<usize>,
    /// Last look at one that nothing keeps: why it goes, and how; none: it stays after all.
    going: fn(&Work<'_>, &mut Elsewhere, usize) -> Option<(Reason, Emptying)>,
}

/// In this order; a node is taken by the first that names it.
const STRATEGIES: [Strategy; 5] = [
    Strategy {
        name: "faulty",
        counts: false,
        candidates: faulty::candidates,
        going: faulty::going,
    },
    Strategy {
        name: "expired",
        counts: false,
        candidates: expired::candidates,
        going: expired::going,
    },
    Strategy {
        name: "empty",
        counts: true,
        candidates: empty::candidates,
        going: empty::going,
    },
    Strategy {
        name: "surplus",
        counts: true,
        candidates: surplus::candidates,
        going: surplus::going,
    },
    Strategy {
        name: "replaceable",
        counts: true,
        candidates: replaceable::candidates,
        going: replaceable::going,
    },
];

/// One node that goes.
pub(super) struct Removal {
    pub node: usize,
    /// Drained already: it leaves. Otherwise its drain begins.
    pub leave: bool,
    pub reason: Reason,
    pub how: Emptying,
}

/// The decision, and why nodes stay that could go.
#[derive(Default)]
pub(super) struct Shrunk {
    pub removals: Vec<Removal>,
    pub stays: BTreeMap<usize, Reason>,
}

/// What is left of a pool while its nodes are taken.
struct Standing {
    /// Nodes that stay, for the minimum.
    staying: u32,
    /// Of them those that are free, for the spare.
    idle: u32,
    /// Nodes that work: no more idle ones are held for likely demand.
    working: u32,
    room: Room,
}

/// Decides for all pools.
pub(super) fn shrink(work: &Work<'_>) -> Shrunk {
    let mut out = Shrunk::default();
    let pools: Vec<usize> = work.pool_index.values().copied().collect();
    let mut standing: BTreeMap<usize, Standing> = BTreeMap::new();
    for &p in &pools {
        leave::leave(work, p, &mut out);
        standing.insert(p, Standing::of(work, p));
    }
    let mut elsewhere = Elsewhere::default();
    let mut named = BTreeSet::new();
    for strategy in &STRATEGIES {
        for (p, pool) in &mut standing {
            for node in (strategy.candidates)(work, *p) {
                if !named.insert(node) {
                    continue;
                }
                let look = keep::Look {
                    work,
                    node,
                    pool: *p,
                    standing: pool,
                    counts: strategy.counts,
                };
                let stays = keep::why(&look).or_else(|| pool.room.exhausted(strategy.name));
                if let Some(why) = stays {
                    out.stays.insert(node, why);
                    continue;
                }
                let Some((reason, how)) = (strategy.going)(work, &mut elsewhere, node) else {
                    named.remove(&node);
                    continue;
                };
                pool.took(work, node);
                elsewhere.gone.insert(node);
                out.removals.push(Removal {
                    node,
                    leave: false,
                    reason,
                    how,
                });
            }
        }
    }
    out.removals
        .sort_by_key(|r| (work.node_pool[r.node], !r.leave));
    out
}

impl Standing {
    fn of(work: &Work<'_>, p: usize) -> Self {
        let (mut staying, mut idle, mut taken_back) = (0, 0, 0);
        let mut working = 0;
        for (i, node) in nodes_of(work, p) {
            let back = keep::is_taken_back(work, i);
            if back && (node.drain.is_some() || node.lifecycle != Lifecycle::Ready) {
                taken_back += 1;
            }
            let on_way_out = node.drain.is_some()
                || node.cordon == Some(Cordon::Drover)
                || matches!(
                    node.lifecycle,
                    Lifecycle::Draining | Lifecycle::Drained | Lifecycle::Leaving
                );
            if is_present(node) && node.faulty.is_none() && (back || !on_way_out) {
                staying += 1;
            }
            idle += u32::from(is_spare(work, i));
            working += u32::from(matches!(node.busy, Busy::Working { .. }));
        }
        Self {
            staying,
            idle,
            working,
            room: Room::of(work, p, taken_back),
        }
    }

    /// A node goes.
    fn took(&mut self, work: &Work<'_>, node: usize) {
        self.room.take();
        let input = &work.input.nodes[node];
        if input.faulty.is_none() && input.cordon.is_none() {
            self.staying = self.staying.saturating_sub(1);
            self.idle = self.idle.saturating_sub(u32::from(is_spare(work, node)));
        }
    }
}

/// Free for anything: what counts as spare.
fn is_spare(work: &Work<'_>, node: usize) -> bool {
    let back = keep::is_taken_back(work, node);
    bin_of(work, node).is_some_and(|b| {
        b.idle && b.placed.is_empty() && b.held.is_empty() && (b.tier == Tier::Ready || back)
    })
}

fn nodes_of<'w>(work: &'w Work<'_>, p: usize) -> impl Iterator<Item = (usize, &'w NodeInput)> {
    work.nodes_of[p].iter().map(|i| (*i, &work.input.nodes[*i]))
}

fn bin_of<'w>(work: &'w Work<'_>, node: usize) -> Option<&'w Bin> {
    let at = work.bin_of_node.get(&node)?;
    work.bins.get(*at)
}
