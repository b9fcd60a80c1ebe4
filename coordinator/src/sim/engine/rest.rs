//! Tells work that waits for nothing any more. Nothing outside a simulation ever wakes it, so a runtime that comes to rest
//! while the simulation is not over means that it would wait for ever.
//!
//! Used by the engine's `run`. Knows nothing of what is simulated.

use futures::task::AtomicWaker;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Whether a runtime has come to rest.
#[derive(Default)]
pub(super) struct Rest {
    parked: AtomicBool,
    outer: AtomicWaker,
}

impl Rest {
    /// The runtime has nothing to run: `on_thread_park`.
    pub(super) fn parked(&self) {
        self.parked.store(true, Ordering::SeqCst);
        self.outer.wake();
    }
}

/// Wakes as `outer`, and remembers that the work itself was woken.
struct Woken {
    yes: AtomicBool,
    outer: Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.yes.store(true, Ordering::SeqCst);
        self.outer.wake_by_ref();
    }
}

/// Runs `work` to its end; `None` as soon as nothing is left that could wake it.
pub(super) async fn unless_stuck<T>(rest: &Rest, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut woken: Option<Arc<Woken>> = None;
    poll_fn(|cx| {
        rest.outer.register(cx.waker());
        let woken = woken.get_or_insert_with(|| {
            Arc::new(Woken {
                yes: AtomicBool::new(true),
                outer: cx.waker().clone(),
            })
        });
        if woken.yes.swap(false, Ordering::SeqCst) {
            // A rest from before this step says nothing about what comes after it.
            rest.parked.store(false, Ordering::SeqCst);
            let waker = Waker::from(woken.clone());
            return work
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .map(Some);
        }
        if rest.parked.load(Ordering::SeqCst) {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(work: impl Future<Output = T>) -> Option<T> {
        let rest = Arc::new(Rest::default());
        let parks = rest.clone();
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .on_thread_park(move || parks.parked())
            .build()
            .expect("a runtime")
            .block_on(unless_stuck(&rest, work))
    }

    #[test]
    fn work_that_waits_for_tasks_goes_on_to_its_end() {
        let sum = run(async {
            let mut sum = 0;
            for n in 0..1_000_u32 {
                let mut tasks = tokio::task::JoinSet::new();
                for one in 0..n % 5 {
                    tasks.spawn(async move {
                        tokio::task::yield_now().await;
                        one
                    });
                }
                while let Some(one) = tasks.join_next().await {
                    sum += one.expect("it ends");
                }
                tokio::task::yield_now().await;
            }
            sum
        });
        assert_eq!(sum, Some(200 * (1 + 3 + 6)));
    }

    #[test]
    fn work_that_nothing_will_wake_is_stuck() {
        let stuck = run(async {
            let task = tokio::spawn(std::future::pending::<()>());
            tokio::task::yield_now().await;
            task.await
        });
        assert!(stuck.is_none());
    }
}
