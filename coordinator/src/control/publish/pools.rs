//! Pools as they are shown: counts, what stops growth, what holds removal, what never joined.
//!
//! Called by `publish`. Decides nothing.

use super::advice::{unknown_type, unreadable};
use super::rendered;
use super::reserved::shared;
use crate::config::{PoolConfig, youngest_reaped};
use crate::control::cycle::{Control, Round};
use crate::control::events::time;
use crate::control::failures::way_on_unlike;
use crate::control::fleet::FleetNode;
use crate::control::input::coming;
use crate::control::launches::{as_found, told_unlike};
use crate::control::view::PoolView;
use crate::ports::actuate::{InstanceState, PoolReading};
use crate::records::{FreezeRecord, LaunchState, PoolRecord};
use drover_core::model::{Busy, Lifecycle, MicroUsd, Millis, Mode, Planned, PoolId, Stop, UnixMs};
use drover_core::planner::render_stop;
use std::collections::BTreeSet;

/// The freeze that the group's own tag states: it is not in our store, and counts all the same.
fn frozen_by_tag(pool: &PoolConfig, reading: Option<&PoolReading>) -> Option<FreezeRecord> {
    let reading = reading?;
    reading.stops.iter().find_map(|stop| match stop {
        Stop::Frozen { by, why } => Some(FreezeRecord {
            pool: Some(pool.name.clone()),
            by: by.clone(),
            reason: why.clone(),
            since: reading.read_at,
        }),
        _ => None,
    })
}

/// An instance that runs, was asked for, and whose agent did not enrol in time.
pub(super) struct Missed {
    price: MicroUsd,
}

impl Control {
    pub(super) fn pool_views(&self, round: &Round, planned: &Planned) -> Vec<PoolView> {
        let mut views: Vec<PoolView> = self
            .config
            .pools
            .iter()
            .map(|pool| self.pool_view(round, pool, planned))
            .collect();
        views.extend(self.stray_views(round));
        views
    }

