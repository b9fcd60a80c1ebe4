//! Nodes that join and instances that end: matched with their launch, their assignments moved or dropped.

use super::{count_miss, joined_count, life};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::orders::DROVER;
use crate::control::requests::drop_assignments;
use crate::control::tx::Tx;
use crate::ports::actuate::{InstanceState, Way};
use crate::records::{
    AssignmentTarget, DrainStep, LaunchRecord, LaunchState, NodeRecord, RequestRecord,
};
use drover_core::model::{InstanceId, NodeId, PoolId, PoolKind};
use drover_core::rules::launch::{Event, Stage, step};

/// An instance of a node counts as ended after it was absent from so many good readings in a row.
const ABSENT: u32 = 3;

impl Control {
    /// Ties nodes that have enrolled to their instance and launch.
    pub(in crate::control) async fn take_joins(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        struct Join {
            node: NodeId,
            name: String,
            pool: Option<PoolId>,
            instance: Option<InstanceId>,
            record: NodeRecord,
        }
        let joins: Vec<Join> = round
            .fleet
            .iter()
            .filter_map(|node| {
                let record = node.record.clone()?;
                let heard = node.agent.as_ref().is_some_and(|agent| agent.connected);
                let tied = record.launch.is_some() || self.seen.joined.contains(&node.id);
                let changed = record.instance != node.instance_id && node.instance_id.is_some();
                let back = record.off && heard;
                let first_ready = record.ready_at.is_none() && node.is_ready() && heard;
                (heard && (!tied || changed || back || first_ready)).then(|| Join {
                    node: node.id.clone(),
                    name: node.name.clone(),
                    pool: node.pool.clone(),
                    instance: node.instance_id.clone(),
                    record,
                })
            })
            .collect();
        for join in joins {
            let is_ready = round.node(&join.node).is_some_and(|node| node.is_ready());
            let mut tx = Tx::new();
            let mut record = join.record.clone();
            let launch = (record.launch.is_none())
                .then(|| find_launch(round, join.pool.as_ref(), join.instance.as_ref()))
                .flatten();
            let late = launch
                .as_ref()
                .is_some_and(|launch| launch.state == LaunchState::Missed);
            if let (Some(mut launch), Some(instance)) = (launch, join.instance.clone()) {
                let place = joined_count(&launch);
                let spare = late.then(|| last_awaited(round, &launch)).flatten();
                match spare {
                    // Given up, and here all the same: what waits for its replacement need not wait.
                    Some((other, place)) => {
                        move_assignments(round, &mut tx, &other, place, &join.node);
                    }
                    None => move_assignments(round, &mut tx, &launch, place, &join.node),
                }
                let (after, _) = step(life(&launch), Event::Joined, round.now);
                launch.joined.push((instance, join.node.clone()));
                record.launch = Some(launch.id.clone());
                self.learn_boot(round, &mut tx, &launch);
                let id = launch.id.clone();
                if after.stage == Stage::Done {
                    tx.delete_launch(&round.ledger, &id);
                } else {
                    tx.put_launch(&round.ledger, &id, launch);
                }
            }
            if join.instance.is_some() {
                record.instance = join.instance.clone();
            }
            record.off = false;
            // After a restart everything joins again in memory: only a first time is news.
            if join.record.ready_at.is_none() && self.seen.joined.insert(join.node.clone()) {
                tx.event(Happening::Joined {
                    node: join.node.clone(),
                    name: join.name.clone(),
                    pool: join.pool,
                    late,
                });
            }
            if is_ready && record.ready_at.is_none() {
                record.ready_at = Some(round.now);
                tx.event(Happening::Ready {
                    node: join.node.clone(),
                    name: join.name,
                });
            }
            self.seen.joined.insert(join.node.clone());
            if record != join.record {
                tx.put_node(&round.ledger, &join.node, record);
            }
            if !tx.is_empty() {
                self.commit(round, tx).await?;
            }
        }
        Ok(())
    }

    /// A success clears the misses of a pool, and teaches how long a boot takes.
    fn learn_boot(&self, round: &Round, tx: &mut Tx, launch: &LaunchRecord) {
        let (mut settings, _) = round.ledger.pool(&launch.pool);
        if settings.misses > 0 {
            tx.event(Happening::PoolClear {
                pool: launch.pool.clone(),
                why: "a node of it joined".to_owned(),
            });
        }
        settings.misses = 0;
        settings.missed_with = None;
        settings.boots_ms.push(round.now.since(launch.asked).0);
        let extra = settings.boots_ms.len().saturating_sub(20);
        settings.boots_ms.drain(..extra);
        tx.put_pool(&round.ledger, &launch.pool, settings);
    }

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
            _ => Happening::Gone {
                node: id.clone(),
                name: name.to_owned(),
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

/// The launch that a node is the result of: the one that names its instance, else (when the way tells no ids) the oldest
/// of its pool with open places.
fn find_launch(
    round: &Round,
    pool: Option<&PoolId>,
    instance: Option<&InstanceId>,
) -> Option<LaunchRecord> {
    let (pool, instance) = (pool?, instance?);
    let mut all: Vec<&LaunchRecord> = round
        .ledger
        .launches
        .values()
        .map(|held| &held.value)
        .filter(|launch| launch.pool == *pool && launch.state != LaunchState::Intended)
        .collect();
    all.sort_by_key(|launch| (launch.state, launch.asked, launch.id.clone()));
    let named = all
        .iter()
        .find(|launch| launch.instances.contains(instance) || launch.hosts.contains(instance));
    let open = || {
        all.iter().find(|launch| {
            launch.way == Some(Way::SetDesiredCapacity)
                && joined_count(launch) < launch.granted.unwrap_or(launch.count)
        })
    };
    named.or_else(open).map(|launch| (*launch).clone())
}

/// The place that is filled last among those that requests hold on coming nodes of the same offering.
fn last_awaited(round: &Round, late: &LaunchRecord) -> Option<(LaunchRecord, u32)> {
    let held = round.ledger.requests.values();
    let places = held.flat_map(|held| &held.value.assignments);
    places
        .filter_map(|assignment| match &assignment.target {
            AssignmentTarget::Launch(id, place) => {
                let launch = &round.ledger.launches.get(id)?.value;
                let alike = launch.pool == late.pool && launch.offering == late.offering;
                (alike && launch.id != late.id).then(|| (launch.clone(), *place))
            }
            AssignmentTarget::Node(_) => None,
        })
        .max_by_key(|(launch, place)| (launch.asked, launch.id.clone(), *place))
}

/// What requests hold on the n-th node of a launch they now hold on this node.
fn move_assignments(round: &Round, tx: &mut Tx, launch: &LaunchRecord, place: u32, node: &NodeId) {
    let from = AssignmentTarget::Launch(launch.id.clone(), place);
    let touched: Vec<RequestRecord> = round
        .ledger
        .requests
        .values()
        .filter(|held| {
            held.value
                .assignments
                .iter()
                .any(|assignment| assignment.target == from)
        })
        .map(|held| held.value.clone())
        .collect();
    for mut request in touched {
        for assignment in &mut request.assignments {
            if assignment.target == from {
                assignment.target = AssignmentTarget::Node(node.clone());
            }
        }
        let name = request.name.clone();
        tx.put_request(&round.ledger, &name, request);
    }
}
