//! The one way in which tests wait: look at a level again and again, with a deadline.
//!
//! Used by every suite. A test that sleeps guesses; this looks, and says what it looked at when the time is over.

use std::time::{Duration, Instant};

/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(20);

/// The tests name limits as for a machine at rest; the one that runs them builds and plays a fleet at the same time.
const PATIENCE: u32 = 3;

/// How long is really waited where `limit` is named.
#[must_use]
pub fn patient(limit: Duration) -> Duration {
    limit.saturating_mul(PATIENCE)
}

/// Looks until `ready` gives something. A test's thread is blocked meanwhile.
///
/// # Panics
/// When it gives nothing within the [`patient`] limit.
#[track_caller]
pub fn until<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let limit = patient(limit);
    let begun = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(BETWEEN);
    }
}

/// Looks until `ready` gives something, on a runtime.
///
/// # Panics
/// When it gives nothing within the [`patient`] limit.
pub async fn until_async<T>(
    what: &str,
    limit: Duration,
    mut ready: impl AsyncFnMut() -> Option<T>,
) -> T {
    let limit = patient(limit);
    let begun = Instant::now();
    loop {
        if let Some(value) = ready().await {
            return value;
        }
        assert!(begun.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(BETWEEN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_again_until_there_is_something() {
        let mut looks = 0;
        let seen = until("the third look", Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(seen, 3);
    }

    #[test]
    #[should_panic(expected = "nothing at all: not within")]
    fn it_gives_up_at_the_deadline() {
        until("nothing at all", Duration::ZERO, || None::<()>);
    }
}