    fn pool_view(&self, round: &Round, pool: &PoolConfig, planned: &Planned) -> PoolView {
        let (settings, _) = round.ledger.pool(&pool.name);
        let reading = round.readings.get(&pool.name);
        let mine: Vec<&FleetNode> = round
            .fleet
            .iter()
            .filter(|node| node.pool.as_ref() == Some(&pool.name))
            .collect();
        let count = |which: &dyn Fn(&FleetNode) -> bool| {
            let found = mine.iter().filter(|node| which(node)).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let allowed = settings.max.unwrap_or(pool.max);
        let most = reading
            .and_then(|reading| reading.provider_max)
            .map_or(allowed, |own| own.min(allowed));
        let launches: Vec<_> = round
            .ledger
            .launches
            .values()
            .filter(|held| held.value.pool == pool.name)
            .map(|held| held.value.clone())
            .collect();
        let named: BTreeSet<_> = launches
            .iter()
            .filter(|launch| coming(launch) > 0)
            .flat_map(|launch| launch.instances.clone())
            .collect();
        let mut reasons: Vec<String> = planned
            .report
            .pools
            .iter()
            .filter(|outcome| outcome.pool == pool.name)
            .flat_map(|outcome| rendered(&outcome.reasons, round))
            .collect();
        let stops = self.stops(round, pool);
        let said = |which: &dyn Fn(&Stop) -> bool| -> Vec<String> {
            let found = stops.iter().filter(|stop| which(stop));
            found.map(render_stop).collect()
        };
        let all = said(&|_| true);
        // Told where they belong, not once more.
        reasons.retain(|reason| !all.contains(reason));
        let mut holds = said(&|stop| {
            !is_stop(stop) && !matches!(stop, Stop::Paused { .. } | Stop::Frozen { .. })
        });
        holds.extend(self.waiting_removals(round, &pool.name));
        if let Some(text) = reading.and_then(|reading| unknown_type(pool, reading)) {
            reasons.insert(0, text);
        }
        let missed = self.missed(round, &pool.name);
        if !missed.is_empty() {
            reasons.insert(0, tell_missed(&missed));
        }
        reasons.extend(unlike(round, &pool.name));
        reasons.extend(self.silent(round, &pool.name).told());
        reasons.extend(late_boots(pool, &settings, reading.map(AsRef::as_ref)));
        reasons.extend(reading.and_then(|reading| tell_dead(reading)));
        if let Some(reading) = reading {
            reasons.extend(reading.warnings.iter().cloned());
        }
        // Of a group that is gone its stop says all.
        let error = self
            .pools
            .watch(&pool.name)
            .filter(|watch| watch.gone.is_none() || reading.is_none())
            .and_then(|watch| watch.error.as_ref());
        PoolView {
            name: pool.name.clone(),
            kind: Some(pool.kind()),
            site: Some(pool.site.clone()),
            mode: self.mode(round, &pool.name),
            min: settings.min.unwrap_or(pool.min),
            max: most,
            config_max: Some(allowed).filter(|allowed| *allowed > most),
            spare: settings.spare.unwrap_or(pool.spare),
            nodes: count(&|node| node.joined() && node.lifecycle != Lifecycle::Off),
            ready: count(&FleetNode::is_available),
            idle: count(&|node| {
                node.is_ready()
                    && node.reserved.is_empty()
                    && matches!(node.busy, Busy::Idle { .. })
            }),
            draining: count(&|node| node.drain.is_some()),
            coming: launches.iter().map(coming).sum(),
            unreachable: count(&|node| node.joined() && node.unreachable),
            unmanaged: count(&|node| {
                !node.joined()
                    && matches!(node.lifecycle, Lifecycle::Launched | Lifecycle::Leaving)
                    && node
                        .instance_id
                        .as_ref()
                        .is_some_and(|id| !named.contains(id))
            }),
            paused: said(&|stop| matches!(stop, Stop::Paused { .. })),
            stopped: stops
                .iter()
                .filter(|stop| is_stop(stop))
                .map(|stop| self.stopped(round, pool, stop))
                .collect(),
            holds,
            missed: u32::try_from(missed.len()).unwrap_or(u32::MAX),
            frozen: self
                .freeze_of(round, &pool.name)
                .cloned()
                .or_else(|| frozen_by_tag(pool, reading.map(AsRef::as_ref))),
            read_error: error.map(|error| unreadable(pool, self.mode(round, &pool.name), error)),
            offerings: reading
                .map(|reading| {
                    reading
                        .offerings
                        .iter()
                        .map(|offering| {
                            let memory = round.ledger.memory.get(&offering.id);
                            let mut found = offering.clone();
                            as_found(&settings, &mut found);
                            (found, memory.map(|held| held.value.entry.clone()))
                        })
                        .collect()
                })
                .unwrap_or_default(),
            reasons,
            remarks: reading
                .map(|reading| reading.remarks.clone())
                .into_iter()
                .flatten()
                .chain(shared(round, &pool.name))
                .collect(),
            origin: pool.origin.to_string(),
            orphaned: false,
            misses: settings.misses,
            launches,
        }
    }

    /// Instances of missed launches that run.
    pub(super) fn missed(&self, round: &Round, pool: &PoolId) -> Vec<Missed> {
        round
            .fleet
            .iter()
            .filter(|node| node.pool.as_ref() == Some(pool) && missed_at(round, node).is_some())
            .map(|node| Missed {
                price: node.price.unwrap_or_default(),
            })
            .collect()
    }

    /// What a person is asked about this pool.
    fn waiting_removals(&self, round: &Round, pool: &PoolId) -> Vec<String> {
        let open = round.ledger.approvals.values().map(|held| &held.value);
        open.filter(|approval| approval.pool == *pool && approval.approved.is_none())
            .map(|approval| {
                format!(
                    "no removal: {}; `drover approve {}` allows it",
                    approval.why, approval.id
                )
            })
            .collect()
    }

    /// What becomes of an instance whose agent did not enrol in time.
    pub(super) fn fate(&self, round: &Round, node: &FleetNode) -> Option<String> {
        let (deadline, reaped) = missed_at(round, node)?;
        let pool = node.pool.as_ref()?;
        let missed = format!("missed its deadline at {}", time(deadline));
        if let Some(approval) = crate::control::breaker::waits_for(round, &node.id) {
            let id = &approval.id;
            return Some(format!(
                "{missed}; waits for `drover approve {id}` to be removed"
            ));
        }
        Some(if self.mode(round, pool) != Mode::Full {
            format!("{missed}; it is removed only in mode full")
        } else if round.now < reaped {
            format!("{missed}; is not removed before {}", time(reaped))
        } else if let Some(why) = self.removal_forbidden(round, pool) {
            format!("{missed}; its removal is due and waits: {why}")
        } else {
            format!("{missed}; its removal is due")
        })
    }
}

/// When an instance of a missed launch should have joined, and from when on it may be ended.
fn missed_at(round: &Round, node: &FleetNode) -> Option<(UnixMs, UnixMs)> {
    let runs = node.instance.as_ref().is_some_and(|found| {
        matches!(found.state, InstanceState::Pending | InstanceState::Running)
    });
    if node.joined() || !runs {
        return None;
    }
    let launch = &round.ledger.launches.get(node.launch.as_ref()?)?.value;
    let wait: Millis = launch.deadline.since(launch.asked);
    let youngest = launch.asked.after(youngest_reaped(&node.instance_type));
    let reaped = launch.deadline.after(wait).max(youngest);
    (launch.state == LaunchState::Missed).then_some((launch.deadline, reaped))
}

/// "3 instances never joined and cost 43.20 USD/h".
pub(super) fn tell_missed(missed: &[Missed]) -> String {
    let count = missed.len();
    let cost = missed
        .iter()
        .fold(MicroUsd::ZERO, |sum, found| sum.plus(found.price));
    let (noun, verb) = if count == 1 {
        ("instance", "costs")
    } else {
        ("instances", "cost")
    };
    let cents = cost.0 / 10_000;
    format!(
        "{count} {noun} never joined and {verb} {}.{:02} USD/h",
        cents / 100,
        cents % 100
    )
}

/// What of the pool's nodes is not what its template promises, and how long that counts.
pub(super) fn unlike(round: &Round, pool: &PoolId) -> Option<String> {
    let (settings, _) = round.ledger.pool(pool);
    let told = told_unlike(&settings, &round.readings.get(pool)?.offerings)?;
    Some(format!("{told}; {}", way_on_unlike(pool)))
}

/// "1 member does not run any more and is still counted".
fn tell_dead(reading: &PoolReading) -> Option<String> {
    let first = reading.dead.first()?;
    let (count, noun) = match reading.dead.len() {
        1 => (1, "member does"),
        many => (many, "members do"),
    };
    let why = match first.why.as_str() {
        "" => String::new(),
        why => format!(" ({}: {why})", first.id),
    };
    Some(format!(
        "{count} {noun} not run any more and still count in the group{why}"
    ))
}

/// Nodes that joined took longer than they are waited for.
fn late_boots(
    pool: &PoolConfig,
    settings: &PoolRecord,
    reading: Option<&PoolReading>,
) -> Option<String> {
    let kind = reading.and_then(|reading| reading.offerings.first());
    let deadline = pool.deadline_of(kind.map_or("", |offering| &offering.instance_type));
    let longest = settings.boots_ms.iter().max().copied().map(Millis)?;
    (longest > deadline).then(|| {
        format!(
            "its nodes took up to {} s to join and are waited for {} s: provision_deadline is too short",
            longest.0 / 1_000,
            deadline.0 / 1_000
        )
    })
}

/// Something other than a person's pause or freeze ended growth until it is mended.
const fn is_stop(stop: &Stop) -> bool {
    matches!(
        stop,
        Stop::NeverJoined { .. } | Stop::Failed { .. } | Stop::NotOurs { .. }
    )
}
