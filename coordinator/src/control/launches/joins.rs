//! Nodes that join: matched with their launch, and what waits for them moved to them.

use super::ties::came_since;
use super::{joined_count, life, open_places};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::tx::Tx;
use crate::ports::actuate::Way;
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState, NodeRecord, RequestRecord};
use drover_core::model::{InstanceId, NodeId, PoolId};
use drover_core::rules::launch::{Event, Stage, step};

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
    let shown = round
        .readings
        .get(pool)
        .and_then(|reading| reading.instances.iter().find(|found| found.id == *instance));
    let open = || {
        all.iter().find(|launch| {
            launch.way == Some(Way::SetDesiredCapacity)
                && open_places(launch) > 0
                && shown.is_none_or(|shown| shown.launched.is_none() || came_since(launch, shown))
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
