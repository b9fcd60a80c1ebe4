//! Layer 6: the one place that names adapters together. Called by `main`.

pub mod serve;
pub mod sim_cloud;
