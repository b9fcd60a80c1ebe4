//! Nodes that join: matched with their launch, and what waits for them moved to them.

use super::likeness::{self, Misfit};
use super::ties::came_since;
use super::{joined_count, life, open_places};
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::events::Happening;
use crate::control::failures::way_on_unlike;
use crate::control::fleet::FleetNode;
use crate::control::replace::note_joined;
use crate::control::tx::Tx;
use crate::ports::actuate::Way;
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState, NodeRecord, PoolRecord};
use drover_core::model::{InstanceId, NodeId, PoolId};
use drover_core::rules::launch::{Event, MISSES_TO_PAUSE, Stage, step};

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
            let Some(node) = round.node(&join.node).cloned() else {
                continue;
            };
            let is_ready = node.is_ready();
            let first_ready = is_ready && join.record.ready_at.is_none();
            let mut misfits = Vec::new();
            let mut settings = join.pool.as_ref().map(|pool| round.ledger.pool(pool).0);
            let mut tx = Tx::new();
            let mut record = join.record.clone();
            let launch = (record.launch.is_none())
                .then(|| find_launch(round, join.pool.as_ref(), join.instance.as_ref()))
                .flatten();
            let asked = launch.as_ref().map(|launch| launch.offering.clone());
            let late = launch
                .as_ref()
                .is_some_and(|launch| launch.state == LaunchState::Missed);
            if let (Some(mut launch), Some(instance)) = (launch, join.instance.clone()) {
                let place = joined_count(&launch);
                let spare = late.then(|| last_awaited(round, &launch)).flatten();
                match spare {
                    // Given up, and here all the same: what waits for its replacement need not wait.
                    Some((other, place)) => {
                        misfits = take_over(round, &mut tx, &launch_place(&other, place), &node);
                    }
                    None => {
                        misfits = take_over(round, &mut tx, &launch_place(&launch, place), &node);
                    }
                }
                let (after, _) = step(life(&launch), Event::Joined, round.now);
                launch.joined.push((instance, join.node.clone()));
                note_joined(round, &mut tx, &launch.id, &join.node);
                record.launch = Some(launch.id.clone());
                if let Some(settings) = &mut settings {
                    learn_boot(round, &launch, settings);
                }
                let id = launch.id.clone();
                if after.stage == Stage::Done {
                    tx.delete_launch(&round.ledger, &id);
                } else {
                    tx.put_launch(&round.ledger, &id, launch);
                }
            }
            if first_ready && record.launch == join.record.launch {
                // What came with its launch was looked at while its GPUs may not have been there.
                let here = AssignmentTarget::Node(join.node.clone());
                misfits = take_over(round, &mut tx, &here, &node);
            }
            if let (Some(pool), Some(mut settings)) = (&join.pool, settings) {
                let before = round.ledger.pool(pool).0;
                if first_ready {
                    clear_misses(&mut tx, pool, &mut settings);
                }
                if (first_ready || !misfits.is_empty())
                    && likeness::learn(round, &mut settings, pool, &node, asked.as_ref(), &misfits)
                {
                    tx.event(mismatch(round, pool, &settings));
                }
                if settings != before {
                    tx.put_pool(&round.ledger, pool, settings);
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
}

/// A success clears the misses of a pool: one that joins may be as broken as one that does not.
fn clear_misses(tx: &mut Tx, pool: &PoolId, settings: &mut PoolRecord) {
    if settings.misses >= MISSES_TO_PAUSE {
        tx.event(Happening::PoolClear {
            pool: pool.clone(),
            why: "a node of it is ready".to_owned(),
        });
    }
    settings.misses = 0;
    settings.missed_with = None;
}

/// How long a boot takes.
fn learn_boot(round: &Round, launch: &LaunchRecord, settings: &mut PoolRecord) {
    settings.boots_ms.push(round.now.since(launch.asked).0);
    let extra = settings.boots_ms.len().saturating_sub(20);
    settings.boots_ms.drain(..extra);
}

fn mismatch(round: &Round, pool: &PoolId, settings: &PoolRecord) -> Happening {
    let reading = round.readings.get(pool);
    let offerings = reading.map_or(&[][..], |reading| reading.offerings.as_slice());
    let told = likeness::told(settings, offerings).unwrap_or_default();
    Happening::TemplateMismatch {
        pool: pool.clone(),
        message: format!("{told}; {}", way_on_unlike(pool)),
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

fn launch_place(launch: &LaunchRecord, place: u32) -> AssignmentTarget {
    AssignmentTarget::Launch(launch.id.clone(), place)
}

/// What requests hold in a place they now hold on this node, unless it cannot serve them: then they wait again.
fn take_over(round: &Round, tx: &mut Tx, from: &AssignmentTarget, node: &FleetNode) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    for (name, held) in &round.ledger.requests {
        let mut request = held.value.clone();
        let spec = request.spec.clone();
        let (mut lost, mut why) = (0_u32, None);
        request.assignments.retain_mut(|found| {
            if found.target != *from {
                return true;
            }
            found.target = AssignmentTarget::Node(node.id.clone());
            let Some(misfit) = likeness::misfit(node, &spec, found) else {
                return true;
            };
            lost = lost.saturating_add(found.units);
            why = Some(misfit.why.clone());
            misfits.push(misfit);
            false
        });
        if let Some(why) = why {
            tx.event(Happening::RequestLost {
                request: name.clone(),
                units: lost,
                why,
            });
        }
        if request != held.value {
            tx.put_request(&round.ledger, name, request);
        }
    }
    misfits
}
