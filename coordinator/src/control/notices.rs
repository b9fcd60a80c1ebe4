//! Notices of agents (spot, rebalance, XID, shutdown), and what is news about a node: told once.
//!
//! Called by the cycle. A notice is acknowledged after it is durable.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::orders::{self, DROVER, OWN_DRAIN};
use super::tx::Tx;
use crate::ports::link::AgentNotice;
use crate::records::{DrainPolicy, DrainRecord, DrainStep, Then};
use drover_core::model::{Cordon, DrainId, Millis, Mode, UnixMs};

/// A forced drain ends this long before the notice's own end.
const MARGIN: Millis = Millis(15_000);

impl Control {
    /// Takes notices durably, orders what they ask for, and acknowledges them.
    pub(super) async fn take_notices(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let notices = self.link.notices();
        let mut taken = Vec::new();
        for AgentNotice { node: id, notice } in notices {
            let mut tx = Tx::new();
            tx.event(Happening::Notice {
                node: id.clone(),
                kind: notice.kind.clone(),
                message: notice.message.clone(),
            });
            if notice.kind == "spot_interruption"
                && let Some(node) = round.node(&id).cloned()
                && self.may_force(round, &node)
            {
                let deadline = UnixMs(notice.deadline_unix_ms.saturating_sub(MARGIN.0));
                let pool = node.pool.as_ref().and_then(|pool| self.config.pool(pool));
                let drain = DrainRecord {
                    id: DrainId(format!("{OWN_DRAIN}{:016x}", self.chance.next())),
                    node: id.clone(),
                    policy: DrainPolicy::Force,
                    by: DROVER.to_owned(),
                    reason: "spot notice".to_owned(),
                    own_idle: false,
                    since: round.now,
                    deadline: Some(deadline.max(round.now)),
                    grace: pool.map_or(Millis::seconds(30), |pool| pool.grace),
                    then: Then::Cordoned,
                    step: DrainStep::Requested,
                    moving: None,
                    before: node.order.clone().map(Box::new),
                };
                let order = orders::draining(node.order.as_ref(), node.highest_epoch(), &drain);
                tx.put_drain(&round.ledger, &id, drain);
                tx.put_order(&round.ledger, &id, order);
                tx.event(Happening::DrainStarted {
                    node: id.clone(),
                    policy: DrainPolicy::Force,
                    by: DROVER.to_owned(),
                    reason: "spot notice".to_owned(),
                });
                tx.audit("node.drain", id.as_str(), "spot notice");
            }
            if self.commit(round, tx).await?.is_some() {
                taken.push((id, notice.id));
            }
        }
        if !taken.is_empty() {
            self.link.settle_notices(&taken);
        }
        Ok(())
    }

    fn may_force(&self, round: &Round, node: &FleetNode) -> bool {
        let Some(pool) = &node.pool else { return false };
        let forced = node
            .drain
            .as_ref()
            .is_some_and(|drain| drain.policy == DrainPolicy::Force);
        !forced && self.mode(round, pool) == Mode::Full && !self.is_frozen(round, pool)
    }

    /// News about nodes: silent and back, faulty and mended, cordoned by somebody else.
    pub(super) fn watch_nodes(&mut self, round: &mut Round) {
        let mut news = Vec::new();
        for node in round.fleet.iter().filter(|node| node.joined()) {
            let (id, name) = (node.id.clone(), node.name.clone());
            if node.unreachable {
                if self.seen.settled && self.seen.unreachable.insert(id.clone()) {
                    news.push(Happening::Unreachable {
                        node: id.clone(),
                        name: name.clone(),
                    });
                }
            } else if self.seen.unreachable.remove(&id) {
                news.push(Happening::Returned {
                    node: id.clone(),
                    name: name.clone(),
                });
            }
            match (&node.faulty, self.seen.faulty.get(&id)) {
                (Some(what), told) if told != Some(what) => {
                    self.seen.faulty.insert(id.clone(), what.clone());
                    news.push(Happening::Faulty {
                        node: id.clone(),
                        name: name.clone(),
                        what: what.clone(),
                    });
                }
                (None, Some(_)) if !node.unreachable => {
                    self.seen.faulty.remove(&id);
                    news.push(Happening::Mended {
                        node: id.clone(),
                        name: name.clone(),
                    });
                }
                _ => {}
            }
            let foreign = node
                .agent
                .as_ref()
                .and_then(|agent| agent.actual.as_ref())
                .is_some_and(|actual| actual.released || !actual.foreign_cordon.is_empty());
            match &node.cordon {
                Some(Cordon::Person { who, why }) if foreign => {
                    if self.seen.foreign_cordons.insert(id.clone()) {
                        let who = format!("{who}: {why}");
                        news.push(Happening::ForeignCordon {
                            node: id,
                            name,
                            who,
                        });
                    }
                }
                _ => {
                    self.seen.foreign_cordons.remove(&id);
                }
            }
        }
        round.events.append(&mut news);
    }
}
