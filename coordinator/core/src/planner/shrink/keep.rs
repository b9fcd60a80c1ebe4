//! Why a node that could go stays: one function and its ordered list of reasons. Called by `shrink` for every candidate
//! before the limits of removal are looked at, and by the reports for nodes that are used. A node that would be asked for
//! again before it is gone costs a boot: so what pending or imminent demand will use is kept.

use super::super::anticipate;
use super::super::gangs;
use super::super::state::Work;
use super::super::supply::{can_uncordon, removal_stop};
use super::{Standing, bin_of, is_spare};
use crate::model::{PoolInput, Reason};

/// A candidate, and what is left of its pool.
pub(super) struct Look<'l, 'a> {
    pub work: &'l Work<'a>,
    pub node: usize,
    pub pool: usize,
    pub standing: &'l Standing,
    /// The minimum and the spare of the pool hold it.
    pub counts: bool,
}

/// One reason to keep a node.
type Keep = fn(&Look<'_, '_>) -> Option<Reason>;

/// In this order; the first that holds is said.
const KEEPS: [(&str, Keep); 6] = [
    ("used in this plan", used),
    ("no way to remove it", hardware),
    ("the pool's minimum", minimum),
    ("removal holds", stop),
    ("the pool's spare", spare),
    ("demand is likely", likely),
];

/// Why the node stays; none: nothing keeps it.
pub(super) fn why(look: &Look<'_, '_>) -> Option<Reason> {
    KEEPS.iter().find_map(|(_, keep)| keep(look))
}

/// Demand, a hold, a target or the headroom uses it in this plan.
pub(super) fn is_used(work: &Work<'_>, node: usize) -> bool {
    work.kept_standing.contains(&node)
        || work.kept_free.contains_key(&node)
        || bin_of(work, node).is_some_and(|b| !b.placed.is_empty() || !b.held.is_empty())
}

/// The plan takes our cordon on it back. One that is only held for a gang keeps its cordon until the gang is whole.
pub(super) fn is_taken_back(work: &Work<'_>, node: usize) -> bool {
    can_uncordon(&work.input.nodes[node])
        && (work.kept_standing.contains(&node)
            || work.kept_free.contains_key(&node)
            || bin_of(work, node).is_some_and(|b| !b.placed.is_empty()))
}

/// What a used node is kept for.
pub(in super::super) fn kept_for(work: &Work<'_>, node: usize) -> Reason {
    let bin = bin_of(work, node);
    if let Some(class) = bin.and_then(|b| b.placed.iter().map(|p| p.class).min()) {
        return Reason::KeptForDemand {
            source: work.input.classes[class].source.clone(),
        };
    }
    if let Some(gang) = bin.and_then(|b| b.held.iter().map(|(c, _)| *c).min()) {
        return gangs::kept(work, gang);
    }
    let kept = work.kept_free.get(&node).cloned();
    kept.unwrap_or(Reason::KeptAsSpare)
}

fn used(look: &Look<'_, '_>) -> Option<Reason> {
    is_used(look.work, look.node).then(|| kept_for(look.work, look.node))
}

fn pool<'l>(look: &Look<'l, '_>) -> &'l PoolInput {
    &look.work.input.pools[look.pool]
}

fn hardware(look: &Look<'_, '_>) -> Option<Reason> {
    (!pool(look).removable).then_some(Reason::NotRemovable)
}

/// It is one of those that the pool's targets count.
fn counted(look: &Look<'_, '_>) -> bool {
    let node = &look.work.input.nodes[look.node];
    look.counts && node.faulty.is_none() && node.cordon.is_none()
}

fn minimum(look: &Look<'_, '_>) -> Option<Reason> {
    (counted(look) && look.standing.staying <= pool(look).least()).then_some(Reason::AtMinimum)
}

fn stop(look: &Look<'_, '_>) -> Option<Reason> {
    removal_stop(pool(look)).map(|stop| Reason::Stopped { stop: stop.clone() })
}

fn spare(look: &Look<'_, '_>) -> Option<Reason> {
    let holds =
        counted(look) && is_spare(look.work, look.node) && look.standing.idle <= pool(look).spare;
    holds.then_some(Reason::KeptAsSpare)
}

/// Its last work makes more likely, or demand has just taken an idle or a new node of the pool.
fn likely(look: &Look<'_, '_>) -> Option<Reason> {
    if !counted(look) || !is_spare(look.work, look.node) {
        return None;
    }
    let wanted = anticipate::spare(look.work, look.pool).map_or(0, |(n, _)| n);
    // After a burst all that it used is idle and would be held: how many are wanted again, those that work tell best.
    let held = anticipate::is_held(look.work, look.node);
    let most = if held {
        look.standing.working.max(wanted)
    } else {
        wanted
    };
    let keeps = look.standing.idle <= most;
    keeps.then(|| Reason::KeptForLikelyDemand {
        within: anticipate::boot(look.work, look.node),
    })
}
