//! Existing supply: which nodes take work, which may be taken back, which come, and how much room each has. Used by
//! `state` to build the bins, and by the parts that ask what may be done to a pool or a node.

use super::near::Content;
use super::size::{Free, Names, Size};
use super::state::Put;
use crate::model::{
    Busy, Cordon, LaunchInFlight, Lifecycle, NodeInput, PlanInput, PoolInput, PoolKind, Reserved,
    Resources, Source, Stop,
};

/// Order of use among existing supply (I12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Ready,
    OwnCordoned,
    Coming,
}

/// Where a bin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum At {
    /// Index in the input's nodes.
    Node(usize),
    /// Index in the input's launches, n-th node.
    Coming(usize, u32),
}

/// One node's room.
#[derive(Debug, Clone)]
pub(super) struct Bin {
    pub at: At,
    pub kind: usize,
    pub pool: Option<usize>,
    pub tier: Tier,
    pub total: Size,
    pub free: Free,
    /// What the rules between units count here.
    pub content: Content,
    /// Nothing on it: a whole-node unit may take it.
    pub empty: bool,
    /// Witnesses say idle, or it is coming.
    pub idle: bool,
    /// Only counts in `would` (its pool is observed).
    pub would: bool,
    pub placed: Vec<Put>,
    /// Held for a gang: (class, units).
    pub held: Vec<(usize, u32)>,
}

impl Bin {
    /// Units that there is room for now, rules aside. What may go there is `Work::room`.
    pub fn fits(&self, unit: &Size, whole_node: bool) -> u32 {
        if whole_node {
            u32::from(self.empty && unit.fits(&self.total))
        } else {
            self.free.times(unit)
        }
    }

    /// Takes the room. Called by `Work::take`, which counts what was placed.
    pub fn occupy(&mut self, unit: &Size, whole_node: bool, units: u32) {
        if whole_node {
            self.free.clear();
        } else {
            self.free.take(unit, units);
        }
        self.empty = false;
    }
}

/// Pools that a person or trouble stopped: no growth.
pub(super) fn growth_stop(pool: &PoolInput) -> Option<&Stop> {
    pool.stops.iter().find(|stop| match stop {
        Stop::Frozen { .. }
        | Stop::Paused { .. }
        | Stop::NeverJoined { .. }
        | Stop::Failed { .. }
        | Stop::SiteSilent
        | Stop::NotOurs { .. } => true,
        Stop::Stale { may_grow, .. } => !may_grow,
        Stop::NoRemoval { .. } => false,
    })
}

/// What its template gives is not known, or may be out of date: its provider cannot be read.
pub(super) fn unread(pool: &PoolInput) -> bool {
    stale(pool).is_some() || (pool.offerings.is_empty() && pool.kind != PoolKind::Static)
}

/// The stop that says that it cannot be read.
pub(super) fn stale(pool: &PoolInput) -> Option<&Stop> {
    pool.stops
        .iter()
        .find(|stop| matches!(stop, Stop::Stale { .. }))
}

/// Nothing may be undone or removed.
pub(super) fn removal_stop(pool: &PoolInput) -> Option<&Stop> {
    pool.stops.iter().find(|stop| match stop {
        Stop::Frozen { .. }
        | Stop::SiteSilent
        | Stop::Stale { .. }
        | Stop::NoRemoval { .. }
        | Stop::NotOurs { .. } => true,
        Stop::Paused { .. } | Stop::NeverJoined { .. } | Stop::Failed { .. } => false,
    })
}

/// Our own cordon may not even be taken back.
pub(super) fn touch_stop(pool: &PoolInput) -> Option<&Stop> {
    pool.stops.iter().find(|stop| {
        matches!(
            stop,
            Stop::Frozen { .. } | Stop::SiteSilent | Stop::NotOurs { .. }
        )
    })
}

/// The node exists as a machine that the provider counts.
pub(super) fn is_present(node: &NodeInput) -> bool {
    !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off)
}

/// Own cordon on an empty node, not yet leaving: the second supply.
pub(super) fn can_uncordon(node: &NodeInput) -> bool {
    node.cordon == Some(Cordon::Drover)
        && matches!(
            node.lifecycle,
            Lifecycle::Ready | Lifecycle::Draining | Lifecycle::Drained
        )
        && node.drain.as_ref().is_none_or(|d| d.own_idle && !d.moving)
        && matches!(node.busy, Busy::Idle { .. })
        && node.reserved.is_empty()
        && !node.unreachable
        && node.faulty.is_none()
}

/// Takes work now.
pub(super) fn takes_work(node: &NodeInput) -> bool {
    node.lifecycle == Lifecycle::Ready
        && node.cordon.is_none()
        && node.drain.is_none()
        && !node.unreachable
        && node.faulty.is_none()
}

/// What a node supplies, if anything.
pub(super) fn node_supply<'a>(
    node: &'a NodeInput,
    pool: Option<&'a PoolInput>,
) -> Option<(Tier, &'a Resources)> {
    if takes_work(node) {
        return Some((Tier::Ready, &node.allocatable));
    }
    let pool = pool?;
    if can_uncordon(node) && touch_stop(pool).is_none() {
        return Some((Tier::OwnCordoned, &node.allocatable));
    }
    let joining = node.lifecycle == Lifecycle::Joined
        && node.cordon.is_none()
        && node.drain.is_none()
        && !node.unreachable
        && node.faulty.is_none();
    if !joining {
        return None;
    }
    // Its GPUs may not be there yet: what its offering gives is what it will have.
    let offering = node
        .offering
        .as_ref()
        .and_then(|id| pool.offerings.iter().find(|o| o.id == *id));
    let total = offering
        .and_then(|o| o.allocatable.as_ref())
        .unwrap_or(&node.allocatable);
    Some((Tier::Coming, total))
}

/// Takes off what a request holds on a node: shares of GPUs unit by unit.
pub(super) fn reserve(free: &mut Free, names: &Names<'_>, held: &Reserved) {
    let mut amount = names.size(&held.amount);
    let milli = std::mem::take(&mut amount.milli);
    free.take(&amount, 1);
    if let Some(each) = milli.checked_div(held.units).filter(|each| *each > 0) {
        free.take(&Size::share(each), held.units);
    }
}

/// Takes off what requests hold on the nodes of a launch. A request whose unit is not known holds all of it.
pub(super) fn reserve_coming(
    input: &PlanInput,
    units: &[Size],
    launch: &LaunchInFlight,
    bins: &mut [Bin],
) {
    for (request, held) in &launch.reserved {
        let name = Source::Request(request.clone());
        let class = input.classes.iter().position(|c| c.source == name);
        let mut left = *held;
        for bin in bins.iter_mut() {
            if left == 0 {
                break;
            }
            let Some(class) = class else {
                if bin.empty || !bin.free.size.is_zero() {
                    (bin.empty, bin.idle) = (false, false);
                    bin.free.clear();
                }
                continue;
            };
            let n = if input.classes[class].whole_node {
                u32::from(bin.empty)
            } else {
                bin.free.times(&units[class]).min(left)
            };
            if n > 0 {
                bin.occupy(&units[class], input.classes[class].whole_node, n);
                bin.idle = false;
                left -= n;
            }
        }
    }
}
