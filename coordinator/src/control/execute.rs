//! Turns a checked plan into commits and calls: release, uncordon, assign, launch, drain, leave; in this order.
//!
//! Called by the cycle. **Invariant:** each act passes freeze, mode and breaker once more, and its intent is committed
//! before its call. What does not go on one pool or node costs that pool or node.

mod grow;
mod reap;

use super::cycle::{Control, CycleError, Round};
use super::drains::SAYS;
use super::events::Happening;
use super::fleet::{Evidence, busy};
use super::orders::{self, DROVER, OWN_DRAIN};
use super::requests::assigned;
use super::tx::Tx;
use crate::ports::actuate::InstanceState;
use crate::records::{
    AssignmentRecord, AssignmentTarget, DrainPolicy, DrainRecord, DrainStep, LaunchRecord,
    RequestRecord, Then,
};
use drover_core::model::{
    Action, Busy, DrainId, Emptying, InstanceId, LaunchId, Mode, NodeId, PlanInput, Planned,
    PoolId, Reason, RequestName, Resources, Run, Source, Target,
};
use drover_core::planner::render;
use std::collections::BTreeMap;

impl Control {
    /// Does what the plan says.
    pub(super) async fn execute(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        for action in &planned.plan.actions {
            if let Action::Release { request, reason } = action {
                self.release(round, request, reason).await?;
            }
        }
        for action in &planned.plan.actions {
            if let Action::Uncordon { node, reason } = action {
                self.uncordon(round, node, reason).await?;
            }
        }
        self.assign(round, input, planned).await?;
        self.grow(round, input, planned).await?;
        for action in &planned.plan.actions {
            if let Action::Drain { node, reason, how } = action {
                self.begin_drain(round, node, reason, *how).await?;
            }
        }
        self.rejoin(round);
        let mut leaving = Vec::new();
        for id in self.may_leave(round, planned) {
            leaving.extend(self.begin_leave(round, &id).await?);
        }
        self.call_leaves(round, leaving).await?;
        self.reap(round).await?;
        self.hold(round, input, planned).await?;
        self.rejoin(round);
        Ok(())
    }

