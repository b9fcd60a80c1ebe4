//! Lifecycle hooks of a pool's provider, as [`super::actuate::Actuator`] tells of them.

use crate::records::HookOn;
use drover_core::model::Millis;

/// A hook of a pool's group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Name.
    pub name: String,
    /// What it holds.
    pub on: HookOn,
    /// Time that one heartbeat gives.
    pub timeout: Millis,
    /// From the beginning: then no heartbeat helps.
    pub limit: Millis,
}
