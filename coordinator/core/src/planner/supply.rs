//! Existing supply: which nodes take work, which may be taken back, which come, and how much room each has. Used by
//! `state` to build the bins, and by the parts that ask what may be done to a pool or a node.

use crate::model::{
    Busy, Class, Cordon, LaunchInFlight, Lifecycle, NodeInput, PlanInput, PoolInput, PoolKind,
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
    pub total: Resources,
    pub free: Resources,
    /// Nothing on it: a whole-node unit may take it.
    pub empty: bool,
    /// Witnesses say idle, or it is coming.
    pub idle: bool,
    /// Only counts in `would` (its pool is observed).
    pub would: bool,
    /// (class, units).
    pub placed: Vec<(usize, u32)>,
    /// Held for a gang: (class, units).
    pub held: Vec<(usize, u32)>,
}

impl Bin {
    /// Units of a class that fit now; the class must match the kind.
    pub fn times(&self, class: &Class, index: usize) -> u32 {
        if class.whole_node {
            return u32::from(self.empty && class.unit.fits(&self.total));
        }
        let fits = class.unit.times(&self.free);
        match class.constraints.max_per_node {
            0 => fits,
            most => {
                let here: u32 = self
                    .placed
                    .iter()
                    .chain(&self.held)
                    .filter(|p| p.0 == index)
                    .map(|p| p.1)
                    .sum();
                fits.min(most.saturating_sub(here))
            }
        }
    }

    /// Takes room for units.
    pub fn take(&mut self, class: &Class, index: usize, units: u32, hold: bool) {
        if class.whole_node {
            self.free = Resources::default();
        } else {
            self.free = self.free.minus(&class.unit.scaled(units));
        }
        self.empty = false;
        let list = if hold {
            &mut self.held
        } else {
            &mut self.placed
        };
        list.push((index, units));
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
        && node.drain.as_ref().is_none_or(|d| d.own_idle)
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
pub(super) fn node_supply(node: &NodeInput, pool: Option<&PoolInput>) -> Option<(Tier, Resources)> {
    if takes_work(node) {
        return Some((Tier::Ready, node.allocatable.clone()));
    }
    let pool = pool?;
    if can_uncordon(node) && touch_stop(pool).is_none() {
        return Some((Tier::OwnCordoned, node.allocatable.clone()));
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
        .and_then(|o| o.allocatable.clone())
        .unwrap_or_else(|| node.allocatable.clone());
    Some((Tier::Coming, total))
}

/// Takes off what requests hold on the nodes of a launch. A request whose unit is not known holds all of it.
pub(super) fn reserve_coming(input: &PlanInput, launch: &LaunchInFlight, bins: &mut [Bin]) {
    for (request, units) in &launch.reserved {
        let name = Source::Request(request.clone());
        let class = input.classes.iter().find(|c| c.source == name);
        let mut left = *units;
        for bin in bins.iter_mut() {
            if left == 0 {
                break;
            }
            let fits = match class {
                Some(c) if c.whole_node => u32::from(bin.empty),
                Some(c) => c.unit.times(&bin.free),
                None => u32::MAX,
            };
            let n = fits.min(left);
            if n == 0 {
                continue;
            }
            bin.empty = false;
            bin.idle = false;
            match class {
                Some(c) if !c.whole_node => {
                    bin.free = bin.free.minus(&c.unit.scaled(n));
                    left -= n;
                }
                Some(_) => {
                    bin.free = Resources::default();
                    left -= n;
                }
                None => bin.free = Resources::default(),
            }
        }
    }
}
