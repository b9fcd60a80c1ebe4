//! The breaker (I14), by `rules::breaker`: outside the planner, trusting nothing that it computed. Limits terminations and
//! forced evictions per pool and 10 min, and per fleet and hour; beyond that a person must approve, node by node.
//!
//! Called right before a destructive act is committed.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::tx::Tx;
use crate::config::Control as Config;
use crate::records::{ApprovalRecord, BreakerRecord, DrainRecord, DrainStep, Then};
use drover_core::model::{Lifecycle, Millis, NodeId, PoolId, PoolKind, UnixMs};
use drover_core::rules::breaker::{APPROVAL_LIFE, Done, Limits, Verdict, forget, judge};

/// An approval that nobody gave is forgotten after this.
const WAITING: Millis = Millis::minutes(60 * 24);

fn done(acts: &BreakerRecord) -> Vec<Done> {
    let acts = acts.acts.iter();
    acts.map(|(at, pool)| Done {
        at: *at,
        pool: pool.clone(),
    })
    .collect()
}

/// May one more node of the pool go, without a person?
pub(super) fn allows(
    acts: &BreakerRecord,
    config: &Config,
    pool: &PoolId,
    fleet: u32,
    now: UnixMs,
) -> Result<(), String> {
    let limits = Limits {
        per_pool: config.breaker_pool,
        fleet_percent: config.breaker_fleet_percent,
    };
    match judge(&done(acts), pool, fleet, limits, None, now) {
        Verdict::Go => Ok(()),
        Verdict::Ask { why } => Err(why),
    }
}

impl Control {
    /// Machines in pools of ours that stay, whether an agent speaks for them or not: what was let go within the hour is
    /// counted by the acts, and once is enough.
    pub(super) fn present(&self, round: &Round) -> u32 {
        // From the books, which know what was let go in this very cycle.
        let let_go = |node: &FleetNode| {
            let drain = round.ledger.drains.get(&node.id);
            let reaped = node.instance_id.as_ref();
            drain.is_some_and(|held| {
                held.value.step == DrainStep::Leaving || held.value.moving.is_some()
            }) || reaped.is_some_and(|id| self.seen.reaped.contains_key(id))
        };
        let found = round.fleet.iter().filter(|node| {
            node.pool.is_some()
                && !matches!(
                    node.lifecycle,
                    Lifecycle::Gone | Lifecycle::Off | Lifecycle::Leaving
                )
                && !let_go(node)
        });
        u32::try_from(found.count()).unwrap_or(u32::MAX)
    }

    /// Counts the act in the same commit, or asks a person.
    pub(super) fn pass_breaker(
        &self,
        round: &Round,
        tx: &mut Tx,
        pool: &PoolId,
        node: &NodeId,
    ) -> bool {
        let mut acts = round
            .ledger
            .breaker
            .as_ref()
            .map(|held| held.value.clone())
            .unwrap_or_default();
        let mut kept = done(&acts);
        forget(&mut kept, round.now);
        acts.acts = kept.into_iter().map(|act| (act.at, act.pool)).collect();
        let fleet = self.present(round);
        let verdict = allows(&acts, &self.config.control, pool, fleet, round.now);
        let approved = round.ledger.approvals.values().any(|held| {
            let approval = &held.value;
            approval.pool == *pool && approval.nodes.contains(node) && is_valid(approval, round.now)
        });
        match verdict {
            Err(why) if !approved => {
                self.ask_person(round, tx, pool, &on_their_way(round, pool, node), &why);
                false
            }
            _ => {
                acts.acts.push((round.now, pool.clone()));
                tx.put_breaker(&round.ledger, acts);
                true
            }
        }
    }

    /// Takes back the last act in a pool: its provider refused it for good, so nothing went.
    pub(super) async fn did_not_go(
        &mut self,
        round: &mut Round,
        pool: &PoolId,
    ) -> Result<(), CycleError> {
        let Some(held) = &round.ledger.breaker else {
            return Ok(());
        };
        let mut acts = held.value.clone();
        let Some(last) = acts.acts.iter().rposition(|(_, of)| of == pool) else {
            return Ok(());
        };
        acts.acts.remove(last);
        let mut tx = Tx::new();
        tx.put_breaker(&round.ledger, acts);
        self.commit(round, tx).await?;
        Ok(())
    }

    /// Asks a person about these nodes, in one approval per pool that grows until it is given.
    pub(super) fn ask_person(
        &self,
        round: &Round,
        tx: &mut Tx,
        pool: &PoolId,
        nodes: &[NodeId],
        why: &str,
    ) {
        let open = round
            .ledger
            .approvals
            .values()
            .find(|held| held.value.pool == *pool && held.value.approved.is_none());
        let mut record = open.map_or_else(
            || ApprovalRecord {
                id: format!("{pool}-{:06x}", self.chance.next() & 0xff_ffff),
                pool: pool.clone(),
                nodes: Vec::new(),
                message: String::new(),
                why: String::new(),
                since: round.now,
                approved: None,
            },
            |held| held.value.clone(),
        );
        let known = record.nodes.len();
        for node in nodes {
            if !record.nodes.contains(node) {
                record.nodes.push(node.clone());
            }
        }
        if record.nodes.len() == known {
            return;
        }
        record.why = why.to_owned();
        record.message = self.would(round, &record);
        if open.is_none() {
            tx.event(Happening::ApprovalNeeded {
                pool: pool.clone(),
                id: record.id.clone(),
                message: record.message.clone(),
            });
        }
        let id = record.id.clone();
        tx.put_approval(&round.ledger, &id, record);
    }

