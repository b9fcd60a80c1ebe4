//! Nodes that take work now, and whether the units of a place suit them as they are.
//!
//! Called by `swap`. Pure. Knows the rules about a node alone (`planner::suits`); where rules between units or a gang's
//! nearness count, only a node that stands where the old one does is alike.

use super::Rank;
use super::places::Home;
use crate::records::{AssignmentTarget, RequestRecord, RequestSpec};
use drover_core::model::{
    Busy, Class, Constraints, Cordon, Lifecycle, Locality, MicroUsd, NodeInput, PoolId, PoolInput,
    Resources,
};
use drover_core::planner::suits;
use std::collections::BTreeMap;

/// A node that takes work now, or will once Drover's own cordon is taken back, with what is free of it.
pub(super) struct Spot {
    pub(super) node: NodeInput,
    free: Resources,
    /// Nothing is on it.
    empty: bool,
    /// Under Drover's own cordon.
    pub(super) cordoned: bool,
    /// The first that waits and could go there; looked for once.
    first: Option<Option<Rank>>,
}

/// A node as a spot; `None`: it takes no work, or has no room.
pub(super) fn spot(node: NodeInput) -> Option<Spot> {
    let idle = matches!(node.busy, Busy::Idle { .. });
    let well = !node.unreachable && node.faulty.is_none();
    let ready = node.lifecycle == Lifecycle::Ready && node.cordon.is_none() && node.drain.is_none();
    // What may be taken back, as the planner knows it.
    let cordoned = node.cordon == Some(Cordon::Drover)
        && matches!(
            node.lifecycle,
            Lifecycle::Ready | Lifecycle::Draining | Lifecycle::Drained
        )
        && (node.drain.as_ref()).is_none_or(|drain| drain.own_idle && !drain.moving)
        && idle
        && node.reserved.is_empty();
    if !well || !(ready || cordoned) {
        return None;
    }
    let held = node.reserved.iter().map(|held| &held.amount);
    let free = held.fold(node.allocatable.minus(&node.used), |free, held| {
        free.minus(held)
    });
    let empty = idle && node.reserved.is_empty() && node.used.is_zero();
    (!free.is_zero()).then_some(Spot {
        free,
        empty,
        cordoned,
        first: None,
        node,
    })
}

impl Spot {
    /// Units of a request that there is room for.
    fn fits(&self, request: &RequestRecord) -> u32 {
        let spec = &request.spec;
        if spec.whole_nodes {
            return u32::from(self.empty && spec.unit.fits(&self.node.allocatable));
        }
        // How GPUs are shared on a node in use is the planner's to know.
        if spec.gpu_milli > 0 && !self.empty {
            return 0;
        }
        // Work without GPUs is kept off nodes that have some.
        if spec.unit.gpus == 0 && spec.gpu_milli == 0 && self.node.allocatable.gpus > 0 {
            return 0;
        }
        let each = 1_000_u32.checked_div(spec.gpu_milli);
        let shares = each.map(|each| each.saturating_mul(self.free.gpus));
        let times = times(&spec.unit, &self.free);
        shares.map_or(times, |shares| shares.min(times))
    }

    fn fits_class(&self, class: &Class) -> bool {
        if class.whole_node {
            self.empty && class.unit.fits(&self.node.allocatable)
        } else {
            class.unit.fits(&self.free)
        }
    }

    /// What is held there now.
    pub(super) fn took(&mut self, units: u32, spec: &RequestSpec) {
        self.empty = false;
        let taken = if spec.whole_nodes {
            self.free.clone()
        } else {
            let shares = spec.gpu_milli.saturating_mul(units).div_ceil(1_000);
            let mut taken = spec.unit.scaled(units);
            taken.gpus = taken.gpus.saturating_add(shares);
            taken
        };
        self.free = self.free.minus(&taken);
    }
}

