//! What the adapter remembers of each pool in this process. Nothing here is needed after a restart.
//!
//! Used by `observe`, `grow`, `settle` and `leave`. [`Flight`] is behind the lock that lets one mutation of a group
//! be at work at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use drover_aws::{Group, InstanceId};
use drover_core::model::{Millis, OfferingId, UnixMs};

/// How long our own change of the desired capacity counts beside what a describe says. AWS's describes may lag, and a
/// target computed from an old one would lower the group.
const FLOOR_AGE: Millis = Millis::minutes(2);
/// How long a refused LaunchInstances is not tried again.
const NO_LAUNCH_AGE: Millis = Millis::minutes(60);

/// The mutation at work.
#[derive(Debug, Default)]
pub(super) struct Flight {
    floor: Option<(Millis, u32)>,
    /// Token of an ask by SetDesiredCapacity whose outcome is not known: nothing leaves before it is settled.
    pub(super) unsettled: Option<String>,
    /// Tokens of asks whose outcome is not known.
    pub(super) open: BTreeSet<String>,
}

impl Flight {
    /// The capacity that is wanted, whatever an old describe says: desired, what is there, and what we last set.
    pub(super) fn wanted(&self, group: &Group, now: Millis) -> u32 {
        let ours = self
            .floor
            .filter(|(at, _)| now.minus(*at) < FLOOR_AGE)
            .map_or(0, |(_, floor)| floor);
        group.desired.max(group.live_count()).max(ours)
    }

    /// Notes that at least so much is wanted now.
    pub(super) fn raised(&mut self, to: u32, now: Millis) {
        self.floor = Some((now, to));
    }

    /// Notes that an instance left with decrement.
    pub(super) fn lowered(&mut self) {
        if let Some((_, floor)) = &mut self.floor {
            *floor = floor.saturating_sub(1);
        }
    }
}

/// What readings left.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Zone of each offering that was ever named; empty where the group chooses.
    pub(super) zones: BTreeMap<OfferingId, String>,
    /// When members were launched.
    pub(super) launched: BTreeMap<InstanceId, UnixMs>,
    /// When activities were last read (monotonic), and from when on they are read next (AWS's clock).
    pub(super) activities: Option<(Millis, i64)>,
    /// Why LaunchInstances is not used, since when.
    no_launch: Option<(Millis, String)>,
}

impl Seen {
    /// Why LaunchInstances is not used just now.
    pub(super) fn no_launch(&self, now: Millis) -> Option<&str> {
        let (at, why) = self.no_launch.as_ref()?;
        (now.minus(*at) < NO_LAUNCH_AGE).then_some(why.as_str())
    }

    /// Notes that AWS refused LaunchInstances as such.
    pub(super) fn refuse_launch(&mut self, now: Millis, why: String) {
        self.no_launch = Some((now, why));
    }
}

/// One pool's memory.
#[derive(Debug, Default)]
pub(super) struct PoolMemory {
    /// One mutation of the group at a time.
    pub(super) flight: tokio::sync::Mutex<Flight>,
    seen: Mutex<Seen>,
}

impl PoolMemory {
    /// Not to be held across an await.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
