//! What is read from the host's files: one small module per place, no decisions.
//!
//! Used by `telemetry`, `inventory` and `workloads`. All roots come from `HostPaths`, so that tests can fake them.

pub mod driver;
pub mod files;
pub mod guard;
pub mod mounts;
pub mod pci;
pub mod process;
pub mod users;