/// How often an amount goes into another.
fn times(unit: &Resources, free: &Resources) -> u32 {
    let part = |unit: u64, free: u64| free.checked_div(unit).unwrap_or(u64::MAX);
    let named = unit.extended.iter().map(|(name, amount)| {
        let free = free.extended.get(name).copied().unwrap_or(0);
        part(*amount, free)
    });
    let least = named
        .chain([
            part(unit.cpu.0, free.cpu.0),
            part(unit.memory.0, free.memory.0),
            part(u64::from(unit.gpus), u64::from(free.gpus)),
        ])
        .min();
    u32::try_from(least.unwrap_or(0)).unwrap_or(u32::MAX)
}

/// What goes first: under no cordon, of the same pool, the least left over, the cheapest.
type Order = (bool, bool, u32, MicroUsd);

/// What a place's units look for.
pub(super) struct Search<'s> {
    /// Without the place.
    pub(super) request: &'s RequestRecord,
    pub(super) wants: Constraints,
    pub(super) home: &'s Home,
    pub(super) rank: &'s Rank,
    pub(super) pools: &'s BTreeMap<PoolId, PoolInput>,
    /// What waits, the first in rank first.
    pub(super) rivals: &'s [(Rank, &'s Class)],
}

impl Search<'_> {
    /// Spots for all units of the place, in order; `None`: there are not enough.
    pub(super) fn places(&self, spots: &mut [Spot], units: u32) -> Option<Vec<(usize, u32)>> {
        let mut found: Vec<(Order, usize, u32)> = Vec::new();
        for (at, spot) in spots.iter_mut().enumerate() {
            let fits = spot.fits(self.request).min(units);
            if fits == 0 || !self.is_alike(spot) || self.is_wanted(spot) {
                continue;
            }
            let key = (
                spot.cordoned,
                spot.node.pool != self.home.pool,
                spot.free.gpus,
                spot.node.price,
            );
            found.push((key, at, fits));
        }
        found.sort_unstable();
        let mut left = units;
        let mut taken = Vec::new();
        for (_, at, fits) in found {
            let n = fits.min(left);
            if n > 0 {
                taken.push((at, n));
                left -= n;
            }
        }
        let one = self.request.spec.gang_min.is_some()
            && self.request.spec.locality == Locality::Node
            && (taken.len() > 1 || !self.request.assignments.is_empty());
        (left == 0 && !one).then_some(taken)
    }

    /// The request's wishes are fulfilled there as they are now.
    fn is_alike(&self, spot: &Spot) -> bool {
        let spec = &self.request.spec;
        let node = &spot.node;
        let pool = node.pool.as_ref().and_then(|pool| self.pools.get(pool));
        let same_pool = node.pool.is_some() && node.pool == self.home.pool;
        let same_zone = same_pool && node.zone == self.home.zone;
        let near = match spec.locality {
            _ if spec.gang_min.is_none() => true,
            Locality::Any | Locality::Node => true,
            Locality::Pool => same_pool,
            Locality::Zone => same_zone,
            Locality::Site => same_pool || (node.site.is_some() && node.site == self.home.site),
        };
        let counted = !spec.spread.is_empty() || !spec.preferred.is_empty();
        let mut held = self.request.assignments.iter();
        let again = held.any(|found| found.target == AssignmentTarget::Node(node.id.clone()));
        near && (!counted || (same_zone && !again)) && suits(node, pool, &self.wants)
    }

    /// Something that waits, and comes before the request, could go there.
    fn is_wanted(&self, spot: &mut Spot) -> bool {
        let pool = spot.node.pool.as_ref();
        let pool = pool.and_then(|pool| self.pools.get(pool));
        if spot.first.is_none() {
            let mut all = self.rivals.iter();
            let first = all.find(|(_, class)| {
                spot.fits_class(class) && suits(&spot.node, pool, &class.constraints)
            });
            spot.first = Some(first.map(|(rank, _)| rank.clone()));
        }
        let first = spot.first.as_ref().and_then(Option::as_ref);
        first.is_some_and(|first| first < self.rank)
    }
}
