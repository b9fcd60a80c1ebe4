//! First come, first served: demand of one priority is served wave after wave, where a wave is what was submitted within
//! one minute. Within a wave nobody has waited longer to speak of, so it is packed as one.
//!
//! Called by the planner, and by sources when they put units together into classes: members of different waves are
//! different classes. **Invariant:** who was submitted earlier is in no later wave; there are few waves, however long
//! the queue is.

use crate::model::UnixMs;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The wave of what was submitted then, named by its beginning. What has waited for an hour is told apart by the hour,
/// what has waited for a day by the day: its places come and go by the hour as well.
#[must_use]
pub fn wave(submitted: UnixMs, now: UnixMs) -> UnixMs {
    let width = match now.since(submitted).0 {
        waited if waited < HOUR => MINUTE,
        waited if waited < DAY => HOUR,
        _ => DAY,
    };
    UnixMs(submitted.0 - submitted.0 % width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_minute_is_one_wave_and_the_next_another() {
        let now = UnixMs(10 * DAY);
        let wave = |s: u64| wave(UnixMs(10 * DAY - 10 * MINUTE + s * 1_000), now);
        assert_eq!(wave(0), wave(59));
        assert!(wave(59) < wave(60));
        // Of the future, by a clock that is ahead.
        assert_eq!(super::wave(UnixMs(now.0 + 1), now), now);
    }

    #[test]
    fn who_came_earlier_is_in_no_later_wave_and_waves_are_few() {
        let now = UnixMs(20_000 * DAY + 7 * HOUR + 123_456);
        let mut last = UnixMs(0);
        let mut all = BTreeSet::new();
        for step in (0..3 * DAY / 7_000).rev() {
            let ago = step * 7_000;
            let wave = wave(UnixMs(now.0 - ago), now);
            assert!(wave >= last && wave.0 <= now.0 - ago, "{ago}");
            last = wave;
            all.insert(wave);
        }
        assert!(all.len() <= 61 + 25 + 4, "{}", all.len());
    }
}
