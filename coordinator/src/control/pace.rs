//! How long cycles and plans took and how many cycles failed, as plain counts in fixed buckets.
//!
//! Fed by the cycle and the loop around it; read by `serve/http`. Counts since the start, decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the buckets, microseconds: from a plan of a small fleet to a cycle that nobody wants. One more bucket
/// holds all that is longer.
pub const BOUNDS_US: [u64; 16] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];
const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Spans of time by length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spans {
    /// How many were no longer than the bound of the same index and longer than the one before; last: longer than all.
    pub buckets: [u64; BUCKETS],
    /// Their sum, microseconds.
    pub sum_us: u64,
}

impl Spans {
    fn add(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The pace of a coordinator since its start.
#[derive(Debug, Default)]
pub struct Pace {
    cycles: Mutex<Spans>,
    plans: Mutex<Spans>,
    failed: AtomicU64,
    in_a_row: AtomicU64,
}

impl Pace {
    pub(crate) fn planned(&self, took: Duration) {
        lock(&self.plans, |spans| spans.add(took));
    }

    pub(crate) fn cycled(&self, took: Duration) {
        self.in_a_row.store(0, Ordering::Relaxed);
        lock(&self.cycles, |spans| spans.add(took));
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.in_a_row.fetch_add(1, Ordering::Relaxed);
    }

    /// Cycles that ended well.
    #[must_use]
    pub fn cycles(&self) -> Spans {
        lock(&self.cycles, |spans| *spans)
    }

    /// Plans.
    #[must_use]
    pub fn plans(&self) -> Spans {
        lock(&self.plans, |spans| *spans)
    }

    /// Cycles that failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Cycles that failed since the last one that ended well.
    #[must_use]
    pub fn failures_in_a_row(&self) -> u64 {
        self.in_a_row.load(Ordering::Relaxed)
    }
}

fn lock<T>(spans: &Mutex<Spans>, then: impl FnOnce(&mut Spans) -> T) -> T {
    then(&mut spans.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_counts_in_the_first_bucket_that_holds_it() {
        let mut spans = Spans::default();
        for us in [0, 500, 501, 60_000_000, 60_000_001] {
            spans.add(Duration::from_micros(us));
        }
        assert_eq!(
            (
                spans.buckets[0],
                spans.buckets[1],
                spans.buckets[15],
                spans.buckets[16]
            ),
            (2, 1, 1, 1)
        );
        assert_eq!((spans.count(), spans.sum_us), (5, 120_001_002));
    }

    #[test]
    fn a_good_cycle_ends_a_row_of_failures() {
        let pace = Pace::default();
        pace.failed();
        pace.failed();
        assert_eq!((pace.failures(), pace.failures_in_a_row()), (2, 2));
        pace.cycled(Duration::from_millis(3));
        assert_eq!((pace.failures(), pace.failures_in_a_row()), (2, 0));
        assert_eq!(pace.cycles().count(), 1);
        assert_eq!(pace.plans().count(), 0);
    }
}
