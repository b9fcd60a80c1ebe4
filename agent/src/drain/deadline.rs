//! A drain's deadline, from the coordinator's clock to this machine's boot-time clock. Pure.
//!
//! Called by `drain`. A foreign wall clock on the node does not matter: what counts is how far the deadline was
//! from the coordinator's now. Only a reboot in between needs the wall clock, corrected by what it was off then.

use serde::{Deserialize, Serialize};

use crate::clock::BootMs;

/// Ties the coordinator's clock to ours at the moment an order came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Coordinator's clock, milliseconds since 1970.
    coordinator_ms: u64,
    /// Our wall clock.
    wall_ms: u64,
    /// Our boot-time clock.
    boot: BootMs,
}

impl Anchor {
    /// Now: the order says `coordinator_ms`.
    #[must_use]
    pub fn new(coordinator_ms: u64, wall_ms: u64, boot: BootMs) -> Self {
        Self {
            coordinator_ms,
            wall_ms,
            boot,
        }
    }

    /// The anchor in a new boot, whose clock shows `boot` now. Time that passed is known by the wall clock only.
    #[must_use]
    pub fn rebooted(self, wall_ms: u64, boot: BootMs) -> Self {
        let passed_ms = wall_ms.saturating_sub(self.wall_ms);
        Self {
            coordinator_ms: self.coordinator_ms.saturating_add(passed_ms),
            wall_ms,
            boot,
        }
    }

    /// When a moment of the coordinator's clock is reached on ours.
    #[must_use]
    pub fn on_boot_clock(self, unix_ms: u64) -> BootMs {
        if unix_ms >= self.coordinator_ms {
            self.boot.plus(unix_ms - self.coordinator_ms)
        } else {
            BootMs(self.boot.0.saturating_sub(self.coordinator_ms - unix_ms))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_coordinators_now() {
        // Our wall clock is an hour behind: it does not enter.
        let anchor = Anchor::new(10_000_000, 6_400_000, BootMs(500));
        assert_eq!(anchor.on_boot_clock(10_060_000), BootMs(60_500));
        assert_eq!(
            anchor.on_boot_clock(9_999_900),
            BootMs(400),
            "passed already"
        );
        assert_eq!(anchor.on_boot_clock(0), BootMs(0));
    }

    #[test]
    fn a_reboot_counts_the_time_between_by_the_wall_clock() {
        let anchor = Anchor::new(10_000_000, 6_400_000, BootMs(900_000));
        let after = anchor.rebooted(6_450_000, BootMs(20_000));
        assert_eq!(after.on_boot_clock(10_060_000), BootMs(30_000));
        let set_back = anchor.rebooted(1_000_000, BootMs(20_000));
        assert_eq!(
            set_back.on_boot_clock(10_060_000),
            BootMs(80_000),
            "never earlier"
        );
    }
}
