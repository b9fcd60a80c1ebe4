//! Instances of a launch whose way tells no ids (a raised desired capacity): found among the group's members.
//!
//! Called by the cycle after answers were taken and before joins. A member is a launch's own only when it can be nobody
//! else's: launched since the ask, not there before it, and no more of them than places are open. **Invariant:** where
//! more came or is wanted than we asked for, nothing that cannot be told apart is claimed, so that it is never reaped.

use super::life;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::tx::Tx;
use crate::control::upkeep::{CLOCK_SLACK, lives};
use crate::ports::actuate::{Instance, PoolReading, Way};
use crate::records::{LaunchRecord, LaunchState};
use drover_core::model::{InstanceId, PoolId, UnixMs};
use drover_core::rules::launch::{Event, Stage, step};
use std::collections::BTreeSet;

/// Most members that an intent notes as there already: a record has its limit.
const NOTED: usize = 1_000;

/// Places of a launch of which no instance is known.
pub(in crate::control) fn open_places(launch: &LaunchRecord) -> u32 {
    let claimed = u32::try_from(claimed(launch).count()).unwrap_or(u32::MAX);
    launch
        .granted
        .unwrap_or(launch.count)
        .saturating_sub(claimed)
}

/// Members of a pool so young that a later look could take them for what is asked for now.
pub(in crate::control) fn young(round: &Round, pool: &PoolId) -> Vec<InstanceId> {
    let Some(reading) = round.readings.get(pool) else {
        return Vec::new();
    };
    let from = UnixMs(round.now.0.saturating_sub(CLOCK_SLACK.0));
    let all = || reading.instances.iter().filter(lives);
    let known = all().filter(|found| found.launched.is_some_and(|at| at >= from));
    let unknown = all().filter(|found| found.launched.is_none());
    let ids = known.chain(unknown).map(|found| found.id.clone());
    ids.take(NOTED).collect()
}

/// Whether a member came since the ask; of one whose launch is not known nobody can say.
pub(super) fn came_since(launch: &LaunchRecord, found: &Instance) -> bool {
    let from = launch.asked.0.saturating_sub(CLOCK_SLACK.0);
    found.launched.is_some_and(|at| at.0 >= from) && !launch.before.contains(&found.id)
}

impl Control {
    /// Ties what has appeared to the launches that it was asked by.
    pub(in crate::control) async fn tie_instances(
        &mut self,
        round: &mut Round,
    ) -> Result<(), CycleError> {
        let read: Vec<PoolId> = round.read.iter().cloned().collect();
        for pool in read {
            for launch in ties(round, &pool) {
                let id = launch.id.clone();
                let mut tx = Tx::new();
                let (after, _) = step(
                    life(&launch),
                    Event::Granted(launch.granted.unwrap_or(launch.count)),
                    round.now,
                );
                if after.stage == Stage::Done {
                    tx.delete_launch(&round.ledger, &id);
                } else {
                    tx.put_launch(&round.ledger, &id, launch);
                }
                self.commit(round, tx).await?;
            }
        }
        Ok(())
    }
}

/// Launches of a pool of which more is known now.
fn ties(round: &Round, pool: &PoolId) -> Vec<LaunchRecord> {
    let Some(reading) = round.readings.get(pool) else {
        return Vec::new();
    };
    let mine = || {
        let all = round.ledger.launches.values().map(|held| &held.value);
        all.filter(|launch| launch.pool == *pool)
    };
    let mut open: Vec<LaunchRecord> = mine()
        .filter(|launch| {
            launch.way == Some(Way::SetDesiredCapacity)
                && launch.state != LaunchState::Intended
                && open_places(launch) > 0
        })
        .cloned()
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    open.sort_by_key(|launch| (launch.asked, launch.id.clone()));
    let before = open.clone();
    let spoken_for = spoken_for(round, mine());
    let mut loose: Vec<&Instance> = reading
        .instances
        .iter()
        .filter(|found| lives(found) && !spoken_for.contains(&found.id))
        .collect();
    loose.sort_by_key(|found| (found.launched, &found.id));
    // Somebody else's answer is not known, or a member's age: what is new may not be ours.
    let unsure = mine().any(|launch| launch.state == LaunchState::Intended)
        || loose.iter().any(|found| {
            found.launched.is_none() && open.iter().any(|of| !of.before.contains(&found.id))
        });
    if !unsure && is_more_than_asked(&open, mine(), &loose, reading) {
        for launch in &mut open {
            launch.ambiguous = true;
        }
    }
    for launch in &mut open {
        let mut found: Vec<InstanceId> = Vec::new();
        let most = usize::try_from(open_places(launch)).unwrap_or(usize::MAX);
        loose.retain(|instance| {
            let takes = found.len() < most && came_since(launch, instance);
            if takes {
                found.push(instance.id.clone());
            }
            !takes
        });
        let none = found.is_empty();
        if unsure || launch.ambiguous {
            let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
            launch.appeared = launch.appeared.max(count);
        } else {
            launch.appeared = 0;
            launch.instances.extend(found);
        }
        let over = launch.state == LaunchState::Missed && reading.unfilled == 0 && !unsure;
        if over && (none || !launch.ambiguous) {
            // No longer wished for either: nothing more of it can come.
            let places = open_places(launch);
            let granted = launch.granted.unwrap_or(launch.count);
            launch.granted = Some(granted.saturating_sub(places));
        }
    }
    let changed = open.into_iter().zip(before);
    changed
        .filter_map(|(after, before)| (after != before).then_some(after))
        .collect()
}

fn claimed(launch: &LaunchRecord) -> impl Iterator<Item = &InstanceId> {
    let joined = launch.joined.iter().map(|(instance, _)| instance);
    let others = joined.filter(|instance| !launch.instances.contains(instance));
    launch.instances.iter().chain(others)
}

/// Members that have an agent or a launch.
fn spoken_for<'r>(
    round: &'r Round,
    launches: impl Iterator<Item = &'r LaunchRecord>,
) -> BTreeSet<&'r InstanceId> {
    let nodes = round.fleet.iter().filter(|node| node.joined());
    let joined = nodes.filter_map(|node| node.instance_id.as_ref());
    launches.flat_map(claimed).chain(joined).collect()
}

/// Whether more came, or is still wanted, than the launches of which it is known what they bring: somebody else wants
/// more of the group as well.
fn is_more_than_asked<'r>(
    open: &[LaunchRecord],
    all: impl Iterator<Item = &'r LaunchRecord>,
    loose: &[&Instance],
    reading: &PoolReading,
) -> bool {
    let sure = || open.iter().filter(|launch| !launch.ambiguous);
    let came = loose
        .iter()
        .filter(|found| sure().any(|of| came_since(of, found)));
    let places: u32 = sure().map(open_places).sum();
    // Granted by id and not shown yet: wanted as well, and known.
    let unseen = all.flat_map(|launch| &launch.instances).filter(|id| {
        let mut shown = reading.instances.iter();
        !shown.any(|found| found.id == **id)
    });
    let wanted = came.count().saturating_add(size(reading.unfilled));
    places > 0 && wanted > size(places).saturating_add(unseen.count())
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
