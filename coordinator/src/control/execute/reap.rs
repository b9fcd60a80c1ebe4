//! Instances that this store launched and that never joined: ended at twice the deadline (DESIGN 5, never joined).
//!
//! Called after leaving. Never for an instance that this store did not launch, never after a restore, never more than one
//! in twenty of a pool within an hour without a person.

use crate::config::youngest_reaped;
use crate::control::breaker::is_valid;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::deeds::{Deed, Done};
use crate::control::events::Happening;
use crate::control::launches::life;
use crate::control::tx::Tx;
use crate::ports::actuate::{InstanceState, Way};
use crate::records::keys;
use drover_core::model::{InstanceId, LaunchId, Millis, Mode, NodeId, PoolId};
use drover_core::rules::launch::{Act, Event, NotReaped, ReapFacts, may_reap, step};

/// The share of a pool counts within this.
const WINDOW: Millis = Millis::minutes(60);

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
            let node = NodeId(format!("instance/{}", dead.instance));
            let launched = round.ledger.launches.get(&dead.launch);
            let approved =
                round.ledger.approvals.values().any(|held| {
                    held.value.nodes.contains(&node) && is_valid(&held.value, round.now)
                });
            let facts = ReapFacts {
                launched_here: launched.is_some_and(|held| held.value.fence >= since),
                // It is in the fleet as an instance that no record speaks for.
                session_ever: Some(false),
                // No source of this version has work of its own: requests hold joined nodes only.
                work_there: Some(false),
                adopting: self.mode(round, &dead.pool) == Mode::Observe,
                pool_size: self.pool_size(round, &dead.pool),
                reaped: self.went(round, &dead.pool),
                approved,
            };
            let mut tx = Tx::new();
            match may_reap(facts) {
                Ok(()) => {}
                Err(why @ NotReaped::TooMany) => {
                    let nodes = std::slice::from_ref(&node);
                    self.ask_person(round, &mut tx, &dead.pool, nodes, &why.to_string());
                    self.commit(round, tx).await?;
                    continue;
                }
                Err(why) => {
                    tracing::debug!(%node, %why, "not reaped");
                    continue;
                }
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
            self.seen.reaped.insert(dead.instance.clone(), round.mono);
            self.deeds
                .begin(Deed::Reap(dead.instance.clone()), async move {
                    let result = actuator.leave(&dead.pool, &dead.instance).await;
                    Done::Reaped(node, dead.pool, result)
                });
        }
        self.take_deeds(round).await
    }

    fn dead(&self, round: &Round) -> Vec<Dead> {
        let mut found = Vec::new();
        for held in round.ledger.launches.values() {
            let launch = &held.value;
            let (_, acts) = step(life(launch), Event::Tick, round.now);
            let due = acts.contains(&Act::Reap)
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
                let at_work = self.is_at_work(&Deed::Reap(instance.clone()));
                let booting = round.now.since(launch.asked) < youngest_reaped(&node.instance_type);
                // What a raised capacity brings may come long after the ask: it has as much time from then on.
                let late = launch.way == Some(Way::SetDesiredCapacity)
                    && node.instance.as_ref().is_none_or(|found| {
                        let twice = launch.deadline.since(launch.asked).0.saturating_mul(2);
                        found
                            .launched
                            .is_none_or(|at| round.now.since(at) < Millis(twice))
                    });
                if runs && !called && !late && !at_work && !booting {
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

    fn pool_size(&self, round: &Round, pool: &PoolId) -> u32 {
        let all = round.fleet.iter();
        let mine = all.filter(|node| node.pool.as_ref() == Some(pool)).count();
        u32::try_from(mine).unwrap_or(u32::MAX)
    }

    /// Nodes of the pool that went within the hour, for whatever reason.
    fn went(&self, round: &Round, pool: &PoolId) -> u32 {
        let gone = round.ledger.breaker.as_ref().map_or(0, |held| {
            let acts = held.value.acts.iter();
            acts.filter(|(at, of)| of == pool && round.now.since(*at) < WINDOW)
                .count()
        });
        u32::try_from(gone).unwrap_or(u32::MAX)
    }
}
