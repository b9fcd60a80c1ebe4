//! Whose failure it is that a provider reports by itself (a scaling activity, the end of an instance in its boot): the
//! launch that it can only be of, or nobody's that is known.
//!
//! Called by the cycle once instances were tied, and when such failures are taken. **Invariant:** what may as well be of
//! somebody who changed the group beside us is laid to no launch.

use super::{Control, life, seen};
use crate::control::cycle::Round;
use crate::control::upkeep::SKEW;
use crate::ports::actuate::{ProviderFailure, Raise, Trace};
use crate::records::{LaunchRecord, LaunchState};
use drover_core::model::{InstanceId, LaunchId, Millis, PoolId, UnixMs};
use std::collections::BTreeSet;

/// How long a launch that is over is known by its instances: their ends are told late.
const KEPT: Millis = Millis::minutes(10);

/// What is known of a launch for telling whose a failure is; some of it outlives its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::control) struct Trail {
    pool: PoolId,
    asked: UnixMs,
    /// Every instance that was ever known to be its own.
    instances: BTreeSet<InstanceId>,
    /// The size that was asked for it, while some of that has not been seen.
    short: Option<Raise>,
    /// Since when there is no record of it, monotonic.
    over: Option<Millis>,
}

impl Trail {
    fn of(launch: &LaunchRecord) -> Self {
        Self {
            pool: launch.pool.clone(),
            asked: launch.asked,
            instances: BTreeSet::new(),
            short: None,
            over: None,
        }
    }

    fn follow(&mut self, launch: &LaunchRecord) {
        let joined = launch.joined.iter().map(|(instance, _)| instance);
        let all = launch.instances.iter().chain(joined);
        self.instances.extend(all.cloned());
        let missing = |raise: &Raise| seen(launch) < raise.to.saturating_sub(raise.from);
        self.short = launch.raised.filter(missing);
    }

    /// Whether a failure can be of this launch, by its own words.
    fn explains(&self, failure: &ProviderFailure) -> bool {
        match &failure.trace {
            Trace::Absent => false,
            Trace::Instance(id) => self.instances.contains(id),
            // Every node that it tells of is one of those that we asked for.
            Trace::Size {
                there,
                wanted,
                changes,
            } => self.short.is_some_and(|raise| {
                raise.from <= *there
                    && there < wanted
                    && *wanted <= raise.to
                    && changes.iter().all(|change| *change == raise)
                    && is_since(failure, self.asked)
            }),
        }
    }
}

/// Whether it failed after the ask, as far as clocks agree.
pub(in crate::control) fn is_since(failure: &ProviderFailure, asked: UnixMs) -> bool {
    failure.at.0.saturating_add(SKEW.0) >= asked.0
}

/// Whether a launch, or what a launch had coming, may be what failed. `blamed`: whose it is known to be.
pub(in crate::control) fn may_be_of(
    launch: &LaunchRecord,
    failure: &ProviderFailure,
    blamed: Option<&LaunchId>,
) -> bool {
    let beyond = match (&failure.trace, launch.raised) {
        // All that we asked for was there.
        (Trace::Size { there, .. }, Some(raise)) => *there >= raise.to,
        _ => false,
    };
    !beyond && blamed.is_none_or(|id| *id == launch.id) && is_since(failure, launch.asked)
}

/// Nodes of a launch that are to come and of which nothing has been seen.
pub(in crate::control) fn unseen(launch: &LaunchRecord) -> u32 {
    let granted = launch.granted.unwrap_or(launch.count);
    let unseen = granted.saturating_sub(seen(launch));
    unseen.min(life(launch).outstanding())
}

impl Control {
    /// Takes from the launches what tells later whose a failure is.
    pub(in crate::control) fn follow_trails(&mut self, round: &Round) {
        let trails = &mut self.seen.trails;
        for held in round.ledger.launches.values() {
            let launch = &held.value;
            if launch.state == LaunchState::Intended {
                continue;
            }
            let trail = trails.entry(launch.id.clone());
            trail.or_insert_with(|| Trail::of(launch)).follow(launch);
        }
        trails.retain(|id, trail| {
            if round.ledger.launches.contains_key(id) {
                return true;
            }
            let reading = round.readings.get(&trail.pool);
            if reading.is_none_or(|reading| reading.unfilled == 0) {
                // No longer wished for.
                trail.short = None;
            }
            let over = *trail.over.get_or_insert(round.mono);
            round.mono.minus(over) < KEPT
        });
    }

    /// The launch that a failure of a pool can only be of.
    pub(in crate::control) fn blamed(
        &self,
        pool: &PoolId,
        failure: &ProviderFailure,
    ) -> Option<LaunchId> {
        let all = self.seen.trails.iter();
        let mut may = all.filter(|(_, trail)| trail.pool == *pool && trail.explains(failure));
        let (launch, _) = may.next()?;
        may.next().is_none().then(|| launch.clone())
    }
}
