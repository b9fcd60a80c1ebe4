//! Drains: what agents say of them, when they end, when they are undone, and the leaving that follows.
//!
//! Called by the cycle. **Invariant:** a node leaves only drained, re-read and empty, by its instance id (I1, I2); undo
//! restores the state before (I7).

mod leave;
mod moving;

pub(super) use leave::Leaving;
pub(super) use moving::SAYS;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::orders;
use super::tx::Tx;
use crate::records::{DrainPolicy, DrainRecord, DrainStep, OrderRecord, Then};
use drover_core::model::{Busy, Cordon, NodeId, UnixMs};
use drover_core::rules::drain::{Drain, Event, Look, Stage, Turn, Undone, Word, step};
use drover_proto::v1::{DrainState, OrderStatus};

/// As the rules know it.
pub(super) const fn stage(step: DrainStep) -> Stage {
    match step {
        DrainStep::Requested => Stage::Requested,
        DrainStep::Running => Stage::Running,
        DrainStep::Drained => Stage::Drained,
        DrainStep::Leaving => Stage::Leaving,
    }
}

const fn recorded(stage: Stage) -> DrainStep {
    match stage {
        Stage::Requested => DrainStep::Requested,
        Stage::Running => DrainStep::Running,
        Stage::Drained => DrainStep::Drained,
        Stage::Leaving => DrainStep::Leaving,
    }
}

/// What an event makes of a drain, by the rules.
pub(super) fn turn(drain: &DrainRecord, event: Event, now: UnixMs) -> Turn {
    let state = Drain {
        stage: stage(drain.step),
        own_idle: drain.own_idle,
        ours: drain.by == orders::DROVER,
        waits: matches!(drain.policy, DrainPolicy::Wait),
        returns: drain.then == Then::Return,
        deadline: drain.deadline,
    };
    step(state, event, now)
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
            match turn(&drain, Event::Look(look(&node, &drain)), round.now) {
                Turn::Stay | Turn::Refuse => self.move_work(round, &node, &drain).await?,
                Turn::To(stage) => {
                    let step = recorded(stage);
                    let mut tx = Tx::new();
                    if step == DrainStep::Drained {
                        tx.event(Happening::Drained { node: id.clone() });
                        round.again = true;
                    }
                    round.again |= orders::looks_again(&drain);
                    tx.put_drain(&round.ledger, &id, DrainRecord { step, ..drain });
                    self.commit(round, tx).await?;
                }
                Turn::Undo(why) => {
                    let happening = undone(&node, &drain, why);
                    self.undo(round, &node, &drain, happening).await?;
                }
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

/// What is seen of it now.
fn look(node: &FleetNode, drain: &DrainRecord) -> Look {
    // A stale order is raised above what the node has seen when it says Hello; anything else is final.
    let refused = refused(node, node.order.as_ref()).is_some_and(|why| !why.starts_with("stale"));
    let said = status(node, drain).map(|status| match status.drain_state() {
        DrainState::RolledBack | DrainState::Cancelled => Word::Undone,
        DrainState::Drained => Word::Drained,
        _ => Word::Working,
    });
    Look {
        said,
        refused,
        taken_over: matches!(node.cordon, Some(Cordon::Person { .. })),
        landed: landed(node, drain),
        silent: node.unreachable,
    }
}

/// Why it was undone, for people.
fn undone(node: &FleetNode, drain: &DrainRecord, why: Undone) -> Happening {
    let id = node.id.clone();
    let said = |reason: Option<&str>| reason.unwrap_or_default().to_owned();
    match why {
        Undone::Refused => Happening::DrainRefused {
            node: id,
            reason: said(refused(node, node.order.as_ref())),
        },
        Undone::WorkLanded => Happening::DrainRolledBack {
            node: id,
            reason: "workload landed".to_owned(),
        },
        Undone::RolledBack => Happening::DrainRolledBack {
            node: id,
            reason: said(status(node, drain).map(|status| status.reason.as_str())),
        },
        Undone::Expired => Happening::DrainExpired { node: id },
        Undone::Cancelled | Undone::RemovalRefused => Happening::DrainCancelled {
            node: id,
            by: orders::DROVER.to_owned(),
            reason: drain.reason.clone(),
        },
    }
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
