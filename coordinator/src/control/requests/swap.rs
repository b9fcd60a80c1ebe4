//! Units that wait on a node which is not ready, while a ready one has room: they go there, and what comes is spare.
//!
//! Called by the cycle after demand was read and before planning: the plan then finds the node that comes free, and the
//! ready one in use. And by `execute`, for ready nodes that the plan has no use for. **Invariants:** only units on nodes
//! that were never ready move: nothing of theirs can run there. A ready node that demand of a higher rank (priority, then
//! age) waits for is left to it. A place's units move all or not.

use super::super::cycle::{Control, CycleError, Round};
use super::super::events::Happening;
use super::super::execute::add;
use super::super::input::{Named, occupied_nodes};
use super::super::tx::Tx;
use crate::records::{
    AssignmentTarget, DesiredState, RequestRecord, RequestSpec, RequestState, wants,
};
use drover_core::model::{
    Busy, Class, Constraints, Cordon, LaunchId, Lifecycle, Locality, MicroUsd, NodeId, NodeInput,
    Planned, PoolId, PoolInput, Reason, RequestName, Resources, SiteId, Source, Target, UnixMs,
};
use drover_core::planner::suits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Order among demand: priority, then age, then name.
type Rank = (Reverse<i32>, UnixMs, Source);

/// A node that takes work now, or will once Drover's own cordon is taken back, with what is free of it.
struct Spot {
    node: NodeInput,
    free: Resources,
    /// Nothing is on it.
    empty: bool,
    /// Under Drover's own cordon.
    cordoned: bool,
    /// The first that waits and could go there; looked for once.
    first: Option<Option<Rank>>,
}

/// Where a place is that units are to leave.
struct Home {
    pool: Option<PoolId>,
    site: Option<SiteId>,
    zone: String,
    name: String,
}

impl Control {
    /// Moves what waits on nodes that are not ready, before the plan: to nodes that nothing before it in rank waits for.
    pub(in crate::control) async fn prefer_ready(
        &mut self,
        round: &mut Round,
        demand: &[(Class, Named)],
    ) -> Result<(), CycleError> {
        let waiting = waiting(round);
        let Some((last, _)) = waiting.last() else {
            return Ok(());
        };
        let mut rivals: Vec<(Rank, &Class)> = demand
            .iter()
            .filter(|(class, _)| class.count > 0)
            .map(|(class, _)| (rank(class), class))
            .filter(|(rank, _)| rank < last)
            .collect();
        rivals.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.move_waiting(round, &waiting, &rivals, |_| true).await
    }

    /// The same after the plan: to nodes that it neither uses nor keeps for anything that waits.
    pub(in crate::control) async fn use_left(
        &mut self,
        round: &mut Round,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        let waiting = waiting(round);
        if waiting.is_empty() {
            return Ok(());
        }
        let runs = planned
            .plan
            .runs
            .iter()
            .filter_map(|run| match &run.target {
                Target::Node(id) => Some(id),
                Target::Coming(..) | Target::New { .. } => None,
            });
        let kept = planned.report.nodes.iter().filter_map(|outcome| {
            let kept = matches!(
                outcome.reason,
                Reason::KeptForDemand { .. } | Reason::KeptForGang { .. }
            );
            kept.then_some(&outcome.node)
        });
        let used: BTreeSet<&NodeId> = runs.chain(kept).collect();
        self.move_waiting(round, &waiting, &[], |node| !used.contains(&node.id))
            .await
    }

    async fn move_waiting(
        &mut self,
        round: &mut Round,
        waiting: &[(Rank, RequestName)],
        rivals: &[(Rank, &Class)],
        is_free: impl Fn(&NodeInput) -> bool,
    ) -> Result<(), CycleError> {
        self.rejoin(round);
        let running = self.running();
        let mut spots: Vec<Spot> = occupied_nodes(round, &running)
            .filter(is_free)
            .filter_map(spot)
            .collect();
        if spots.is_empty() {
            return Ok(());
        }
        let pools = self.pools_of(round, &spots);
        for (rank, name) in waiting {
            for target in places(round, name) {
                let Some(held) = round.ledger.requests.get(name) else {
                    break;
                };
                let mut request = held.value.clone();
                let Some(units) = take_out(&mut request, &target) else {
                    continue;
                };
                let home = home(round, &target);
                let search = Search {
                    request: &request,
                    wants: wants::constraints(&request),
                    home: &home,
                    rank,
                    pools: &pools,
                    rivals,
                };
                let Some(found) = search.places(&mut spots, units) else {
                    continue;
                };
                if !self.uncordon_all(round, &spots, &found, name).await? {
                    continue;
                }
                self.swap(round, (request, target), &home, &mut spots, &found)
                    .await?;
            }
        }
        self.rejoin(round);
        Ok(())
    }

