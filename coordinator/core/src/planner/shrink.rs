//! Shrink: which nodes begin to leave, which drained ones go. An ordered, visible list of strategies. Called last by
//! `plan`, so that whatever demand, gangs and targets use is kept. Running work is never touched.

use super::gangs;
use super::state::Work;
use super::supply::{At, Bin, Tier, can_uncordon, is_present, removal_stop};
use crate::model::{Busy, Cordon, Lifecycle, NodeInput, PoolInput, PoolKind, Quota, Reason};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One node that goes.
pub(super) struct Removal {
    pub node: usize,
    /// Drained already: it leaves. Otherwise its drain begins.
    pub leave: bool,
    pub reason: Reason,
}

/// The decision, and why idle nodes stay.
#[derive(Default)]
pub(super) struct Shrunk {
    pub removals: Vec<Removal>,
    pub stays: BTreeMap<usize, Reason>,
}

/// Candidates of one strategy in one pool, worst first, each with its reason.
type Strategy = fn(&Work<'_>, usize) -> Vec<(usize, Reason)>;

/// In this order; a node is taken by the first that names it.
const STRATEGIES: [(&str, Strategy); 2] = [("faulty", faulty), ("empty", empty)];

/// Most nodes of a pool of this size from draining to leaving at once.
pub(super) fn quota_of(quota: Quota, nodes: u32) -> u32 {
    match quota {
        Quota::Count(n) => n,
        Quota::Percent(percent) => {
            let share = u64::from(nodes)
                .saturating_mul(u64::from(percent))
                .div_ceil(100);
            u32::try_from(share).unwrap_or(u32::MAX)
        }
    }
}

/// Decides for all pools.
pub(super) fn shrink(work: &Work<'_>) -> Shrunk {
    let mut out = Shrunk::default();
    for &p in work.pool_index.values() {
        leave(work, p, &mut out);
        drain(work, p, &mut out);
    }
    out
}

fn nodes_of<'w>(work: &'w Work<'_>, p: usize) -> impl Iterator<Item = (usize, &'w NodeInput)> {
    work.nodes_of[p].iter().map(|i| (*i, &work.input.nodes[*i]))
}

fn bin_of<'w>(work: &'w Work<'_>, node: usize) -> Option<&'w Bin> {
    let at = work.bin_of_node.get(&node)?;
    work.bins.get(*at)
}

/// Demand, a hold or a target uses it in this plan.
fn is_kept(work: &Work<'_>, node: usize) -> bool {
    work.kept_standing.contains(&node)
        || bin_of(work, node).is_some_and(|b| !b.placed.is_empty() || !b.held.is_empty())
}

fn leave(work: &Work<'_>, p: usize, out: &mut Shrunk) {
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
        if is_kept(work, i) {
            continue;
        }
        if let Some(stop) = removal_stop(pool) {
            out.stays.insert(i, Reason::Stopped { stop: stop.clone() });
        } else if pool.removable {
            out.removals.push(Removal {
                node: i,
                leave: true,
                reason: Reason::DrainedEmpty,
            });
        } else {
            out.stays.insert(i, Reason::NotRemovable);
        }
    }
}

fn drain(work: &Work<'_>, p: usize, out: &mut Shrunk) {
    let pool = &work.input.pools[p];
    let count = work.counts[p];
    let mut staying = 0;
    let mut idle = 0;
    let mut taken_back = 0;
    for (i, node) in nodes_of(work, p) {
        let back = can_uncordon(node) && is_kept(work, i);
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
        let spare = bin_of(work, i).is_some_and(|b| {
            b.idle && b.placed.is_empty() && b.held.is_empty() && (b.tier == Tier::Ready || back)
        });
        idle += u32::from(spare);
    }
    let quota = quota_of(pool.quota, count.nodes);
    let mut room = quota.saturating_sub(count.removing - taken_back.min(count.removing));
    let mut done = std::collections::BTreeSet::new();
    for (_, strategy) in STRATEGIES {
        for (i, reason) in strategy(work, p) {
            if !done.insert(i) {
                continue;
            }
            let node = &work.input.nodes[i];
            let counts = node.faulty.is_none() && node.cordon.is_none();
            let why_not = if is_kept(work, i) {
                Some(kept_for(work, i))
            } else if !pool.removable {
                Some(Reason::NotRemovable)
            } else if counts && staying <= pool.min {
                Some(Reason::AtMinimum)
            } else if let Some(stop) = removal_stop(pool) {
                Some(Reason::Stopped { stop: stop.clone() })
            } else if counts && idle <= pool.spare {
                Some(Reason::KeptAsSpare)
            } else if room == 0 {
                Some(Reason::QuotaUsed { quota })
            } else {
                None
            };
            if let Some(why) = why_not {
                out.stays.insert(i, why);
                continue;
            }
            room -= 1;
            if counts {
                staying -= 1;
                idle = idle.saturating_sub(1);
            }
            out.removals.push(Removal {
                node: i,
                leave: false,
                reason,
            });
        }
    }
}

/// Whom a kept node is kept for.
pub(super) fn kept_for(work: &Work<'_>, node: usize) -> Reason {
    let Some(bin) = bin_of(work, node) else {
        return Reason::KeptAsSpare;
    };
    let first = |list: &[(usize, u32)]| list.iter().map(|(c, _)| *c).min();
    match (first(&bin.placed), first(&bin.held)) {
        (Some(class), _) => Reason::KeptForDemand {
            source: work.input.classes[class].source.clone(),
        },
        (None, Some(gang)) => gangs::kept(work, gang),
        (None, None) => Reason::KeptAsSpare,
    }
}

/// Idle faulty nodes: replaced. Physical ones stay, a person is told.
fn faulty(work: &Work<'_>, p: usize) -> Vec<(usize, Reason)> {
    let pool: &PoolInput = &work.input.pools[p];
    nodes_of(work, p)
        .filter(|(_, n)| {
            matches!(n.lifecycle, Lifecycle::Joined | Lifecycle::Ready)
                && matches!(n.busy, Busy::Idle { .. })
                && n.drain.is_none()
                && !matches!(n.cordon, Some(Cordon::Person { .. }))
                && n.reserved.is_empty()
                && !n.unreachable
                && pool.kind != PoolKind::Static
        })
        .filter_map(|(i, n)| {
            Some((
                i,
                Reason::Faulty {
                    what: n.faulty.clone()?,
                },
            ))
        })
        .collect()
}

/// Idle for the pool's time: the dearest first, then the longest idle.
fn empty(work: &Work<'_>, p: usize) -> Vec<(usize, Reason)> {
    let pool = &work.input.pools[p];
    let mut all: Vec<_> = work.bins_of[p]
        .iter()
        .map(|b| &work.bins[*b])
        .filter(|b| b.idle)
        .filter_map(|b| match (b.at, b.tier) {
            (At::Node(n), Tier::Ready) => Some(n),
            // Cordoned by us and then left so: its drain begins (again).
            (At::Node(n), Tier::OwnCordoned) if work.input.nodes[n].drain.is_none() => Some(n),
            _ => None,
        })
        .filter_map(|n| {
            let node = &work.input.nodes[n];
            let Busy::Idle { since } = node.busy else {
                return None;
            };
            let due = work.input.now >= since.after(pool.idle_after)
                && node.lifecycle == Lifecycle::Ready;
            due.then_some((Reverse(node.price), since, &node.id, n))
        })
        .collect();
    all.sort();
    all.into_iter()
        .map(|(_, since, _, n)| (n, Reason::IdleSince { since }))
        .collect()
}
