//! Time as a port, so that the simulator and the tests own it.

use drover_core::model::{Millis, UnixMs};

/// Two clocks: the wall clock may jump, the monotonic one may not. `control` compares them every cycle.
pub trait Clock: Send + Sync {
    /// Wall clock.
    fn wall(&self) -> UnixMs;
    /// Time since some fixed moment of this process; counts suspend where the system can.
    fn mono(&self) -> Millis;
}
