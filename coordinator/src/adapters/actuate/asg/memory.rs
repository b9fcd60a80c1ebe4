//! What the adapter remembers of each pool in this process. Nothing here is needed after a restart.
//!
//! Used by `observe`, `grow`, `settle` and `leave`. One mutation of a group is at work at a time, except that a few
//! LaunchInstances calls go beside each other: each has a token of its own, and AWS adds what they launch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use drover_aws::{Group, InstanceId};
use drover_core::model::{Millis, OfferingId};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::look::{Ended, Known};

/// How long our own change of the desired capacity counts beside what a describe says. AWS's describes may lag, and a
/// target computed from an old one would lower the group.
const FLOOR_AGE: Millis = Millis::minutes(2);
/// How long a refused LaunchInstances is not tried again.
const NO_LAUNCH_AGE: Millis = Millis::minutes(60);

/// LaunchInstances calls of one group that are at work at once.
const BESIDE: u32 = 4;

/// The mutations at work.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// LaunchInstances calls at work beside each other.
    beside: u32,
    /// What was wanted when the first of them began, and what they have given since.
    began: (u32, u32),
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

    /// Whether LaunchInstances calls are at work: what a describe shows meanwhile may be half of what they do.
    pub(super) fn is_shared(&self) -> bool {
        self.beside > 0
    }

    /// A LaunchInstances call begins beside others; `group` was read just now.
    pub(super) fn begin_beside(&mut self, group: &Group, now: Millis) {
        if self.beside == 0 {
            self.began = (self.wanted(group, now), 0);
        }
        self.beside += 1;
    }

    /// It has ended and gave so many.
    pub(super) fn end_beside(&mut self, gave: u32, now: Millis) {
        self.beside = self.beside.saturating_sub(1);
        self.began.1 = self.began.1.saturating_add(gave);
        if gave > 0 {
            self.raised(self.began.0.saturating_add(self.began.1), now);
        }
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
    /// What EC2 says of members.
    pub(super) instances: BTreeMap<InstanceId, Known>,
    /// When EC2 was last asked (monotonic) for members that do not run well, and for all.
    pub(super) looked: (Option<Millis>, Option<Millis>),
    /// Instances that ended in their launch and were not told yet.
    pub(super) ended: Vec<Ended>,
    /// When activities were last read (monotonic), and from when on they are read next (AWS's clock).
    pub(super) activities: Option<(Millis, i64)>,
    /// The group's shape does not let it use LaunchInstances, by the last reading.
    pub(super) misshapen: bool,
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
#[derive(Debug)]
pub(super) struct PoolMemory {
    /// Places for mutations: a LaunchInstances call beside others takes one, everything else takes all. First come, first
    /// served.
    places: Semaphore,
    flight: tokio::sync::Mutex<Flight>,
    seen: Mutex<Seen>,
}

impl Default for PoolMemory {
    fn default() -> Self {
        Self {
            places: Semaphore::new(BESIDE as usize),
            flight: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
        }
    }
}

/// Nobody else changes the group while this lives.
pub(super) struct Alone<'m> {
    flight: tokio::sync::MutexGuard<'m, Flight>,
    _places: Option<SemaphorePermit<'m>>,
}

impl Deref for Alone<'_> {
    type Target = Flight;

    fn deref(&self) -> &Flight {
        &self.flight
    }
}

impl DerefMut for Alone<'_> {
    fn deref_mut(&mut self) -> &mut Flight {
        &mut self.flight
    }
}

impl PoolMemory {
    /// Waits until nobody changes the group.
    pub(super) async fn alone(&self) -> Alone<'_> {
        // It is never closed; were it, the lock alone would still let one in at a time.
        let places = self.places.acquire_many(BESIDE).await.ok();
        Alone {
            flight: self.flight.lock().await,
            _places: places,
        }
    }

    /// Waits for a place beside other LaunchInstances calls.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }

    /// For a moment, to prepare a call and to note what it gave; with a place taken before.
    pub(super) async fn flight(&self) -> tokio::sync::MutexGuard<'_, Flight> {
        self.flight.lock().await
    }

    /// Not to be held across an await.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
