//! Instances that end, and hosts that are powered off: of launches before they joined, and of nodes. What they held is
//! dropped, and their records go.

use super::life;
use super::misses::count_miss;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::orders::DROVER;
use crate::control::requests::drop_assignments;
use crate::control::tx::Tx;
use crate::ports::actuate::{InstanceState, Way};
use crate::records::{AssignmentTarget, DrainStep, LaunchRecord, LaunchState};
use drover_core::model::{InstanceId, NodeId, PoolKind};
use drover_core::rules::launch::{Event, Stage, step};

/// An instance of a node counts as ended after it was absent from so many good readings in a row.
const ABSENT: u32 = 3;

impl Control {
    /// Instances that ended: of launches before they joined, and of nodes, by our hand or without it.
    pub(in crate::control) async fn take_losses(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        self.lose_unjoined(round).await?;
        let mut gone = Vec::new();
        for node in &round.fleet {
            let (Some(pool), Some(instance)) = (&node.pool, &node.instance_id) else {
                continue;
            };
            let kind = self.config.pool(pool).map(|pool| pool.kind());
            if node.record.is_none() || kind == Some(PoolKind::Static) || !round.read.contains(pool)
            {
                continue;
            }
            let heard = node.agent.as_ref().is_some_and(|agent| agent.connected);
            let leaving = node
                .drain
                .as_ref()
                .is_some_and(|drain| drain.step == DrainStep::Leaving);
            let Some(watch) = self.pools.watch_mut(pool) else {
                continue;
            };
            let over = match &node.instance {
                Some(found) => {
                    watch.absent.remove(instance);
                    found.state == InstanceState::Gone
                }
                None => {
                    let count = watch.absent.entry(instance.clone()).or_default();
                    *count += 1;
                    let after_call = self
                        .seen
                        .leave_read
                        .get(&node.id)
                        .is_some_and(|at| watch.readings > *at);
                    (leaving && after_call) || (!heard && *count >= ABSENT)
                }
            };
            if over {
                gone.push((
                    node.id.clone(),
                    node.name.clone(),
                    instance.clone(),
                    leaving,
                ));
            }
        }
        for (id, name, instance, leaving) in gone {
            self.forget(round, &id, &name, Some(instance), leaving)
                .await?;
        }
        Ok(())
    }

    /// The record goes last: everything of a node that is gone leaves the store.
    async fn forget(
        &mut self,
        round: &mut Round,
        id: &NodeId,
        name: &str,
        instance: Option<InstanceId>,
        expected: bool,
    ) -> Result<(), CycleError> {
        let mut tx = Tx::new();
        let why = format!("{name} is gone");
        drop_assignments(
            round,
            &mut tx,
            &why,
            |target| matches!(target, AssignmentTarget::Node(node) if node == id),
        );
        tx.delete_node(&round.ledger, id);
        tx.delete_order(&round.ledger, id);
        tx.delete_drain(&round.ledger, id);
        tx.delete_idle(&round.ledger, id);
        tx.event(match instance {
            Some(instance) if !expected => Happening::Vanished {
                node: id.clone(),
                name: name.to_owned(),
                instance,
            },
            instance => Happening::Gone {
                node: id.clone(),
                name: name.to_owned(),
                instance,
            },
        });
        tx.audit("node.gone", id.as_str(), name.to_owned());
        if self.commit(round, tx).await?.is_some() {
            self.link.forget(id);
            self.seen.leave_called.remove(id);
            self.seen.leave_read.remove(id);
            self.seen.sent.remove(id);
            self.seen.joined.remove(id);
            round.again = true;
        }
        Ok(())
    }

    /// Instances of a launch that ended before they joined are no longer coming.
    async fn lose_unjoined(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut shrunk = Vec::new();
        for held in round.ledger.launches.values() {
            let launch = &held.value;
            if launch.state == LaunchState::Intended || !round.read.contains(&launch.pool) {
                continue;
            }
            let Some(reading) = round.readings.get(&launch.pool) else {
                continue;
            };
            if launch.way == Some(Way::PowerOn) {
                continue;
            }
            let ended: Vec<InstanceId> = launch
                .instances
                .iter()
                .filter(|id| !launch.joined.iter().any(|(joined, _)| joined == *id))
                .filter(|id| {
                    reading.instances.iter().any(|instance| {
                        instance.id == **id
                            && matches!(
                                instance.state,
                                InstanceState::Gone | InstanceState::Leaving
                            )
                    })
                })
                .cloned()
                .collect();
            if !ended.is_empty() {
                shrunk.push((launch.clone(), ended));
            }
        }
        for (mut launch, ended) in shrunk {
            let count = u32::try_from(ended.len()).unwrap_or(u32::MAX);
            launch.instances.retain(|id| !ended.contains(id));
            let (after, _) = step(life(&launch), Event::Lost(count), round.now);
            let left = after.granted.unwrap_or(0);
            launch.granted = Some(left);
            let id = launch.id.clone();
            let mut tx = Tx::new();
            drop_assignments(
                round,
                &mut tx,
                "the instances that they were to run on ended before they joined",
                |target| matches!(target, AssignmentTarget::Launch(of, n) if *of == id && *n >= left),
            );
            if launch.state == LaunchState::Asked {
                tx.event(Happening::LaunchMissed {
                    pool: launch.pool.clone(),
                    launch: id.clone(),
                    missing: count,
                });
            }
            if after.stage == Stage::Done && ended_by_themselves(round, &launch, &ended) {
                count_miss(round, &mut tx, &launch.pool);
            }
            if after.stage == Stage::Done {
                tx.delete_launch(&round.ledger, &id);
            } else {
                tx.put_launch(&round.ledger, &id, launch);
            }
            self.commit(round, tx).await?;
            round.again = true;
        }
        Ok(())
    }

    /// A powered-off host is off, not gone: its record stays, the drain is over.
    pub(in crate::control) async fn take_off(
        &mut self,
        round: &mut Round,
        id: &NodeId,
    ) -> Result<(), CycleError> {
        let Some(node) = round.node(id).cloned() else {
            return Ok(());
        };
        let Some(mut record) = node.record.clone() else {
            return Ok(());
        };
        record.off = true;
        record.launch = None;
        let mut tx = Tx::new();
        let order = crate::control::orders::active(
            node.order.as_ref(),
            node.highest_epoch(),
            "powered off",
        );
        tx.put_node(&round.ledger, id, record);
        tx.put_order(&round.ledger, id, order);
        tx.delete_drain(&round.ledger, id);
        tx.delete_idle(&round.ledger, id);
        tx.event(Happening::Gone {
            node: id.clone(),
            name: node.name,
            instance: node.instance_id,
        });
        tx.audit("node.off", id.as_str(), DROVER);
        self.commit(round, tx).await?;
        self.seen.leave_called.remove(id);
        Ok(())
    }
}

/// None of a launch joined, and they ended in their boot for a reason that says nothing about capacity: as much a miss as
/// one that runs and never joins.
fn ended_by_themselves(round: &Round, launch: &LaunchRecord, ended: &[InstanceId]) -> bool {
    let Some(reading) = round.readings.get(&launch.pool) else {
        return false;
    };
    let mut dead = reading.dead.iter().filter(|dead| ended.contains(&dead.id));
    launch.state == LaunchState::Asked
        && launch.joined.is_empty()
        && dead.any(|dead| dead.kind.is_none())
}
