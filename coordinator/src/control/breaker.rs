//! The breaker (I14): outside the planner, trusting nothing that it computed. Limits terminations and forced evictions
//! per pool and 10 min, and per fleet and hour; beyond that a person must approve, node by node.
//!
//! Called right before a destructive act is committed.

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::tx::Tx;
use crate::config::Control as Limits;
use crate::records::{ApprovalRecord, BreakerRecord, DrainStep, Then};
use drover_core::model::{Lifecycle, Millis, NodeId, PoolId, UnixMs};

/// Window of a pool's limit.
const POOL_WINDOW: Millis = Millis::minutes(10);
/// Window of the fleet's limit.
const FLEET_WINDOW: Millis = Millis::minutes(60);
/// Compiled ceiling of a pool's limit, whatever the config says.
const POOL_CEILING: u32 = 100;
/// Compiled ceiling of the fleet's share, percent.
const FLEET_CEILING: u32 = 50;
/// How long an approval counts.
pub(super) const APPROVED_FOR: Millis = Millis::minutes(60);
/// An approval that nobody gave is forgotten after this.
const WAITING: Millis = Millis::minutes(60 * 24);

/// May one more node of the pool go?
#[must_use]
pub(super) fn allows(
    acts: &BreakerRecord,
    limits: &Limits,
    pool: &PoolId,
    fleet: u32,
    now: UnixMs,
) -> Result<(), String> {
    let within = |window: Millis, which: &dyn Fn(&PoolId) -> bool| {
        let count = acts
            .acts
            .iter()
            .filter(|(at, pool)| now.since(*at) < window && which(pool))
            .count();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    let most = limits.breaker_pool.min(POOL_CEILING);
    if within(POOL_WINDOW, &|found| found == pool) >= most {
        return Err(format!("{most} nodes of pool {pool} went within 10 min"));
    }
    let hour = within(FLEET_WINDOW, &|_| true);
    let percent = limits.breaker_fleet_percent.min(FLEET_CEILING);
    // Of what there was an hour ago: what is there now and what went since.
    let share = u64::from(fleet.saturating_add(hour)) * u64::from(percent);
    let most = u32::try_from(share.div_ceil(100)).unwrap_or(u32::MAX);
    if hour >= most {
        return Err(format!(
            "{hour} nodes, {percent} % of the fleet, went within an hour"
        ));
    }
    Ok(())
}

impl Control {
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
        acts.acts
            .retain(|(at, _)| round.now.since(*at) < FLEET_WINDOW);
        let fleet = present(round);
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
                id: format!("{pool}-{:06x}", rand::random::<u32>() & 0xff_ffff),
                pool: pool.clone(),
                nodes: Vec::new(),
                message: String::new(),
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
        let count = record.nodes.len();
        let noun = if count == 1 { "node" } else { "nodes" };
        record.message = format!("the breaker holds {count} {noun} ({why})");
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

    /// Forgets approvals that are over, and those whose nodes are gone.
    pub(super) async fn keep_approvals(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let over: Vec<String> = round
            .ledger
            .approvals
            .values()
            .filter(|held| {
                let approval = &held.value;
                let expired = match &approval.approved {
                    Some((_, at)) => round.now.since(*at) >= APPROVED_FOR,
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
        Ok(())
    }
}

/// Machines in pools of ours, whether an agent speaks for them or not.
pub(super) fn present(round: &Round) -> u32 {
    let found = round.fleet.iter().filter(|node| {
        node.pool.is_some() && !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off)
    });
    u32::try_from(found.count()).unwrap_or(u32::MAX)
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

/// Given, and not over.
pub(super) fn is_valid(approval: &ApprovalRecord, now: UnixMs) -> bool {
    approval
        .approved
        .as_ref()
        .is_some_and(|(_, at)| now.since(*at) < APPROVED_FOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pool: u32, percent: u32) -> Limits {
        Limits {
            breaker_pool: pool,
            breaker_fleet_percent: percent,
            ..Limits::default()
        }
    }

    fn acts(count: usize, at: u64) -> BreakerRecord {
        BreakerRecord {
            acts: vec![(UnixMs(at), PoolId::from("a")); count],
        }
    }

    #[test]
    fn i14_bounded_destruction_per_pool_and_fleet() {
        let a = PoolId::from("a");
        let b = PoolId::from("b");
        let now = UnixMs(3_600_000);
        let ok = |acts: &BreakerRecord, limits: &Limits, pool: &PoolId, fleet, now| {
            allows(acts, limits, pool, fleet, now).is_ok()
        };
        let wide = limits(3, 50);
        assert!(ok(&acts(2, now.0), &wide, &a, 100, now));
        assert!(!ok(&acts(3, now.0), &wide, &a, 100, now));
        assert!(ok(&acts(3, now.0), &wide, &b, 100, now), "another pool");
        let later = now.after(POOL_WINDOW);
        assert!(
            ok(&acts(3, now.0), &wide, &a, 100, later),
            "ten minutes later"
        );
        // 20 % of 10: two within the hour, whatever the pool's own limit is.
        let fleet = limits(100, 20);
        assert!(ok(&acts(1, now.0), &fleet, &b, 9, now));
        assert!(!ok(&acts(2, now.0), &fleet, &b, 8, now));
        // The compiled ceilings hold against any config.
        let mad = limits(100_000, 100);
        assert!(!ok(&acts(5, now.0), &mad, &b, 5, now));
        assert!(!ok(&acts(100, now.0), &mad, &a, 10_000, now));
    }
}
