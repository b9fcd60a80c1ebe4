//! Layer 1: state machines as `step(state, event, now) -> (state, actions)`. They know no I/O and no planner.

pub mod access;