    /// What an approval allows: "terminate 3 nodes of pool big (5 of big went within 10 min, at most 5 may)".
    fn would(&self, round: &Round, record: &ApprovalRecord) -> String {
        let kind = self.config.pool(&record.pool).map(|pool| pool.kind());
        let verb = match kind {
            Some(PoolKind::Static) => "power off",
            _ => "terminate",
        };
        let count = record.nodes.len();
        let noun = if count == 1 { "node" } else { "nodes" };
        let moves = |id: &&NodeId| {
            let drain = round.ledger.drains.get(*id).map(|held| &held.value);
            drain.is_some_and(super::orders::looks_again)
        };
        let moving = match record.nodes.iter().filter(moves).count() {
            0 => String::new(),
            moving => format!(", {moving} of them after its work has moved, as it says it can"),
        };
        format!(
            "{verb} {count} {noun} of pool {}{moving} ({})",
            record.pool, record.why
        )
    }

    /// Forgets approvals that are over, and nodes that nobody means to end any more.
    pub(super) async fn keep_approvals(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let over: Vec<String> = round
            .ledger
            .approvals
            .values()
            .filter(|held| {
                let approval = &held.value;
                let expired = match &approval.approved {
                    Some((_, at)) => round.now.since(*at) >= APPROVAL_LIFE,
                    None => round.now.since(approval.since) >= WAITING,
                };
                let moot = approval.nodes.iter().all(|node| round.node(node).is_none());
                expired || moot
            })
            .map(|held| held.value.id.clone())
            .collect();
        for id in over {
            let mut tx = Tx::new();
            tx.delete_approval(&round.ledger, &id);
            self.commit(round, tx).await?;
        }
        self.shorten_approvals(round).await
    }

    /// An approval that waits lists what it would end now: what left meanwhile, or is kept after all, is struck off.
    async fn shorten_approvals(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let open: Vec<ApprovalRecord> = round
            .ledger
            .approvals
            .values()
            .map(|held| held.value.clone())
            .filter(|approval| approval.approved.is_none())
            .collect();
        for mut approval in open {
            let before = approval.nodes.len();
            approval.nodes.retain(|id| still_to_go(round, id));
            if approval.nodes.len() == before {
                continue;
            }
            let mut tx = Tx::new();
            let id = approval.id.clone();
            if approval.nodes.is_empty() {
                tx.delete_approval(&round.ledger, &id);
            } else {
                approval.message = self.would(round, &approval);
                tx.put_approval(&round.ledger, &id, approval);
            }
            self.commit(round, tx).await?;
        }
        Ok(())
    }
}

/// This node and every other one of its pool that is being emptied to leave: a person is asked once about all of them.
fn on_their_way(round: &Round, pool: &PoolId, node: &NodeId) -> Vec<NodeId> {
    // From the books, which know what left in this very cycle.
    let leaves = |id: &NodeId| {
        let drain = round.ledger.drains.get(id).map(|held| &held.value);
        drain.is_some_and(|drain| drain.then == Then::Leave && drain.step < DrainStep::Leaving)
    };
    let others = round
        .fleet
        .iter()
        .filter(|other| other.pool.as_ref() == Some(pool) && leaves(&other.id));
    std::iter::once(node.clone())
        .chain(others.map(|other| other.id.clone()).filter(|id| id != node))
        .collect()
}

/// It is there, and being emptied to leave, or nobody speaks for it.
fn still_to_go(round: &Round, id: &NodeId) -> bool {
    round.node(id).is_some_and(|node| {
        let leaves =
            |drain: &DrainRecord| drain.then == Then::Leave && drain.step < DrainStep::Leaving;
        !node.joined() || node.drain.as_ref().is_some_and(leaves)
    })
}

/// The approval that a node waits for.
pub(super) fn waits_for<'r>(round: &'r Round, node: &NodeId) -> Option<&'r ApprovalRecord> {
    let open = round.ledger.approvals.values().map(|held| &held.value);
    open.filter(|approval| approval.approved.is_none())
        .find(|approval| approval.nodes.contains(node))
}

/// Given, and not over.
pub(super) fn is_valid(approval: &ApprovalRecord, now: UnixMs) -> bool {
    approval
        .approved
        .as_ref()
        .is_some_and(|(_, at)| now.since(*at) < APPROVAL_LIFE)
}
