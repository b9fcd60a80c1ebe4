//! Calls to the outside that may take long: they are waited for a moment, and then the cycle goes on without them. What a
//! dead region keeps waiting is its own affair (DESIGN 9).
//!
//! Used by `observe` for readings and by `launches` for asks. Decides nothing; a call that was begun goes on to its end.

use super::wake::Wake;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

/// A cycle waits so long for calls that it has begun itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Calls at work, each with a key that is not used twice at a time.
pub(super) struct Background<K, T> {
    calls: JoinSet<(K, T)>,
    flying: BTreeSet<K>,
    /// Begun and not waited for yet.
    fresh: BTreeSet<K>,
    /// The cycle no longer waits for those that are at work: their end wakes it.
    left_alone: Arc<AtomicBool>,
    wake: Wake,
    patience: Duration,
}

impl<K, T> Background<K, T>
where
    K: Ord + Clone + Send + 'static,
    T: Send + 'static,
{
    /// None yet.
    pub(super) fn new(wake: Wake) -> Self {
        Self {
            calls: JoinSet::new(),
            flying: BTreeSet::new(),
            fresh: BTreeSet::new(),
            left_alone: Arc::default(),
            wake,
            patience: PATIENCE,
        }
    }

    /// From now on calls are waited for however long they take.
    pub(super) fn wait_for_calls(&mut self) {
        self.patience = Duration::MAX;
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, key: K, call: impl Future<Output = T> + Send + 'static) {
        self.flying.insert(key.clone());
        self.fresh.insert(key.clone());
        let (wake, left_alone) = (self.wake.clone(), self.left_alone.clone());
        self.calls.spawn(async move {
            let done = call.await;
            if left_alone.load(Ordering::SeqCst) {
                wake.call();
            }
            (key, done)
        });
    }

    /// Keys of the calls at work.
    pub(super) fn flying(&self) -> impl Iterator<Item = &K> {
        self.flying.iter()
    }

    /// What has ended since the last time; calls begun since then are waited for a moment.
    pub(super) async fn ended(&mut self) -> Vec<(K, T)> {
        self.left_alone.store(false, Ordering::SeqCst);
        let mut ended = Vec::new();
        let patience = timeout(self.patience, async {
            while !self.fresh.is_empty() {
                let Some(done) = self.calls.join_next().await else {
                    return;
                };
                let Some(done) = or_panic(done) else { continue };
                self.fresh.remove(&done.0);
                ended.push(done);
            }
        });
        // What is late comes in a later cycle.
        let _ = patience.await;
        self.fresh.clear();
        self.left_alone.store(true, Ordering::SeqCst);
        // After the flag: nothing ends unseen in between.
        while let Some(done) = self.calls.try_join_next() {
            ended.extend(or_panic(done));
        }
        for (key, _) in &ended {
            self.flying.remove(key);
        }
        ended
    }
}

/// A call that panics is a fault of ours and ends the process like any other. A cancelled one belongs to a runtime that
/// is ending.
fn or_panic<T>(done: Result<T, JoinError>) -> Option<T> {
    match done {
        Ok(done) => Some(done),
        Err(error) => {
            if let Ok(panic) = error.try_into_panic() {
                std::panic::resume_unwind(panic);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_slow_call_holds_nobody_up_and_wakes_when_it_ends() {
        let wake = Wake::default();
        let mut calls = Background::new(wake.clone());
        let (go, slow) = oneshot::channel::<()>();
        calls.begin("quick", async { 1 });
        calls.begin("slow", async {
            slow.await.expect("it may go");
            2
        });
        assert_eq!(calls.ended().await, [("quick", 1)]);
        assert_eq!(calls.flying().collect::<Vec<_>>(), [&"slow"]);
        assert_eq!(wake.count(), 0, "what was waited for wakes nobody");
        // Nothing new: nothing is waited for.
        assert!(calls.ended().await.is_empty());
        let mut rung = wake.subscribe();
        go.send(()).expect("it waits");
        rung.changed().await.expect("it rings");
        assert_eq!(calls.ended().await, [("slow", 2)]);
        assert_eq!(calls.flying().count(), 0);
    }
}