    /// What the plan lets go, and drained nodes whose drain a person ordered to end so.
    fn may_leave(&self, round: &Round, planned: &Planned) -> Vec<NodeId> {
        let planned = planned
            .plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Leave { node, .. } => Some(node.clone()),
                _ => None,
            });
        let ordered = round
            .ledger
            .drains
            .values()
            .map(|held| &held.value)
            .filter(|drain| {
                drain.by != DROVER && drain.then == Then::Leave && drain.step == DrainStep::Drained
            })
            .map(|drain| drain.node.clone());
        // What its cloud ends already is not ended once more.
        let stays = |id: &NodeId| {
            let taken = round.node(id).and_then(|node| node.taken.as_ref());
            taken.is_none_or(|taken| !taken.doomed)
        };
        let mut all: Vec<NodeId> = planned.chain(ordered).filter(stays).collect();
        all.sort();
        all.dedup();
        all
    }

    async fn release(
        &mut self,
        round: &mut Round,
        name: &RequestName,
        reason: &Reason,
    ) -> Result<(), CycleError> {
        let Some(held) = round.ledger.requests.get(name) else {
            return Ok(());
        };
        let mut request = held.value.clone();
        request.assignments.clear();
        let why = render(reason, round.now);
        let mut tx = Tx::new();
        tx.put_request(&round.ledger, name, request);
        tx.event(Happening::RequestReleased {
            request: name.clone(),
            why: why.clone(),
        });
        tx.audit("request.release", name.as_str(), why);
        self.commit(round, tx).await?;
        round.again = true;
        Ok(())
    }

    /// Takes back our own cordon and our own idle drain, nothing else (I7).
    async fn uncordon(
        &mut self,
        round: &mut Round,
        id: &NodeId,
        reason: &Reason,
    ) -> Result<(), CycleError> {
        let Some(node) = round.node(id).cloned() else {
            return Ok(());
        };
        let Some(pool) = &node.pool else {
            return Ok(());
        };
        if self.mode(round, pool) == Mode::Observe || self.is_frozen(round, pool) {
            return Ok(());
        }
        let mut tx = Tx::new();
        match &node.drain {
            Some(drain) if drain.own_idle && drain.step < DrainStep::Leaving => {
                tx.delete_drain(&round.ledger, id);
            }
            Some(_) => return Ok(()),
            None => {}
        }
        let by = node.order.as_ref().map(|order| order.by.as_str());
        if by != Some(DROVER) {
            return Ok(());
        }
        let why = render(reason, round.now);
        let order = orders::active(node.order.as_ref(), node.highest_epoch(), &why);
        tx.put_order(&round.ledger, id, order);
        tx.event(Happening::Uncordoned {
            node: id.clone(),
            by: DROVER.to_owned(),
            reason: why.clone(),
        });
        tx.audit("node.uncordon", id.as_str(), why);
        if self.commit(round, tx).await?.is_some() {
            fail::fail_point!("order.committed");
        }
        Ok(())
    }

    /// Begins a drain of our own: policy wait for nodes without work, evict where all work says that it can move.
    async fn begin_drain(
        &mut self,
        round: &mut Round,
        id: &NodeId,
        reason: &Reason,
        how: Emptying,
    ) -> Result<(), CycleError> {
        let Some(node) = round.node(id).cloned() else {
            return Ok(());
        };
        let Some(pool) = node.pool.clone() else {
            return Ok(());
        };
        let config = self.config.clone();
        let Some(settings) = config.pool(&pool) else {
            return Ok(());
        };
        let held = round.ledger.requests.values().any(|held| {
            held.value
                .assignments
                .iter()
                .any(|found| matches!(&found.target, AssignmentTarget::Node(node) if node == id))
        });
        let evidence = Evidence::of(&config, Some(settings), self.clock.mono());
        let newest = self
            .link
            .view(id)
            .map(|view| busy(&view, evidence, round.now, round.now));
        let as_planned = match (&newest, how) {
            (Some(Busy::Idle { .. }), Emptying::Wait) => true,
            (Some(Busy::Working { movable, .. }), Emptying::Evict) => *movable,
            _ => false,
        };
        if held
            || !as_planned
            || node.drain.is_some()
            || self.mode(round, &pool) != Mode::Full
            || self.removal_forbidden(round, &pool).is_some()
            || at_providers_minimum(round, &pool)
        {
            return Ok(());
        }
        let (policy, why) = match how {
            Emptying::Wait => (DrainPolicy::Wait, render(reason, round.now)),
            Emptying::Evict => (
                DrainPolicy::Evict,
                format!("{}; {SAYS}", render(reason, round.now)),
            ),
        };
        let drain = DrainRecord {
            id: DrainId(format!("{OWN_DRAIN}{:016x}", self.chance.next())),
            node: id.clone(),
            policy,
            by: DROVER.to_owned(),
            reason: why.clone(),
            own_idle: !matches!(reason, Reason::Faulty { .. }),
            since: round.now,
            deadline: None,
            grace: settings.grace,
            then: Then::Leave,
            step: DrainStep::Requested,
            moving: None,
            before: node.order.clone().map(Box::new),
        };
        let order = orders::draining(node.order.as_ref(), node.highest_epoch(), &drain);
        let mut tx = Tx::new();
        tx.put_drain(&round.ledger, id, drain);
        tx.put_order(&round.ledger, id, order);
        tx.event(Happening::DrainStarted {
            node: id.clone(),
            policy,
            by: DROVER.to_owned(),
            reason: why.clone(),
        });
        tx.audit("node.drain", id.as_str(), why);
        if self.commit(round, tx).await?.is_some() {
            fail::fail_point!("drain.committed");
        }
        Ok(())
    }

    /// Units of requests on nodes that exist or come: sticky from now on. One commit per request.
    async fn assign(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        let mut wishes: BTreeMap<RequestName, Vec<&Run>> = BTreeMap::new();
        for run in &planned.plan.runs {
            if let Some(name) = request_of(input, run)
                && !matches!(run.target, Target::New { .. })
            {
                wishes.entry(name.clone()).or_default().push(run);
            }
        }
        for (name, runs) in wishes {
            let Some(held) = round.ledger.requests.get(&name) else {
                continue;
            };
            let mut request = held.value.clone();
            for run in runs {
                let (target, whole) = match &run.target {
                    Target::Node(id) => {
                        let Some(node) = round.node(id) else { continue };
                        (AssignmentTarget::Node(id.clone()), node.allocatable.clone())
                    }
                    Target::Coming(launch, n) => {
                        let Some(held) = round.ledger.launches.get(launch) else {
                            continue;
                        };
                        let joined = super::launches::joined_count(&held.value);
                        let place = AssignmentTarget::Launch(launch.clone(), joined + n);
                        (place, offered(input, &held.value))
                    }
                    Target::New { .. } => continue,
                };
                add(&mut request, target, run.count, &whole);
            }
            if request == held.value || assigned(&request) > request.spec.units {
                continue;
            }
            let mut tx = Tx::new();
            tx.put_request(&round.ledger, &name, request);
            self.commit(round, tx).await?;
            round.again = true;
        }
        Ok(())
    }

    /// Since when a gang holds partial capacity; kept until it is whole or gone.
    async fn hold(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        for (class, outcome) in input.classes.iter().zip(&planned.report.classes) {
            let Source::Request(name) = &class.source else {
                continue;
            };
            let Some(held) = round.ledger.requests.get(name) else {
                continue;
            };
            if outcome.held == 0 || held.value.holding_since.is_some() || class.gang.is_none() {
                continue;
            }
            let mut request = held.value.clone();
            request.holding_since = Some(round.now);
            let mut tx = Tx::new();
            tx.put_request(&round.ledger, name, request);
            self.commit(round, tx).await?;
        }
        Ok(())
    }

    /// Hands every order that changed to the link: it sends it now and whenever the agent returns.
    pub(super) fn send_orders(&mut self, round: &Round) {
        for (id, held) in &round.ledger.orders {
            let order = &held.value;
            let stamp = (order.epoch, order.generation);
            if self.seen.sent.get(id) != Some(&stamp) {
                self.link.desire(id, order.clone());
                self.seen.sent.insert(id.clone(), stamp);
            }
        }
    }
}

