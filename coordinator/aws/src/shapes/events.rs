//! Messages of a queue and answers to hooks.
//!
//! Filled by `sdk/events`, read by the coordinator's notice source, which parses the bodies.

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// AWS's id of it.
    pub id: String,
    /// What deletes it.
    pub receipt: String,
    /// Its text: an EventBridge event or a lifecycle hook's notification, as JSON.
    pub body: String,
}

/// The answer to a lifecycle hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookAnswer {
    /// The change goes on.
    Continue,
    /// A launch is given up; a termination goes on without further hooks.
    Abandon,
}
