//! Cordon, uncordon, drain, and taking a drain back.

use super::{CommandError, Commands, guarded, invalid};
use crate::config::PoolSource;
use crate::control::drains::turn;
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::{Held, one};
use crate::control::orders;
use crate::ports::store::Revision;
use crate::records::{
    DesiredState, DrainPolicy, DrainRecord, DrainStep, NodeRecord, OrderRecord, Then, keys,
};
use drover_core::model::{DrainId, Millis, NodeId};
use drover_core::rules::drain::{Event, Turn};

/// A drain that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainWish {
    /// Id, host name or instance id.
    pub node: String,
    /// Policy.
    pub policy: DrainPolicy,
    /// From now; absent: none.
    pub deadline: Option<Millis>,
    /// Between TERM and KILL; absent: the pool's.
    pub grace: Option<Millis>,
    /// Why; never empty in the record.
    pub reason: String,
    /// What follows.
    pub then: Then,
}

/// Longest deadline and grace that a drain may have.
const LONGEST: Millis = Millis::minutes(60 * 24 * 30);

struct Subject {
    id: NodeId,
    node: NodeRecord,
    order: Option<Held<OrderRecord>>,
    drain: Option<Held<DrainRecord>>,
    /// Highest epoch that its agent has reported.
    highest: u64,
    foreign_cordon: String,
}

impl Subject {
    fn order(&self) -> Option<&OrderRecord> {
        self.order.as_ref().map(|held| &held.value)
    }

    fn put_order(&self, change: &mut Change, order: &OrderRecord) {
        let key = keys::named(keys::ORDER, self.id.as_str());
        change.put(key, order, self.order.as_ref().map(|held| held.revision));
    }

    fn drop_drain(&self, change: &mut Change, revision: Revision) {
        change.delete(keys::named(keys::DRAIN, self.id.as_str()), revision);
    }
}

impl Commands {
    async fn subject(&self, name: &str) -> Result<Subject, CommandError> {
        let id = self.node_id(name)?;
        let store = self.journal.store().as_ref();
        let key = keys::named(keys::NODE, id.as_str());
        let Some(node) = one::<NodeRecord>(store, &key).await? else {
            return Err(CommandError::Refused(format!(
                "{name} has no agent: Drover cannot order it anything"
            )));
        };
        let view = self.view.borrow().clone();
        let agent = view
            .named(id.as_str())
            .first()
            .and_then(|node| node.agent.clone());
        Ok(Subject {
            order: one(store, &keys::named(keys::ORDER, id.as_str())).await?,
            drain: one(store, &keys::named(keys::DRAIN, id.as_str())).await?,
            highest: agent.as_ref().map_or(0, |agent| agent.highest_epoch),
            foreign_cordon: agent
                .and_then(|agent| agent.actual.clone())
                .map(|actual| actual.foreign_cordon)
                .unwrap_or_default(),
            node: node.value,
            id,
        })
    }

    /// Keeps new work off a node until somebody uncordons it. A cordon of Drover's own, or a drain of its own for
    /// idleness, becomes the person's.
    ///
    /// # Errors
    /// No or several such nodes, no agent, or a person's drain is under way.
    pub async fn cordon(&self, by: &str, node: &str, reason: &str) -> Result<NodeId, CommandError> {
        guarded!({
            let subject = self.subject(node).await?;
            let mut change = Change::new();
            if let Some(drain) = &subject.drain {
                if !drain.value.own_idle || drain.value.step >= DrainStep::Leaving {
                    return Err(CommandError::Refused(format!(
                        "{node} is being drained by {}: take the drain back first",
                        drain.value.by
                    )));
                }
                subject.drop_drain(&mut change, drain.revision);
            }
            let order = orders::cordoned(subject.order(), subject.highest, by, reason);
            subject.put_order(&mut change, &order);
            change
                .event(Happening::Cordoned {
                    node: subject.id.clone(),
                    by: by.to_owned(),
                    reason: reason.to_owned(),
                })
                .audit(by, "node.cordon", subject.id.as_str(), reason);
            Ok(self.commit(change).await?.map(|_| subject.id))
        })
    }

    /// Lets a node take work again.
    ///
    /// # Errors
    /// No or several such nodes, no agent, a drain is under way, or somebody else than Drover cordoned it.
    pub async fn uncordon(&self, by: &str, node: &str) -> Result<NodeId, CommandError> {
        guarded!({
            let subject = self.subject(node).await?;
            let mut change = Change::new();
            let mut drained = false;
            if let Some(drain) = &subject.drain {
                // A drain that a person ordered and that is done is only a cordon any more.
                let done = drain.value.step == DrainStep::Drained && !drain.value.own_idle;
                if !done {
                    return Err(CommandError::Refused(format!(
                        "{node} is being drained by {}: take the drain back first",
                        drain.value.by
                    )));
                }
                subject.drop_drain(&mut change, drain.revision);
                drained = true;
            }
            let ours = drained
                || subject
                    .order()
                    .is_some_and(|order| order.desired == DesiredState::Cordoned);
            if !ours && !subject.foreign_cordon.is_empty() {
                return Err(CommandError::Refused(format!(
                    "{node} was cordoned outside Drover ({}): undo it there",
                    subject.foreign_cordon
                )));
            }
            if !ours {
                return Ok(Some(subject.id));
            }
            let order = orders::active(subject.order(), subject.highest, "");
            subject.put_order(&mut change, &order);
            change
                .event(Happening::Uncordoned {
                    node: subject.id.clone(),
                    by: by.to_owned(),
                    reason: String::new(),
                })
                .audit(by, "node.uncordon", subject.id.as_str(), "");
            Ok(self.commit(change).await?.map(|_| subject.id))
        })
    }

