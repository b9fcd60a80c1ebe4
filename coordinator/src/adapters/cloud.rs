//! The simulated cloud as something that lives: the pure `world` with a wall clock, its gRPC service, a metadata
//! service per instance and, when told so, a real process per instance.
//!
//! Run by `drover sim-cloud`, or embedded in the coordinator by the `sim` pool. It knows nothing of the coordinator:
//! what it counts (instances, ends, jobs killed) is its own witness.

pub mod config;
pub mod engine;
pub mod metadata;
pub mod process;
mod read;
pub mod rpc;

pub use config::{CloudConfig, load_world};
pub use engine::Engine;
pub(crate) use read::groups;
