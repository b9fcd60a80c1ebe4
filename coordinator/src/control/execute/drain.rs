//! Our own drains: begun where the newest view says what the plan saw, and taken back. A person's are never touched (I7).

use crate::control::cycle::{Control, CycleError, Round};
use crate::control::drains::SAYS;
use crate::control::events::Happening;
use crate::control::fleet::{Evidence, busy};
use crate::control::orders::{self, DROVER, OWN_DRAIN};
use crate::control::tx::Tx;
use crate::ports::actuate::InstanceState;
use crate::records::{AssignmentTarget, DrainPolicy, DrainRecord, DrainStep, Then};
use drover_core::model::{Busy, DrainId, Emptying, InstanceId, Mode, NodeId, PoolId, Reason};
use drover_core::planner::render;

impl Control {
    /// Begins a drain of our own: policy wait for nodes without work, evict where all work says that it can move.
    pub(super) async fn begin_drain(
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

    /// Takes back our own cordon and our own idle drain, nothing else (I7).
    pub(in crate::control) async fn uncordon(
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
