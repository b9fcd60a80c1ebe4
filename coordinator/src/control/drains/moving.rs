//! Drains of Drover's own that move work which says that it can: cordon first, look again, then tell it to move.
//!
//! Called when such a drain is followed and nothing else became of it. **Invariant:** nothing is told to move unless the
//! newest list, read after the cordon, says of all of it that it can; and the breaker has counted it (I1, I14).

use super::{landed, status};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::fleet::{Evidence, FleetNode, busy};
use crate::control::orders;
use crate::control::tx::Tx;
use crate::ports::link::AgentView;
use crate::records::{DrainRecord, DrainStep};
use drover_core::model::{Busy, Millis, Mode};

/// Why work may be moved, in events and in the audit.
pub(in crate::control) const SAYS: &str = "all of its work says that it can move";
/// Work that the drain sees and the list does not name must be named within this time.
const UNNAMED: Millis = Millis::minutes(1);

impl Control {
    /// Tells the work to move once the node is cordoned, or gives the drain up when some of it does not say that it can.
    pub(super) async fn move_work(
        &mut self,
        round: &mut Round,
        node: &FleetNode,
        drain: &DrainRecord,
    ) -> Result<(), CycleError> {
        let ours = orders::moves(drain);
        let Some(pool) = node.pool.clone().filter(|_| ours) else {
            return Ok(());
        };
        let Some(view) = self.link.view(&node.id) else {
            return Ok(());
        };
        // Nobody hears it: nothing can be concluded.
        if node.unreachable || !view.connected {
            return Ok(());
        }
        let evidence = Evidence::of(&self.config, self.config.pool(&pool), self.clock.mono());
        let now = self.clock.wall();
        // Without work there is nothing to move: its agent says when it is drained.
        let Busy::Working { movable, .. } = busy(&view, evidence, now, now) else {
            return Ok(());
        };
        let unnamed = has_unnamed(node, drain, &view);
        if !movable || (unnamed && round.now.since(drain.since) > UNNAMED) {
            let happening = Happening::DrainRolledBack {
                node: node.id.clone(),
                reason: "not all of its work says that it can move".to_owned(),
            };
            return self.undo(round, node, drain, happening).await;
        }
        let stands = orders::looks_again(drain)
            && !unnamed
            && drain.step < DrainStep::Drained
            && landed(node, drain);
        if !stands
            || self.mode(round, &pool) != Mode::Full
            || self.removal_forbidden(round, &pool).is_some()
        {
            return Ok(());
        }
        let mut tx = Tx::new();
        if self.pass_breaker(round, &mut tx, &pool, &node.id) {
            let moving = DrainRecord {
                moving: Some(round.now),
                ..drain.clone()
            };
            let order = orders::draining(node.order.as_ref(), node.highest_epoch(), &moving);
            tx.put_order(&round.ledger, &node.id, order);
            tx.put_drain(&round.ledger, &node.id, moving);
            tx.event(Happening::Moving {
                node: node.id.clone(),
                reason: drain.reason.clone(),
            });
            tx.audit("node.evict", node.id.as_str(), drain.reason.clone());
        }
        if self.commit(round, tx).await?.is_some() {
            fail::fail_point!("order.committed");
        }
        Ok(())
    }
}

/// The drain sees more work than the list names: a session, or what has only just come. It does not say that it can move.
fn has_unnamed(node: &FleetNode, drain: &DrainRecord, view: &AgentView) -> bool {
    let named = view.workloads.as_ref().map_or(0, |list| list.items.len());
    status(node, drain)
        .is_some_and(|status| usize::try_from(status.workloads_now).is_ok_and(|seen| seen > named))
}
