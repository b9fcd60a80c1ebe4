//! Instances that this store launched and that never joined: ended at twice the deadline (DESIGN 5, never joined).
//!
//! Called after leaving. Never for an instance that this store did not launch, never after a restore, never more than one
//! in twenty of a pool within ten minutes without a person.

use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::tx::Tx;
use crate::ports::actuate::InstanceState;
use crate::records::{LaunchState, keys};
use drover_core::model::{InstanceId, LaunchId, Millis, Mode, NodeId, PoolId};

/// Percent of a pool within [`WINDOW`].
const PERCENT: u32 = 5;
const WINDOW: Millis = Millis::minutes(10);

struct Dead {
    launch: LaunchId,
    pool: PoolId,
    instance: InstanceId,
}

impl Control {
    pub(super) async fn reap(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let dead = self.dead(round);
        if dead.is_empty() {
            return Ok(());
        }
        // After a restore the store does not know who has joined since: nothing older is reaped.
        let restored = self.journal.store().get(keys::RESTORED).await?;
        let since = restored
            .and_then(|entry| serde_json::from_slice::<u64>(&entry.value).ok())
            .unwrap_or(0);
        for dead in dead {
            let launched = round.ledger.launches.get(&dead.launch);
            if launched.is_none_or(|held| held.value.fence < since) {
                continue;
            }
            let node = NodeId(format!("instance/{}", dead.instance));
            let mut tx = Tx::new();
            let allowed = self.within_share(round, &dead.pool)
                || round.ledger.approvals.values().any(|held| {
                    held.value.nodes.contains(&node)
                        && crate::control::breaker::is_valid(&held.value, round.now)
                });
            if !allowed {
                let why = format!("{PERCENT} % of the pool that never joined went within 10 min");
                self.ask_person(
                    round,
                    &mut tx,
                    &dead.pool,
                    std::slice::from_ref(&node),
                    &why,
                );
                self.commit(round, tx).await?;
                continue;
            }
            let passed = self.pass_breaker(round, &mut tx, &dead.pool, &node);
            if passed {
                tx.event(Happening::Leaving {
                    node: node.clone(),
                    instance: dead.instance.clone(),
                    pool: dead.pool.clone(),
                });
                tx.audit(
                    "node.reap",
                    node.as_str(),
                    format!("launch {} never joined", dead.launch),
                );
            }
            if self.commit(round, tx).await?.is_none() || !passed {
                continue;
            }
            let kind = self.config.pool(&dead.pool).map(|pool| pool.kind());
            let Some(actuator) = kind.and_then(|kind| self.pools.actuator(kind)) else {
                continue;
            };
            if let Err(error) = actuator.leave(&dead.pool, &dead.instance).await {
                round.events.push(Happening::LeaveFailed {
                    node,
                    kind: error.kind,
                    message: error.message,
                });
            }
            self.seen.reaped.insert(dead.instance, round.mono);
            self.pools.stale(&dead.pool);
        }
        Ok(())
    }

    fn dead(&self, round: &Round) -> Vec<Dead> {
        let mut found = Vec::new();
        for held in round.ledger.launches.values() {
            let launch = &held.value;
            let wait = launch.deadline.since(launch.asked);
            let due = launch.state == LaunchState::Missed
                && round.now >= launch.deadline.after(wait)
                && self.mode(round, &launch.pool) == Mode::Full
                && self.removal_forbidden(round, &launch.pool).is_none();
            if !due {
                continue;
            }
            for instance in &launch.instances {
                let id = NodeId(format!("instance/{instance}"));
                // Only what the provider shows and no agent has ever spoken for.
                let Some(node) = round.node(&id) else {
                    continue;
                };
                let runs = node.instance.as_ref().is_some_and(|found| {
                    matches!(found.state, InstanceState::Pending | InstanceState::Running)
                });
                let called = self
                    .seen
                    .reaped
                    .get(instance)
                    .is_some_and(|at| round.mono.0.saturating_sub(at.0) < Millis::minutes(1).0);
                if runs && !called {
                    found.push(Dead {
                        launch: launch.id.clone(),
                        pool: launch.pool.clone(),
                        instance: instance.clone(),
                    });
                }
            }
        }
        found
    }

    fn within_share(&self, round: &Round, pool: &PoolId) -> bool {
        let all = round
            .fleet
            .iter()
            .filter(|node| node.pool.as_ref() == Some(pool))
            .count();
        let most = u64::try_from(all)
            .unwrap_or(u64::MAX)
            .saturating_mul(u64::from(PERCENT))
            .div_ceil(100);
        let gone = round.ledger.breaker.as_ref().map_or(0, |held| {
            held.value
                .acts
                .iter()
                .filter(|(at, of)| of == pool && round.now.since(*at) < WINDOW)
                .count()
        });
        u64::try_from(gone).unwrap_or(u64::MAX) < most
    }
}
