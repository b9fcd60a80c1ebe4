//! The two clocks: wall time for people and the wire, boot time for everything that is counted.
//!
//! Called by tasks; pure modules get the numbers passed in. Boot time goes on in suspend and nobody sets it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Milliseconds since this machine booted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootMs(pub u64);

impl BootMs {
    /// Now. Falls back to 0 on a kernel without the clock (older than 2.6.39).
    #[must_use]
    pub fn now() -> Self {
        let Ok(now) = clock_gettime(ClockId::CLOCK_BOOTTIME) else {
            return Self(0);
        };
        let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
        Self(seconds * 1_000 + nanos / 1_000_000)
    }

    /// So many milliseconds later.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` until this, 0 when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall clock, milliseconds since 1970.
#[must_use]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A wall clock time for people, RFC 3339 in UTC.
#[must_use]
pub fn text(unix_ms: u64) -> String {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| unix_ms.to_string(), |at| at.to_string())
}

/// The kernel's id of this boot, empty when /proc has none.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
