//! Layer 3: the simulated cloud, pure: groups, offerings with boot delays, prices and shortages, instances.
//!
//! Shared by the `sim` pool, the cloud process (`adapters/cloud`) and the simulator. Knows no clock (time is an
//! argument), no I/O and no randomness but its own seeded generator: same calls, same world.

pub mod generator;
pub mod spec;
mod state;
pub mod trouble;
mod types;

pub use spec::{GroupSpec, MarketSpec, OfferingSpec, SpecError, WindowSpec, WorldSpec};
pub use state::{GroupState, World};
pub use trouble::{ApiSpec, ApiTrouble, TroubleSpec};
pub use types::{
    Ask, Granted, InstanceRecord, InstanceStatus, Refusal, Tally, WorldError, WorldEvent,
};
