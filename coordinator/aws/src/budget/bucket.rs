//! One token bucket: how many calls may go now, how long the next one has to wait.
//!
//! Used by `budget` alone. Pure: the time is handed in. It counts in millionths of a token, so that nothing is lost
//! between two looks at it.

/// A token, in the unit of the level.
const TOKEN: i64 = 1_000_000;
/// The whole refill, in parts.
const WHOLE: u64 = 1_000_000;
/// AWS's refusals never shrink the refill below this share of it.
const LEAST: u64 = WHOLE / 16;
/// From the least share back to the whole it takes about this long without another refusal.
const RECOVERY_MS: u64 = 120_000;
/// After so long without a look every bucket is full and every share whole.
const FORGOTTEN_MS: u64 = 3_600_000;
/// The level and the share are moved on in steps of at most so long.
const STEP_MS: u64 = 1_000;

/// What a bucket holds and how it refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many calls may go at once.
    pub burst: u32,
    /// How many more may go each second, thousandths.
    pub milli_per_second: u32,
}

impl Limit {
    /// `burst` at once and `per_second` more each second.
    pub const fn new(burst: u32, per_second: u32) -> Self {
        Self {
            burst,
            milli_per_second: per_second.saturating_mul(1000),
        }
    }

    /// That share of it, in percent; never less than one call in ten seconds and one at once.
    #[must_use]
    pub fn share(self, percent: u32) -> Self {
        let part = |of: u32| {
            let part = u64::from(of) * u64::from(percent) / 100;
            u32::try_from(part).unwrap_or(u32::MAX)
        };
        Self {
            burst: part(self.burst).max(1),
            milli_per_second: part(self.milli_per_second).max(100),
        }
    }
}

