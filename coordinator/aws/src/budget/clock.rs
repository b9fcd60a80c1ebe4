//! The time that the budget goes by.
//!
//! Handed to [`super::Budget`] by whoever makes it, so that its tests need no sleeping.

use async_trait::async_trait;

/// A clock that never goes back, and waiting by it.
#[async_trait]
pub trait BudgetClock: Send + Sync {
    /// Milliseconds since some beginning.
    fn now_ms(&self) -> u64;

    /// Returns after so many milliseconds.
    async fn wait_ms(&self, ms: u64);
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    since: tokio::time::Instant,
}

impl TokioClock {
    /// Begins now.
    pub fn start() -> Self {
        Self {
            since: tokio::time::Instant::now(),
        }
    }
}

#[async_trait]
impl BudgetClock for TokioClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn wait_ms(&self, ms: u64) {
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}
