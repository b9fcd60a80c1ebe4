//! Wakes the cycle, and lets a caller know which cycle has seen its wish.
//!
//! Called by commands and by the tasks that feed the cycle. A counter, nothing more.

use std::sync::Arc;
use tokio::sync::watch;

/// A bell that may be rung from anywhere. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Wake(Arc<watch::Sender<u64>>);

impl Default for Wake {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Wake {
    /// Wakes the cycle; a cycle whose `woken` is at least the answer began after this call.
    pub fn call(&self) -> u64 {
        let mut at = 0;
        self.0.send_modify(|count| {
            *count += 1;
            at = *count;
        });
        at
    }

    /// How often it was rung.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// For the loop that waits.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
