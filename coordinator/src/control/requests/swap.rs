//! Units that wait on a node which is not ready, while a ready one has room: they go there, and what comes is spare.
//!
//! Called by the cycle after demand was read and before planning: the plan then finds the node that comes free, and the
//! ready one in use. And by `execute`, for ready nodes that the plan has no use for. **Invariants:** only units on nodes
//! that were never ready move: nothing of theirs can run there. A ready node that demand of a higher rank (priority, then
//! age) waits for is left to it. A place's units move all or not.

mod places;
mod spots;

use super::super::cycle::{Control, CycleError, Round};
use super::super::events::Happening;
use super::super::execute::add;
use super::super::input::{Named, occupied_nodes};
use super::super::tx::Tx;
use crate::records::{AssignmentTarget, DesiredState, RequestRecord, wants};
use drover_core::model::{
    Class, NodeId, NodeInput, Planned, PoolId, PoolInput, Reason, RequestName, Source, Target,
    UnixMs,
};
use places::{Home, close_gap, home, places, take_out, waiting};
use spots::{Search, Spot, spot};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Order among demand: priority, then age, then name.
type Rank = (Reverse<i32>, UnixMs, Source);

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

fn rank(class: &Class) -> Rank {
    (
        Reverse(class.priority),
        class.submitted,
        class.source.clone(),
    )
}
