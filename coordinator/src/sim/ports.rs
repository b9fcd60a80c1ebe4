//! The virtual ports: what control sees of the stage, and its hands on it.

pub(super) mod agents;
pub(super) mod cloud;
pub(super) mod fragile;
pub(super) mod queue;
