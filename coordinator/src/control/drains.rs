//! Drains: what agents say of them, when they end, when they are undone, and the leaving that follows.
//!
//! Called by the cycle. **Invariant:** a node leaves only drained, re-read and empty, by its instance id (I1, I2); undo
//! restores the state before (I7).

mod leave;

pub(super) use leave::Leaving;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::orders;
use super::tx::Tx;
use crate::records::{DrainRecord, DrainStep, OrderRecord, Then};
use drover_core::model::{Busy, Cordon, Millis, NodeId};
use drover_proto::v1::{DrainState, OrderStatus};

/// After its deadline a drain is given up by the coordinator when the agent has not said so itself.
const PATIENCE: Millis = Millis(60_000);

/// What becomes of a drain in this cycle.
enum Turn {
    Stay,
    Step(DrainStep),
    /// Restore the state before.
    Undo(Happening),
    /// Drained, and the person wants it back.
    Return,
    /// Somebody else cordoned it meanwhile: theirs.
    Theirs,
}

impl Control {
    /// Takes what agents say of their drains.
    pub(super) async fn follow_drains(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let ids: Vec<NodeId> = round.ledger.drains.keys().cloned().collect();
        for id in ids {
            let Some(drain) = round.ledger.drains.get(&id).map(|held| held.value.clone()) else {
                continue;
            };
            let Some(node) = round.node(&id).cloned() else {
                // Neither record nor instance: nothing is left to drain.
                let mut tx = Tx::new();
                tx.delete_drain(&round.ledger, &id);
                tx.delete_order(&round.ledger, &id);
                self.commit(round, tx).await?;
                continue;
            };
            if drain.step == DrainStep::Leaving {
                self.follow_leave(round, &node, &drain).await?;
                continue;
            }
            match judge(round, &node, &drain) {
                Turn::Stay => {}
                Turn::Step(step) => {
                    let mut tx = Tx::new();
                    if step == DrainStep::Drained {
                        tx.event(Happening::Drained { node: id.clone() });
                        round.again = true;
                    }
                    tx.put_drain(&round.ledger, &id, DrainRecord { step, ..drain });
                    self.commit(round, tx).await?;
                }
                Turn::Undo(happening) => self.undo(round, &node, &drain, happening).await?,
                Turn::Return => {
                    let happening = Happening::Uncordoned {
                        node: id.clone(),
                        by: drain.by.clone(),
                        reason: "drained".to_owned(),
                    };
                    self.undo(round, &node, &drain, happening).await?;
                }
                Turn::Theirs => {
                    let mut tx = Tx::new();
                    tx.delete_drain(&round.ledger, &id);
                    let order = orders::active(
                        node.order.as_ref(),
                        node.highest_epoch(),
                        "not ours any more",
                    );
                    tx.put_order(&round.ledger, &id, order);
                    tx.event(Happening::DrainCancelled {
                        node: id.clone(),
                        by: orders::DROVER.to_owned(),
                        reason: "somebody else cordoned it: it is theirs".to_owned(),
                    });
                    self.commit(round, tx).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends a drain and restores the state before it.
    pub(super) async fn undo(
        &mut self,
        round: &mut Round,
        node: &FleetNode,
        drain: &DrainRecord,
        happening: Happening,
    ) -> Result<(), CycleError> {
        let mut tx = Tx::new();
        tx.delete_drain(&round.ledger, &node.id);
        let order = orders::restored(
            node.order.as_ref(),
            node.highest_epoch(),
            drain.before.as_deref(),
            "the drain is over",
        );
        tx.put_order(&round.ledger, &node.id, order);
        tx.event(happening);
        tx.audit("node.drain_undo", node.id.as_str(), drain.reason.clone());
        if self.commit(round, tx).await?.is_some() {
            fail::fail_point!("order.committed");
        }
        round.again = true;
        Ok(())
    }
}

/// The agent's word on exactly this drain, accepted or refused.
fn status<'a>(node: &'a FleetNode, drain: &DrainRecord) -> Option<&'a OrderStatus> {
    let status = node.agent.as_ref()?.order_status.as_ref()?;
    (status.drain_id == drain.id.as_str()).then_some(status)
}

/// The agent refused the order that is in force now.
fn refused<'a>(node: &'a FleetNode, order: Option<&OrderRecord>) -> Option<&'a str> {
    let status = node.agent.as_ref()?.order_status.as_ref()?;
    let order = order?;
    (!status.refused.is_empty()
        && (status.epoch, status.generation) == (order.epoch, order.generation))
        .then_some(status.refused.as_str())
}

fn judge(round: &Round, node: &FleetNode, drain: &DrainRecord) -> Turn {
    let id = node.id.clone();
    let wait = matches!(drain.policy, crate::records::DrainPolicy::Wait);
    let ours = drain.by == orders::DROVER;
    if ours && drain.own_idle && matches!(node.cordon, Some(Cordon::Person { .. })) {
        return Turn::Theirs;
    }
    // A stale order is raised above what the node has seen when it says Hello; anything else is final.
    if let Some(why) = refused(node, node.order.as_ref())
        && !why.starts_with("stale")
    {
        let reason = why.to_owned();
        return Turn::Undo(Happening::DrainRefused { node: id, reason });
    }
    if drain.own_idle && wait && landed(node, drain) {
        let reason = "workload landed".to_owned();
        return Turn::Undo(Happening::DrainRolledBack { node: id, reason });
    }
    let state = status(node, drain).map(OrderStatus::drain_state);
    match state {
        Some(DrainState::RolledBack | DrainState::Cancelled) => {
            let reason = status(node, drain)
                .map(|status| status.reason.clone())
                .unwrap_or_default();
            return Turn::Undo(Happening::DrainRolledBack { node: id, reason });
        }
        Some(DrainState::Drained) if drain.step < DrainStep::Drained => {
            return Turn::Step(DrainStep::Drained);
        }
        Some(DrainState::Drained) => {
            return match drain.then {
                Then::Return => Turn::Return,
                Then::Cordoned | Then::Leave => Turn::Stay,
            };
        }
        // Work came after it had been drained (somebody passed by the cordon): it is not drained any more.
        Some(_) if drain.step == DrainStep::Drained => return Turn::Step(DrainStep::Running),
        Some(_) if drain.step == DrainStep::Requested => return Turn::Step(DrainStep::Running),
        _ => {}
    }
    let over = drain
        .deadline
        .is_some_and(|deadline| round.now > deadline.after(PATIENCE));
    if over && drain.step < DrainStep::Drained && !node.unreachable {
        return Turn::Undo(Happening::DrainExpired { node: id });
    }
    Turn::Stay
}

/// Work that came before the cordon took effect, seen after it did (SC-17).
fn landed(node: &FleetNode, drain: &DrainRecord) -> bool {
    let Some(agent) = &node.agent else {
        return false;
    };
    let cordoned = status(node, drain).is_some_and(|status| {
        !matches!(
            status.drain_state(),
            DrainState::Unspecified | DrainState::Requested | DrainState::Cordoning
        )
    });
    let told = status(node, drain).is_some_and(|status| status.workloads_now > 0);
    let listed = agent.workloads_at >= drain.since && matches!(node.busy, Busy::Working { .. });
    cordoned && (told || listed)
}
