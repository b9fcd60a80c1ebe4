//! Leaving: the one place that ends an instance or powers a host off.
//!
//! Called for a node that the plan, or a person's drain, lets go. Reads the agent once more, passes the breaker, commits,
//! calls, and confirms by reading before the record goes.

use super::turn;
use crate::config::{PoolConfig, PoolSource};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::deeds::{Deed, Done};
use crate::control::events::Happening;
use crate::control::failures;
use crate::control::fleet::{Evidence, FleetNode, busy};
use crate::control::orders;
use crate::control::tx::Tx;
use crate::ports::actuate::{ActuateError, InstanceState, ProviderFailure, Trace};
use crate::records::{DrainRecord, DrainStep};
use drover_core::model::{Busy, FailureKind, InstanceId, Millis, NodeId, PoolId};
use drover_core::rules::breaker::FLEET_WINDOW;
use drover_core::rules::drain::{Event, Turn};

/// After a refusal that may pass nothing of the pool is drained for so long.
const REFUSED_PAUSE: Millis = Millis::minutes(10);
/// A termination whose effect is not seen is called again after this.
const CALL_AGAIN: Millis = Millis(20_000);

/// What is known to be allowed to leave, with its call.
pub(in crate::control) struct Leaving {
    pub(in crate::control) node: NodeId,
    pub(in crate::control) pool: PoolId,
    pub(in crate::control) instance: InstanceId,
}

