//! Layer 6: the one place that names adapters together. Called by `main`.

pub mod check_config;
pub mod restore;
pub mod serve;
pub mod sim_cloud;
