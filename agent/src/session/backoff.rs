//! How long to rest before the next try: full jitter, the random number passed in. Pure.
//!
//! Called by `session/machine`. After "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): a uniform
//! draw below a limit that doubles spreads ten thousand agents best.

use std::time::Duration;

/// Limit before the first retry.
pub const BASE: Duration = Duration::from_millis(500);
/// Limit that it grows to.
pub const CAP: Duration = Duration::from_secs(30);
/// Limit it grows to when only a person can help.
pub const SLOW_CAP: Duration = Duration::from_secs(300);

/// The rest before try number `attempt` (0: the first retry). `draw` is in 0..1.
#[must_use]
pub fn rest(attempt: u32, cap: Duration, draw: f64) -> Duration {
    let doubled = BASE.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
    doubled.min(cap).mul_f64(draw.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap_and_is_uniform_below() {
        for (attempt, cap, draw, want_ms) in [
            (0, CAP, 1.0, 500),
            (0, CAP, 0.0, 0),
            (1, CAP, 1.0, 1_000),
            (5, CAP, 0.5, 8_000),
            (6, CAP, 1.0, 30_000),
            (31, CAP, 0.5, 15_000),
            (40, CAP, 1.0, 30_000),
            (u32::MAX, SLOW_CAP, 1.0, 300_000),
            (3, CAP, 7.0, 4_000),
        ] {
            let got = rest(attempt, cap, draw);
            assert_eq!(
                got,
                Duration::from_millis(want_ms),
                "attempt {attempt} draw {draw}"
            );
        }
    }
}
