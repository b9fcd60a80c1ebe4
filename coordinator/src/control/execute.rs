//! Turns a checked plan into commits and calls: release, uncordon, assign, launch, drain, leave; in this order.
//!
//! Called by the cycle. **Invariant:** each act passes freeze, mode and breaker once more, and its intent is committed
//! before its call. What does not go on one pool or node costs that pool or node.

mod assign;
mod drain;
mod grow;
mod reap;

pub(super) use assign::add;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::orders::DROVER;
use super::tx::Tx;
use crate::records::{DrainStep, Then};
use drover_core::model::{Action, NodeId, PlanInput, Planned, Reason, RequestName};
use drover_core::planner::render;

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
        self.use_left(round, planned).await?;
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
