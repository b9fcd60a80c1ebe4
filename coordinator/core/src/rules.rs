//! Layer 1: state machines as `step(state, event, now) -> (state, actions)`. They know no I/O and no planner.

pub mod access;
pub mod breaker;
pub mod capacity;
pub mod clock;
pub mod drain;
pub mod idle;
pub mod launch;
pub mod learn;
pub mod lifecycle;
pub mod lives;
pub mod site;
pub mod waves;
