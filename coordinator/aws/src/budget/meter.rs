//! Counts of what was asked of AWS, by region and call.
//!
//! Kept by `budget`, read by whoever shows it. It counts and limits nothing.

use std::collections::BTreeMap;

use super::bucket::Limit;
use crate::{Call, FailureKind, Region};

/// Slots of the last minute.
const SLOTS: usize = 12;
/// How long each of them is.
const SLOT_MS: u64 = 5_000;

/// Requests of about the last minute, in slots of five seconds.
#[derive(Clone, Debug, Default)]
struct LastMinute {
    slots: [u64; SLOTS],
    /// Number of the newest slot since the clock's beginning.
    newest: u64,
}

impl LastMinute {
    fn count(&mut self, now_ms: u64) {
        self.turn(now_ms);
        if let Some(slot) = self.slots.first_mut() {
            *slot += 1;
        }
    }

    fn sum(&mut self, now_ms: u64) -> u64 {
        self.turn(now_ms);
        self.slots.iter().sum()
    }

    /// The newest slot is the first.
    fn turn(&mut self, now_ms: u64) {
        let slot = now_ms / SLOT_MS;
        let passed = usize::try_from(slot.saturating_sub(self.newest)).unwrap_or(SLOTS);
        if passed > 0 {
            let passed = passed.min(SLOTS);
            self.slots.rotate_right(passed);
            self.slots.iter_mut().take(passed).for_each(|s| *s = 0);
        }
        self.newest = self.newest.max(slot);
    }
}

/// Counts of one call in one region.
#[derive(Clone, Debug, Default)]
struct Counts {
    sent: u64,
    failed: BTreeMap<FailureKind, u64>,
    not_sent: u64,
    waited_ms: u64,
    repeated: u64,
    last_minute: LastMinute,
}

/// The counts of all calls since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct ApiMeter {
    calls: BTreeMap<(Region, Call), Counts>,
}

impl ApiMeter {
    fn of(&mut self, region: &Region, call: Call) -> &mut Counts {
        self.calls.entry((region.clone(), call)).or_default()
    }

    /// A request goes out after so long a wait.
    pub(super) fn sent(&mut self, region: &Region, call: Call, waited_ms: u64, now_ms: u64) {
        let counts = self.of(region, call);
        counts.sent += 1;
        counts.waited_ms += waited_ms;
        counts.last_minute.count(now_ms);
    }

    pub(super) fn failed(&mut self, region: &Region, call: Call, kind: FailureKind) {
        *self.of(region, call).failed.entry(kind).or_default() += 1;
    }

    /// A request failed and is sent again.
    pub(super) fn repeated(&mut self, region: &Region, call: Call) {
        self.of(region, call).repeated += 1;
    }

    /// A request was held back: no token in time.
    pub(super) fn not_sent(&mut self, region: &Region, call: Call) {
        self.of(region, call).not_sent += 1;
    }

    /// What was counted; `bucket` says where the bucket of a call stands.
    pub(super) fn figures(
        &mut self,
        now_ms: u64,
        mut bucket: impl FnMut(&Region, Call) -> Option<BucketFigures>,
    ) -> Vec<CallFigures> {
        let figure = |((region, call), counts): (&(Region, Call), &mut Counts)| CallFigures {
            region: region.clone(),
            call: *call,
            sent: counts.sent,
            throttled: counts
                .failed
                .get(&FailureKind::Throttle)
                .copied()
                .unwrap_or(0),
            failed: counts.failed.clone(),
            not_sent: counts.not_sent,
            waited_ms: counts.waited_ms,
            repeated: counts.repeated,
            last_minute: counts.last_minute.sum(now_ms),
            bucket: bucket(region, *call),
        };
        self.calls.iter_mut().map(figure).collect()
    }
}

/// What was asked of AWS by one call in one region, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFigures {
    /// Where.
    pub region: Region,
    /// Which call.
    pub call: Call,
    /// Requests that were sent: further pages and repetitions are requests too.
    pub sent: u64,
    /// Those that failed, by kind.
    pub failed: BTreeMap<FailureKind, u64>,
    /// Those that AWS throttled; they are among the failed as well.
    pub throttled: u64,
    /// Requests that were not sent, because no token came in time.
    pub not_sent: u64,
    /// How long requests waited for a token, milliseconds, all together.
    pub waited_ms: u64,
    /// Requests that were sent because the one before failed.
    pub repeated: u64,
    /// Requests of the last minute.
    pub last_minute: u64,
    /// Its bucket; `None` where nothing is limited.
    pub bucket: Option<BucketFigures>,
}

/// Where a bucket stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFigures {
    /// Its name: calls with the same name in a region share it.
    pub name: String,
    /// Its limit.
    pub limit: Limit,
    /// The refill now, thousandths of a call each second; less than the limit's after AWS throttled.
    pub milli_per_second_now: u32,
    /// Calls that may go at once now.
    pub left: u32,
    /// Whether the limit is assumed, because AWS publishes none.
    pub assumed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_forgets() {
        let mut minute = LastMinute::default();
        for ms in [0, 1_000, 30_000, 59_000] {
            minute.count(ms);
        }
        assert_eq!(minute.sum(59_999), 4);
        assert_eq!(minute.sum(60_000), 2, "the first slot went");
        assert_eq!(minute.sum(90_000), 1);
        assert_eq!(minute.sum(1_000_000), 0);
        minute.count(1_000_000);
        assert_eq!(minute.sum(1_000_000), 1);
    }
}