/// The provider would refuse to let one more go: what it counts, without what is on its way out, is at its own minimum.
fn at_providers_minimum(round: &Round, pool: &PoolId) -> bool {
    let Some(reading) = round.readings.get(pool) else {
        return false;
    };
    let Some(least) = reading.provider_min else {
        return false;
    };
    let goes = |id: &InstanceId| {
        round.fleet.iter().any(|node| {
            node.instance_id.as_ref() == Some(id)
                && round
                    .ledger
                    .drains
                    .get(&node.id)
                    .is_some_and(|held| held.value.then == Then::Leave)
        })
    };
    let stays = reading
        .instances
        .iter()
        .filter(|found| found.state < InstanceState::Leaving && !goes(&found.id))
        .count();
    u32::try_from(stays).unwrap_or(u32::MAX) <= least
}

/// The request behind a run.
fn request_of<'i>(input: &'i PlanInput, run: &Run) -> Option<&'i RequestName> {
    let class = input.classes.get(usize::try_from(run.class).ok()?)?;
    match &class.source {
        Source::Request(name) => Some(name),
        Source::Scheduler(_) => None,
    }
}

/// What one node of a launch offers.
fn offered(input: &PlanInput, launch: &LaunchRecord) -> Resources {
    let flying = input.launches.iter().find(|found| found.id == launch.id);
    let offering = flying.map_or(&launch.offering, |found| &found.offering);
    input
        .pools
        .iter()
        .find(|pool| pool.id == launch.pool)
        .and_then(|pool| pool.offerings.iter().find(|found| found.id == *offering))
        .and_then(|offering| offering.allocatable.clone())
        .unwrap_or_default()
}

/// Adds units to what a request holds in one place. A whole node is held with all it offers.
fn add(request: &mut RequestRecord, target: AssignmentTarget, units: u32, whole: &Resources) {
    let amount = |units: u32| {
        if request.spec.whole_nodes {
            whole.clone()
        } else {
            request.spec.unit.scaled(units)
        }
    };
    let here = request
        .assignments
        .iter()
        .position(|found| found.target == target);
    let before = here
        .and_then(|at| request.assignments.get(at))
        .map_or(0, |found| found.units);
    let record = AssignmentRecord {
        amount: amount(before.saturating_add(units)),
        units: before.saturating_add(units),
        target,
    };
    match here.and_then(|at| request.assignments.get_mut(at)) {
        Some(found) => *found = record,
        None => request.assignments.push(record),
    }
}

/// A name that was never used: for launches.
fn fresh_id(kind: &str, draw: u64) -> LaunchId {
    LaunchId(format!("{kind}-{draw:016x}"))
}