    /// Empties a node. A drain of Drover's own becomes the person's.
    ///
    /// # Errors
    /// No or several such nodes, no agent, a person's drain is under way, or a field is wrong.
    pub async fn drain(&self, by: &str, wish: &DrainWish) -> Result<NodeId, CommandError> {
        for (field, span) in [("deadline_ms", wish.deadline), ("grace_ms", wish.grace)] {
            if span.is_some_and(|span| span > LONGEST) {
                return Err(invalid(field, "is longer than 30 days"));
            }
        }
        guarded!({
            let subject = self.subject(&wish.node).await?;
            if let Some(drain) = &subject.drain
                && (!drain.value.own_idle || drain.value.step >= DrainStep::Leaving)
            {
                return Err(CommandError::Refused(format!(
                    "{} is already being drained by {}: take that drain back first",
                    wish.node, drain.value.by
                )));
            }
            let config = self.config();
            let pool = subject
                .node
                .pool
                .as_ref()
                .and_then(|pool| config.pool(pool));
            if wish.then == Then::Leave {
                match pool.map(|pool| &pool.source) {
                    None => return Err(invalid("then", "the node is in no pool: only cordoned")),
                    Some(PoolSource::Static(fixed)) if fixed.power.off.is_none() => {
                        return Err(invalid(
                            "then",
                            "the pool has no power_off command: only cordoned",
                        ));
                    }
                    Some(_) => {}
                }
            }
            let now = self.clock.wall();
            let before = match &subject.drain {
                Some(drain) => drain.value.before.clone(),
                None => subject.order().cloned().map(Box::new),
            };
            let drain = DrainRecord {
                id: DrainId(format!("drain-{:016x}", rand::random::<u64>())),
                node: subject.id.clone(),
                policy: wish.policy,
                by: by.to_owned(),
                reason: wish.reason.clone(),
                own_idle: false,
                since: now,
                deadline: wish.deadline.map(|span| now.after(span)),
                grace: wish
                    .grace
                    .or(pool.map(|pool| pool.grace))
                    .unwrap_or(Millis::seconds(30)),
                then: wish.then,
                step: DrainStep::Requested,
                moving: None,
                before,
            };
            let order = orders::draining(subject.order(), subject.highest, &drain);
            let mut change = Change::new();
            let key = keys::named(keys::DRAIN, subject.id.as_str());
            let held = subject.drain.as_ref().map(|held| held.revision);
            change.put(key, &drain, held);
            subject.put_order(&mut change, &order);
            let policy = crate::control::events::policy_word(wish.policy);
            change
                .event(Happening::DrainStarted {
                    node: subject.id.clone(),
                    policy: wish.policy,
                    by: by.to_owned(),
                    reason: wish.reason.clone(),
                })
                .audit(
                    by,
                    "node.drain",
                    subject.id.as_str(),
                    format!("policy {policy}: {}", wish.reason),
                );
            Ok(self.commit(change).await?.map(|_| subject.id))
        })
    }

    /// Takes a drain back: the state before is restored.
    ///
    /// # Errors
    /// No or several such nodes, no drain, or it has begun to leave.
    pub async fn cancel_drain(&self, by: &str, node: &str) -> Result<NodeId, CommandError> {
        guarded!({
            let subject = self.subject(node).await?;
            let Some(drain) = &subject.drain else {
                return Err(CommandError::Refused(format!(
                    "{node} is not being drained"
                )));
            };
            let now = self.clock.wall();
            if turn(&drain.value, Event::Cancel, now) == Turn::Refuse {
                return Err(CommandError::Refused(format!(
                    "{node} has begun to leave: too late to take the drain back"
                )));
            }
            let before = drain.value.before.as_deref();
            let order = orders::restored(subject.order(), subject.highest, before, "");
            let mut change = Change::new();
            subject.drop_drain(&mut change, drain.revision);
            subject.put_order(&mut change, &order);
            change
                .event(Happening::DrainCancelled {
                    node: subject.id.clone(),
                    by: by.to_owned(),
                    reason: String::new(),
                })
                .audit(by, "node.drain_cancel", subject.id.as_str(), "");
            Ok(self.commit(change).await?.map(|_| subject.id.clone()))
        })
    }
}