/// A bucket and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    limit: Limit,
    /// Below zero when calls wait already.
    level: i64,
    /// What of the refill is used, in parts of [`WHOLE`].
    share: u64,
    at_ms: u64,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(limit: Limit, now_ms: u64) -> Self {
        Self {
            limit,
            level: i64::from(limit.burst) * TOKEN,
            share: WHOLE,
            at_ms: now_ms,
        }
    }

    /// Takes a token. `Ok`: how long to wait before it may be used, at most `longest_ms`. `Err`: how long it would be;
    /// then nothing was taken.
    pub(super) fn take(&mut self, now_ms: u64, longest_ms: u64) -> Result<u64, u64> {
        self.advance(now_ms);
        let level = self.level - TOKEN;
        let wait = if level >= 0 {
            0
        } else {
            self.until(level.unsigned_abs())
        };
        if wait > longest_ms {
            return Err(wait);
        }
        self.level = level;
        Ok(wait)
    }

    /// Gives a token back that was taken and not used.
    pub(super) fn put_back(&mut self) {
        self.level = (self.level + TOKEN).min(self.full());
    }

    /// AWS refused: whatever was thought to be left is not, and refills at half the pace for now.
    pub(super) fn refused(&mut self, now_ms: u64) {
        self.advance(now_ms);
        self.level = self.level.min(0);
        self.share = (self.share / 2).max(LEAST);
    }

    /// The same bucket under another limit.
    pub(super) fn relimit(&mut self, limit: Limit) {
        self.limit = limit;
        self.level = self.level.min(self.full());
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// Calls that may go at once now.
    pub(super) fn left(&mut self, now_ms: u64) -> u32 {
        self.advance(now_ms);
        u32::try_from(self.level.max(0) / TOKEN).unwrap_or(u32::MAX)
    }

    /// The refill now, thousandths of a call each second.
    pub(super) fn milli_per_second_now(&mut self, now_ms: u64) -> u32 {
        self.advance(now_ms);
        u32::try_from(self.pace() * self.share / WHOLE).unwrap_or(u32::MAX)
    }

    fn full(&self) -> i64 {
        i64::from(self.limit.burst.max(1)) * TOKEN
    }

    /// Millionths of a token each millisecond are thousandths of one each second.
    fn pace(&self) -> u64 {
        u64::from(self.limit.milli_per_second.max(1))
    }

    /// Milliseconds until so much more has come, at the present pace.
    fn until(&self, missing: u64) -> u64 {
        let pace = (self.pace() * self.share / WHOLE).max(1);
        missing.div_ceil(pace)
    }

    fn advance(&mut self, now_ms: u64) {
        let mut elapsed = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        if elapsed >= FORGOTTEN_MS {
            self.level = self.full();
            self.share = WHOLE;
            return;
        }
        while elapsed > 0 && (self.level < self.full() || self.share < WHOLE) {
            let step = elapsed.min(STEP_MS);
            let came = i64::try_from(step * self.pace() * self.share / WHOLE).unwrap_or(i64::MAX);
            self.level = self.level.saturating_add(came).min(self.full());
            self.share = (self.share + step * WHOLE / RECOVERY_MS).min(WHOLE);
            elapsed -= step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = 0;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_pace() {
        let mut bucket = Bucket::new(Limit::new(100, 20), 0);
        for n in 0..100 {
            assert_eq!(bucket.take(0, NEVER), Ok(0), "call {n}");
        }
        assert_eq!(bucket.take(0, NEVER), Err(50));
        let waits: Vec<_> = (0..4).map(|_| bucket.take(0, 1_000)).collect();
        assert_eq!(
            waits,
            [Ok(50), Ok(100), Ok(150), Ok(200)],
            "one behind the other"
        );
        assert_eq!(bucket.take(1_000, NEVER), Ok(0), "20 came, 4 were promised");
        assert_eq!(bucket.left(1_000), 15);
        assert_eq!(bucket.left(60_000), 100, "never more than the burst");
    }

    #[test]
    fn in_any_window_no_more_go_than_burst_and_pace_allow() {
        let mut bucket = Bucket::new(Limit::new(10, 5), 0);
        let mut sent = 0_u64;
        for ms in 0..60_000 {
            while bucket.take(ms, NEVER).is_ok() {
                sent += 1;
            }
        }
        assert!(
            (305..=310).contains(&sent),
            "{sent} in a minute of 10 + 5/s"
        );
    }

    #[test]
    fn what_is_put_back_can_be_taken_again() {
        let mut bucket = Bucket::new(Limit::new(1, 1), 0);
        assert_eq!(bucket.take(0, NEVER), Ok(0));
        assert_eq!(bucket.take(0, 5_000), Ok(1_000));
        bucket.put_back();
        assert_eq!(bucket.take(0, 5_000), Ok(1_000));
        bucket.put_back();
        bucket.put_back();
        bucket.put_back();
        assert_eq!(bucket.left(0), 1, "never more than the burst");
    }

    #[test]
    fn refusals_halve_the_pace_down_to_a_floor_and_it_comes_back() {
        let mut bucket = Bucket::new(Limit::new(100, 16), 0);
        let mut paces = Vec::new();
        for _ in 0..6 {
            bucket.refused(0);
            paces.push(bucket.milli_per_second_now(0));
        }
        assert_eq!(paces, [8_000, 4_000, 2_000, 1_000, 1_000, 1_000]);
        assert_eq!(bucket.left(0), 0, "what was left is gone");
        assert_eq!(bucket.take(0, 2_000), Ok(1_000), "one each second now");
        let later = bucket.milli_per_second_now(60_000);
        assert!((8_000..10_000).contains(&later), "{later} half-way");
        assert_eq!(bucket.milli_per_second_now(130_000), 16_000);
    }

    #[test]
    fn many_short_looks_refill_as_much_as_one_long_one() {
        let limit = Limit {
            burst: 10,
            milli_per_second: 333,
        };
        let (mut often, mut once) = (Bucket::new(limit, 0), Bucket::new(limit, 0));
        for _ in 0..10 {
            assert_eq!(often.take(0, NEVER), Ok(0));
            assert_eq!(once.take(0, NEVER), Ok(0));
        }
        for ms in 1..=20_000 {
            often.left(ms);
        }
        assert_eq!((often.left(20_000), once.left(20_000)), (6, 6));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::new(Limit::new(1, 1), 10_000);
        assert_eq!(bucket.take(10_000, NEVER), Ok(0));
        assert_eq!(bucket.take(5_000, NEVER), Err(1_000));
        assert_eq!(bucket.take(11_000, NEVER), Ok(0));
    }

    #[test]
    fn a_share_is_never_nothing() {
        assert_eq!(Limit::new(100, 20).share(50), Limit::new(50, 10));
        let least = Limit::new(5, 2).share(1);
        assert_eq!((least.burst, least.milli_per_second), (1, 100));
    }
}
