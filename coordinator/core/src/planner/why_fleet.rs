//! The current reasons of pools and nodes (I9). Called by `report`; reads, changes and renders nothing.

use super::coming;
use super::report::Done;
use super::shrink::kept_for;
use super::state::Work;
use super::supply::{At, growth_stop, removal_stop};
use super::why::{LISTED, push};
use crate::model::{Busy, Cordon, Lifecycle, Mode, NodeInput, NodeOutcome, PoolOutcome, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// Every pool's current reasons.
pub(super) fn pools(work: &Work<'_>, done: &Done) -> Vec<PoolOutcome> {
    let mut limits: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
    let mut removed: BTreeMap<usize, u32> = BTreeMap::new();
    for (node, why) in &done.stays {
        let limit = matches!(
            why,
            Reason::QuotaUsed { .. } | Reason::DisruptionBudget { .. }
        );
        if let (true, Some(p)) = (limit, work.node_pool[*node]) {
            push(limits.entry(p).or_default(), Some(why.clone()));
        }
    }
    for node in done.removed.keys() {
        if let Some(p) = work.node_pool[*node] {
            *removed.entry(p).or_insert(0) += 1;
        }
    }
    let held = removals_held(work, done);
    let mut all = Vec::with_capacity(work.input.pools.len());
    for (p, pool) in work.input.pools.iter().enumerate() {
        let mut reasons: Vec<Reason> = Vec::new();
        reasons.extend(
            work.bad_pools
                .get(&p)
                .into_iter()
                .flatten()
                .map(|w| Reason::BadInput { what: w.clone() }),
        );
        reasons.extend(
            pool.stops
                .iter()
                .map(|s| Reason::Stopped { stop: s.clone() }),
        );
        for offer in work.offers.iter().filter(|o| o.pool == p) {
            if let Some(r @ (Reason::UnknownType { .. } | Reason::OutOfCapacity { .. })) =
                &offer.closed
            {
                push(&mut reasons, Some(r.clone()));
            }
        }
        if let Some((minimum, spare)) = work.below.get(&p) {
            reasons.push(Reason::BelowTarget {
                minimum: *minimum,
                spare: *spare,
            });
        }
        reasons.extend(work.headroom_short.get(&p).into_iter().flatten().cloned());
        if pool.most() > 0 && work.ledger.pool.get(p) == Some(&0) {
            reasons.push(Reason::AtMaximum {
                pool: pool.id.clone(),
                max: pool.max,
                config: pool.config_max,
            });
        }
        reasons.extend(limits.remove(&p).into_iter().flatten());
        reasons.extend(held.get(&p).into_iter().flatten().cloned());
        reasons.extend(coming::of_pool(work, p));
        if let Some(n) = done.launched.get(&p) {
            reasons.push(Reason::Growing { nodes: *n });
        }
        if let Some(n) = removed.get(&p) {
            reasons.push(Reason::Shrinking { nodes: *n });
        }
        if pool.mode != Mode::Full {
            reasons.push(Reason::ModeForbids { mode: pool.mode });
        }
        if reasons.is_empty() {
            reasons.push(Reason::Settled);
        }
        reasons.truncate(LISTED);
        all.push(PoolOutcome {
            demanded: work.demanded.get(&p).cloned(),
            pool: pool.id.clone(),
            reasons,
        });
    }
    all
}

/// Per pool: why nodes that could go stay. What a stop, the quota or the kind of the pool says is said already.
fn removals_held(work: &Work<'_>, done: &Done) -> BTreeMap<usize, Vec<Reason>> {
    let mut all: BTreeMap<usize, Vec<Reason>> = BTreeMap::new();
    for (node, said) in &done.stays {
        let known = matches!(
            said,
            Reason::QuotaUsed { .. }
                | Reason::DisruptionBudget { .. }
                | Reason::Stopped { .. }
                | Reason::NotRemovable
        );
        let (Some(p), false) = (work.node_pool[*node], known) else {
            continue;
        };
        let list = all.entry(p).or_default();
        let more = list.len() < LISTED;
        let same = list.iter_mut().find_map(|r| match r {
            Reason::RemovalHeld { nodes, why } if **why == *said => Some(nodes),
            _ => None,
        });
        match same {
            Some(nodes) => *nodes += 1,
            None if more => list.push(Reason::RemovalHeld {
                nodes: 1,
                why: Box::new(said.clone()),
            }),
            None => {}
        }
    }
    all
}

/// Every node's current reason.
pub(super) fn nodes(work: &Work<'_>, done: &Done) -> Vec<NodeOutcome> {
    let kept: BTreeSet<usize> = work
        .bins
        .iter()
        .filter(|b| !b.placed.is_empty() || !b.held.is_empty())
        .filter_map(|b| {
            if let At::Node(n) = b.at {
                Some(n)
            } else {
                None
            }
        })
        .chain(work.kept_free.keys().copied())
        .collect();
    let all = work.input.nodes.iter().enumerate();
    all.map(|(i, node)| NodeOutcome {
        node: node.id.clone(),
        reason: node_reason(work, done, &kept, i, node),
    })
    .collect()
}

fn node_reason(
    work: &Work<'_>,
    done: &Done,
    kept: &BTreeSet<usize>,
    i: usize,
    node: &NodeInput,
) -> Reason {
    if let Some(what) = work.bad_nodes.get(&i) {
        return Reason::BadInput { what: what.clone() };
    }
    let Some(p) = work.node_pool[i] else {
        return Reason::Foreign;
    };
    let pool = &work.input.pools[p];
    match node.lifecycle {
        Lifecycle::Leaving | Lifecycle::Gone | Lifecycle::Off => return Reason::NotThere,
        Lifecycle::Requested | Lifecycle::Launched => return Reason::NotJoined,
        _ => {}
    }
    if node.unreachable {
        return Reason::Unreachable;
    }
    if let Some(what) = &node.faulty {
        return Reason::Faulty { what: what.clone() };
    }
    if let Some(Cordon::Person { who, .. }) = &node.cordon {
        if let Some(drain) = &node.drain {
            return Reason::Draining {
                reason: drain.reason.clone(),
                who: Some(who.clone()),
                empty: node.lifecycle == Lifecycle::Drained,
            };
        }
        return Reason::CordonedByPerson { who: who.clone() };
    }
    if done.uncordoned.contains(&i) {
        return kept_for(work, i);
    }
    if let Some(reason) = done.removed.get(&i) {
        return reason.clone();
    }
    if let (Lifecycle::Drained, Some(why)) = (node.lifecycle, done.stays.get(&i)) {
        return why.clone();
    }
    // Room that is held for a gang is said even where other work runs.
    if kept.contains(&i) && (matches!(node.busy, Busy::Idle { .. }) || is_held(work, i)) {
        return kept_for(work, i);
    }
    if let Some(drain) = &node.drain {
        return Reason::Draining {
            reason: drain.reason.clone(),
            who: None,
            empty: node.lifecycle == Lifecycle::Drained,
        };
    }
    if !node.reserved.is_empty() {
        return Reason::HeldBy {
            requests: node
                .reserved
                .iter()
                .map(|r| r.request.to_string())
                .collect(),
        };
    }
    match &node.busy {
        Busy::Unknown { why } => Reason::WitnessMissing { why: why.clone() },
        Busy::Working { what, .. } if under_used(node) => {
            Reason::UnderUsedOccupied { what: what.clone() }
        }
        Busy::Working { what, .. } => Reason::Working { what: what.clone() },
        Busy::Idle { since } => {
            if node.lifecycle == Lifecycle::Joined {
                Reason::NotReady
            } else if let Some(why) = done.stays.get(&i) {
                why.clone()
            } else if !pool.removable {
                Reason::Free
            } else if let Some(stop) = removal_stop(pool).or_else(|| growth_stop(pool)) {
                Reason::Stopped { stop: stop.clone() }
            } else {
                Reason::IdleUntil {
                    until: since.after(pool.idle_after),
                }
            }
        }
    }
}

/// Room of it is held for a gang.
fn is_held(work: &Work<'_>, node: usize) -> bool {
    let bin = work.bin_of_node.get(&node).map(|b| &work.bins[*b]);
    bin.is_some_and(|b| !b.held.is_empty())
}

/// Works on less than half of what it has.
fn under_used(node: &NodeInput) -> bool {
    let (used, all) = (&node.used, &node.allocatable);
    if all.gpus > 0 {
        used.gpus.saturating_mul(2) < all.gpus
    } else {
        used.cpu.0.saturating_mul(2) < all.cpu.0
    }
}
