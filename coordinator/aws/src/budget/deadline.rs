//! The caller's deadline for what it does in one go.
//!
//! Set by callers around their calls, read by `budget`. It ends nothing by itself: it only bounds waiting for a token.

use std::time::{Duration, Instant};

tokio::task_local! {
    static DEADLINE: Instant;
}

/// Does `work`, of which no call waits for a token beyond `limit` from now: it fails as throttled instead, unsent.
///
/// Inside of another one the earlier deadline counts. It does not reach into tasks that `work` spawns.
pub async fn within<F: Future>(limit: Duration, work: F) -> F::Output {
    let mine = Instant::now().checked_add(limit);
    let outer = DEADLINE.try_with(|at| *at).ok();
    match mine.into_iter().chain(outer).min() {
        Some(at) => DEADLINE.scope(at, work).await,
        None => work.await,
    }
}

/// Not longer than `longest_ms`, nor than the deadline leaves.
pub(super) fn bounded(longest_ms: u64) -> u64 {
    let left = DEADLINE.try_with(|at| at.saturating_duration_since(Instant::now()));
    left.map_or(longest_ms, |left| {
        longest_ms.min(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    })
}

/// Whether the deadline has passed; false without one.
#[cfg(feature = "sdk")]
pub(crate) fn has_passed() -> bool {
    DEADLINE
        .try_with(|at| *at <= Instant::now())
        .unwrap_or(false)
}