    fn pools_of(&self, round: &Round, spots: &[Spot]) -> BTreeMap<PoolId, PoolInput> {
        let all = self.config.pools.iter().enumerate();
        let used = all.filter(|(_, pool)| {
            let mut of = spots.iter().map(|spot| &spot.node.pool);
            of.any(|of| of.as_ref() == Some(&pool.name))
        });
        used.map(|(at, pool)| (pool.name.clone(), self.pool_input(round, pool, at)))
            .collect()
    }

    /// Takes Drover's own cordon off what was found. False: one could not be had.
    async fn uncordon_all(
        &mut self,
        round: &mut Round,
        spots: &[Spot],
        found: &[(usize, u32)],
        name: &RequestName,
    ) -> Result<bool, CycleError> {
        for (at, units) in found {
            let Some(spot) = spots.get(*at).filter(|spot| spot.cordoned) else {
                continue;
            };
            let id = &spot.node.id;
            let reason = Reason::Demand {
                sources: vec![Source::Request(name.clone())],
                units: *units,
                minimum: 0,
                spare: 0,
                headroom: 0,
            };
            self.uncordon(round, id, &reason).await?;
            let order = round.ledger.orders.get(id).map(|held| held.value.desired);
            let free = order.is_none_or(|desired| desired == DesiredState::Active);
            if !free || round.ledger.drains.contains_key(id) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Commits that the units of a place, taken out of the request already, are on these nodes.
    async fn swap(
        &mut self,
        round: &mut Round,
        (mut request, from): (RequestRecord, AssignmentTarget),
        home: &Home,
        spots: &mut [Spot],
        found: &[(usize, u32)],
    ) -> Result<(), CycleError> {
        let mut names = Vec::new();
        let mut moved = 0_u32;
        for (at, units) in found {
            let Some(spot) = spots.get(*at) else { continue };
            let to = AssignmentTarget::Node(spot.node.id.clone());
            add(&mut request, to, *units, &spot.node.allocatable);
            names.push(spot.node.name.as_str());
            moved = moved.saturating_add(*units);
        }
        let (name, spec) = (request.name.clone(), request.spec.clone());
        let mut tx = Tx::new();
        tx.event(Happening::RequestMoved {
            request: name.clone(),
            units: moved,
            from: home.name.clone(),
            to: names.join(", "),
        });
        tx.audit("request.move", name.as_str(), home.name.clone());
        let mut changed = BTreeMap::from([(name, request)]);
        if let AssignmentTarget::Launch(launch, place) = &from {
            close_gap(round, &mut changed, launch, *place);
        }
        for (name, request) in changed {
            tx.put_request(&round.ledger, &name, request);
        }
        if self.commit(round, tx).await?.is_none() {
            return Ok(());
        }
        round.again = true;
        for (at, units) in found {
            if let Some(spot) = spots.get_mut(*at) {
                spot.took(*units, &spec);
            }
        }
        Ok(())
    }
}

/// Requests with units on nodes that are not ready, the first in rank first.
fn waiting(round: &Round) -> Vec<(Rank, RequestName)> {
    let open = round.ledger.requests.iter().filter(|(_, held)| {
        matches!(
            held.value.state,
            RequestState::Pending | RequestState::Served
        )
    });
    let mut all: Vec<(Rank, RequestName)> = open
        .filter(|(_, held)| {
            let mut places = held.value.assignments.iter();
            places.any(|found| is_waiting(round, &found.target))
        })
        .map(|(name, held)| {
            let priority = Reverse(held.value.spec.priority);
            let source = Source::Request(name.clone());
            ((priority, held.value.submitted, source), name.clone())
        })
        .collect();
    all.sort();
    all
}

/// Nothing can have started there: it has not joined, or was never ready.
fn is_waiting(round: &Round, target: &AssignmentTarget) -> bool {
    match target {
        AssignmentTarget::Launch(..) => true,
        AssignmentTarget::Node(id) => round.node(id).is_some_and(|node| {
            let record = node.record.as_ref();
            let once = record.is_none_or(|record| record.ready_at.is_some());
            !once && !node.serves() && node.lifecycle < Lifecycle::Leaving
        }),
    }
}

/// The places of a request that wait: what has not even joined first, the newest ask first.
fn places(round: &Round, name: &RequestName) -> Vec<AssignmentTarget> {
    let Some(held) = round.ledger.requests.get(name) else {
        return Vec::new();
    };
    let found = held.value.assignments.iter().map(|found| &found.target);
    let mut all: Vec<AssignmentTarget> = found
        .filter(|target| is_waiting(round, target))
        .cloned()
        .collect();
    all.sort_by_key(|target| match target {
        AssignmentTarget::Launch(id, place) => {
            let launch = round.ledger.launches.get(id);
            let asked = launch.map_or(UnixMs(0), |held| held.value.asked);
            (0, Reverse((asked, *place)))
        }
        AssignmentTarget::Node(id) => {
            let record = round.node(id).and_then(|node| node.record.as_ref());
            let joined = record.map_or(UnixMs(0), |record| record.joined);
            (1, Reverse((joined, 0)))
        }
    });
    all
}

/// Takes a place's units out of a request.
fn take_out(request: &mut RequestRecord, target: &AssignmentTarget) -> Option<u32> {
    let mut all = request.assignments.iter();
    let at = all.position(|found| found.target == *target)?;
    Some(request.assignments.remove(at).units)
}

fn home(round: &Round, target: &AssignmentTarget) -> Home {
    match target {
        AssignmentTarget::Node(id) => {
            let node = round.node(id);
            Home {
                pool: node.and_then(|node| node.pool.clone()),
                site: node.and_then(|node| node.site.clone()),
                zone: node.map_or_else(String::new, |node| node.zone.clone()),
                name: node.map_or_else(|| id.0.clone(), |node| node.name.clone()),
            }
        }
        AssignmentTarget::Launch(id, _) => {
            let launch = round.ledger.launches.get(id).map(|held| &held.value);
            let reading = launch.and_then(|launch| round.readings.get(&launch.pool));
            let offering = reading.and_then(|reading| {
                let mut all = reading.offerings.iter();
                all.find(|found| launch.is_some_and(|launch| launch.offering == found.id))
            });
            let pool = launch.map(|launch| launch.pool.clone());
            let mut fleet = round.fleet.iter();
            let near = fleet.find(|node| node.pool == pool && node.pool.is_some());
            Home {
                site: near.and_then(|node| node.site.clone()),
                zone: offering.map_or_else(String::new, |found| found.zone.clone()),
                name: pool.as_ref().map_or_else(
                    || id.0.clone(),
                    |pool| format!("a node of {pool} that is asked for"),
                ),
                pool,
            }
        }
    }
}

/// Places of a launch are taken from the first on: the last that is held takes over one that was given up.
fn close_gap(
    round: &Round,
    changed: &mut BTreeMap<RequestName, RequestRecord>,
    launch: &LaunchId,
    gap: u32,
) {
    let of = |found: &AssignmentTarget| match found {
        AssignmentTarget::Launch(id, place) if id == launch => Some(*place),
        _ => None,
    };
    let others = round.ledger.requests.iter();
    let mut all: BTreeMap<RequestName, RequestRecord> = others
        .map(|(name, held)| (name.clone(), &held.value))
        .filter(|(_, request)| {
            let mut places = request.assignments.iter();
            places.any(|found| of(&found.target).is_some())
        })
        .map(|(name, request)| (name, request.clone()))
        .collect();
    all.extend(changed.clone());
    let places = all.values().flat_map(|request| &request.assignments);
    let held: Vec<u32> = places.filter_map(|found| of(&found.target)).collect();
    let Some(last) = held.iter().max().copied().filter(|last| *last > gap) else {
        return;
    };
    if held.contains(&gap) {
        return;
    }
    for (name, mut request) in all {
        let mut places = request.assignments.iter_mut();
        let Some(found) = places.find(|found| of(&found.target) == Some(last)) else {
            continue;
        };
        found.target = AssignmentTarget::Launch(launch.clone(), gap);
        changed.insert(name, request);
    }
}

fn rank(class: &Class) -> Rank {
    (
        Reverse(class.priority),
        class.submitted,
        class.source.clone(),
    )
}

/// A node as a spot; `None`: it takes no work, or has no room.
fn spot(node: NodeInput) -> Option<Spot> {
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
    fn took(&mut self, units: u32, spec: &RequestSpec) {
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

/// What a place's units look for.
struct Search<'s> {
    /// Without the place.
    request: &'s RequestRecord,
    wants: Constraints,
    home: &'s Home,
    rank: &'s Rank,
    pools: &'s BTreeMap<PoolId, PoolInput>,
    /// What waits, the first in rank first.
    rivals: &'s [(Rank, &'s Class)],
}

impl Search<'_> {
    /// Spots for all units of the place; `None`: there are not enough. Nodes under no cordon first, then those of the same
    /// pool, then where the least is left over, then the cheapest.
    fn places(&self, spots: &mut [Spot], units: u32) -> Option<Vec<(usize, u32)>> {
        let mut found: Vec<((bool, bool, u32, MicroUsd), usize, u32)> = Vec::new();
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
