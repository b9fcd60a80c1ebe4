//! The machine's clocks behind [`Clock`]. Made once by `app`; tests use [`ManualClock`]. Decides nothing.

use crate::ports::clock::Clock;
use drover_core::model::{Millis, UnixMs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall clock and `CLOCK_BOOTTIME`, which counts suspend.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall(&self) -> UnixMs {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn mono(&self) -> Millis {
        let boot = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME)
            .map(std::time::Duration::from)
            .unwrap_or_default();
        Millis(u64::try_from(boot.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall: AtomicU64,
    mono: AtomicU64,
}

impl ManualClock {
    /// Starts at this wall time.
    #[must_use]
    pub fn at(wall: UnixMs) -> Self {
        Self {
            wall: AtomicU64::new(wall.0),
            mono: AtomicU64::new(0),
        }
    }

    /// Both clocks go on.
    pub fn advance(&self, by: Millis) {
        self.wall.fetch_add(by.0, Ordering::SeqCst);
        self.mono.fetch_add(by.0, Ordering::SeqCst);
    }

    /// Only the wall clock jumps.
    pub fn jump_to(&self, wall: UnixMs) {
        self.wall.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> UnixMs {
        UnixMs(self.wall.load(Ordering::SeqCst))
    }

    fn mono(&self) -> Millis {
        Millis(self.mono.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_runs_and_the_manual_one_obeys() {
        let clock = SystemClock;
        assert!(clock.wall() > UnixMs(1_700_000_000_000));
        let first = clock.mono();
        assert!(first > Millis(0) && clock.mono() >= first);

        let manual = ManualClock::at(UnixMs(5));
        manual.advance(Millis(2));
        manual.jump_to(UnixMs(100));
        assert_eq!((manual.wall(), manual.mono()), (UnixMs(100), Millis(2)));
    }
}
