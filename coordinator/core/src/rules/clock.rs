//! The clock guard (DESIGN 9): when wall and monotonic time drift apart, destructive acts freeze for one idle period.
//! Called by control once a cycle.

use crate::model::{Millis, UnixMs};

/// Drift between two cycles that counts.
pub const TOLERANCE: Millis = Millis::seconds(30);

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Wall clock.
    pub wall: UnixMs,
    /// Monotonic clock, from any origin.
    pub mono: Millis,
}

/// What is remembered from cycle to cycle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Guard {
    /// The last reading.
    pub last: Option<Reading>,
    /// Destructive acts are frozen until this monotonic moment.
    pub frozen_until: Option<Millis>,
}

/// Takes a reading. Returns the guard and, when the clocks drifted apart now, by how much.
#[must_use]
pub fn step(before: Guard, now: Reading, idle_period: Millis) -> (Guard, Option<Millis>) {
    let mut after = Guard {
        last: Some(now),
        ..before
    };
    let drift = before.last.map(|last| {
        let wall = i128::from(now.wall.0) - i128::from(last.wall.0);
        let mono = i128::from(now.mono.0) - i128::from(last.mono.0);
        Millis(u64::try_from((wall - mono).unsigned_abs()).unwrap_or(u64::MAX))
    });
    let drifted = drift.filter(|d| *d > TOLERANCE);
    if drifted.is_some() {
        after.frozen_until = Some(now.mono.plus(idle_period));
    } else if after.frozen_until.is_some_and(|until| now.mono >= until) {
        after.frozen_until = None;
    }
    (after, drifted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_freezes_for_one_idle_period() {
        let idle = Millis::minutes(10);
        let at = |wall: u64, mono: u64| Reading {
            wall: UnixMs(wall * 1000),
            mono: Millis::seconds(mono),
        };
        let (mut guard, drift) = step(Guard::default(), at(1_000_000, 5), idle);
        assert_eq!((drift, guard.frozen_until), (None, None));
        for (reading, drifts, frozen, case) in [
            (at(1_000_010, 15), false, false, "both went on"),
            (at(1_000_050, 25), false, false, "30 s ahead is tolerated"),
            (at(1_000_091, 35), true, true, "31 s ahead"),
            (at(1_000_101, 45), false, true, "still frozen"),
            (at(1_000_691, 635), false, false, "an idle period later"),
            (at(996_000, 645), true, true, "an hour back"),
            (at(1_082_400, 655), true, true, "a day ahead"),
        ] {
            let (after, drift) = step(guard, reading, idle);
            assert_eq!(
                (drift.is_some(), after.frozen_until.is_some()),
                (drifts, frozen),
                "{case}"
            );
            guard = after;
        }
    }
}