impl Control {
    /// Re-reads a drained node and commits that it leaves. `None`: not now.
    pub(in crate::control) async fn begin_leave(
        &mut self,
        round: &mut Round,
        id: &NodeId,
    ) -> Result<Option<Leaving>, CycleError> {
        let Some(node) = round.node(id).cloned() else {
            return Ok(None);
        };
        let (Some(drain), Some(pool), Some(instance)) = (
            node.drain.clone(),
            node.pool.clone(),
            node.instance_id.clone(),
        ) else {
            return Ok(None);
        };
        let Turn::To(_) = turn(&drain, Event::RemovalBegun, round.now) else {
            return Ok(None);
        };
        if !node.reserved.is_empty() || !self.is_empty_now(id, Some(&pool)) {
            return Ok(None);
        }
        if let Some(why) = self.removal_forbidden(round, &pool) {
            tracing::debug!(node = %id, pool = %pool, why, "does not leave now");
            return Ok(None);
        }
        let mut tx = Tx::new();
        // The node whose work was made to move was counted then: it is one act.
        let counted = drain
            .moving
            .is_some_and(|at| round.now.since(at) < FLEET_WINDOW);
        if !counted && !self.pass_breaker(round, &mut tx, &pool, id) {
            self.commit(round, tx).await?;
            return Ok(None);
        }
        let leaving = DrainRecord {
            step: DrainStep::Leaving,
            ..drain
        };
        tx.put_drain(&round.ledger, id, leaving);
        tx.event(Happening::Leaving {
            node: id.clone(),
            instance: instance.clone(),
            pool: pool.clone(),
        });
        tx.audit("node.leave", id.as_str(), instance.as_str());
        if self.commit(round, tx).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(Leaving {
            node: id.clone(),
            pool,
            instance,
        }))
    }

    /// The newest word of the agent: connected, fresh, no work.
    fn is_empty_now(&self, id: &NodeId, pool: Option<&PoolId>) -> bool {
        let Some(view) = self.link.view(id) else {
            return false;
        };
        let pool = pool.and_then(|pool| self.config.pool(pool));
        let evidence = Evidence::of(&self.config, pool, self.clock.mono());
        let now = self.clock.wall();
        matches!(busy(&view, evidence, now, now), Busy::Idle { .. })
    }

    /// Calls for nodes that may leave, all at once.
    pub(in crate::control) async fn call_leaves(
        &mut self,
        round: &mut Round,
        leaving: Vec<Leaving>,
    ) -> Result<(), CycleError> {
        for leaving in leaving {
            let kind = self.config.pool(&leaving.pool).map(PoolConfig::kind);
            let Some(actuator) = kind.and_then(|kind| self.pools.actuator(kind)) else {
                continue;
            };
            let mono = self.clock.mono();
            self.seen.leave_called.insert(leaving.node.clone(), mono);
            self.deeds
                .begin(Deed::Leave(leaving.node.clone()), async move {
                    let result = actuator.leave(&leaving.pool, &leaving.instance).await;
                    Done::Left(leaving, result)
                });
        }
        self.take_deeds(round).await
    }

    /// Writes down what a call gave.
    pub(in crate::control) async fn left(
        &mut self,
        round: &mut Round,
        leaving: &Leaving,
        result: Result<(), ActuateError>,
    ) -> Result<(), CycleError> {
        fail::fail_point!("leave.called");
        let mono = self.clock.mono();
        self.seen.leave_called.insert(leaving.node.clone(), mono);
        let readings = self
            .pools
            .watch(&leaving.pool)
            .map_or(0, |watch| watch.readings);
        self.seen.leave_read.insert(leaving.node.clone(), readings);
        self.pools.stale(&leaving.pool);
        match result {
            Ok(()) => {
                let fixed = self
                    .config
                    .pool(&leaving.pool)
                    .is_some_and(|pool| matches!(pool.source, PoolSource::Static(_)));
                if fixed {
                    self.take_off(round, &leaving.node).await?;
                }
                round.again = true;
                Ok(())
            }
            Err(error) => self.leave_failed(round, leaving, error).await,
        }
    }

    /// A refusal for good brings the node back (SC-51); passing trouble is tried again.
    async fn leave_failed(
        &mut self,
        round: &mut Round,
        leaving: &Leaving,
        error: ActuateError,
    ) -> Result<(), CycleError> {
        let passing = matches!(error.kind, FailureKind::Throttle | FailureKind::Transient);
        let happening = Happening::LeaveFailed {
            node: leaving.node.clone(),
            kind: error.kind,
            message: error.message.clone(),
        };
        if passing {
            round.events.push(happening);
            return Ok(());
        }
        let failure = ProviderFailure {
            id: String::new(),
            offering: None,
            kind: error.kind,
            message: error.message,
            at: round.now,
            trace: Trace::Absent,
        };
        // At the provider's minimum, or suspended there: it may go another time, and growth goes on.
        if !matches!(error.kind, FailureKind::Config | FailureKind::Permission) {
            let until = round.mono.plus(REFUSED_PAUSE);
            let said = failure.message.clone();
            self.seen
                .held_leaves
                .insert(leaving.pool.clone(), (said, until));
        } else {
            let said = failure.message.clone();
            self.seen.refused_leaves.insert(leaving.pool.clone(), said);
            let mut tx = Tx::new();
            failures::stop_pool(round, &mut tx, &leaving.pool, &failure);
            self.commit(round, tx).await?;
        }
        self.did_not_go(round, &leaving.pool).await?;
        self.rejoin(round);
        if let Some(node) = round.node(&leaving.node).cloned()
            && let Some(drain) = node.drain.clone()
            && matches!(
                turn(&drain, Event::RemovalRefused, round.now),
                Turn::Undo(_)
            )
        {
            self.undo(round, &node, &drain, happening).await?;
        }
        Ok(())
    }

    /// A node that was let go: called again when the call may be lost, gone once the provider says so.
    pub(in crate::control) async fn follow_leave(
        &mut self,
        round: &mut Round,
        node: &FleetNode,
        drain: &DrainRecord,
    ) -> Result<(), CycleError> {
        let (Some(pool), Some(instance)) = (node.pool.clone(), node.instance_id.clone()) else {
            return Ok(());
        };
        let under_way = node
            .instance
            .as_ref()
            .is_some_and(|found| found.state >= InstanceState::Leaving);
        let called = self.seen.leave_called.get(&node.id);
        let waits = called.is_some_and(|at| round.mono.0.saturating_sub(at.0) < CALL_AGAIN.0);
        let at_work = self.is_at_work(&Deed::Leave(node.id.clone()));
        if under_way || waits || at_work || !round.read.contains(&pool) {
            return Ok(());
        }
        // The record says that it leaves, and the provider still has it: the call was lost with a crash, or failed.
        if !self.is_empty_now(&node.id, Some(&pool))
            && node.agent.as_ref().is_some_and(|agent| agent.connected)
        {
            let happening = Happening::DrainRolledBack {
                node: node.id.clone(),
                reason: "workload landed".to_owned(),
            };
            return self.undo(round, node, drain, happening).await;
        }
        if self.removal_forbidden(round, &pool).is_some() {
            return Ok(());
        }
        let again = Leaving {
            node: node.id.clone(),
            pool,
            instance,
        };
        tracing::info!(node = %node.id, by = orders::DROVER, "calls again for a node that was let go");
        self.call_leaves(round, vec![again]).await
    }
}
