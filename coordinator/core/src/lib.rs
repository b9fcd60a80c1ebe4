//! Drover's decision core: plain data, rules and the planner.
//!
//! **Invariant:** knows no clock, no network, no randomness, no I/O: same input, same plan, byte for byte. The
//! dependency tree holds no tokio, tonic, kube, aws, rand or clock crate (a lint step checks it).

pub mod model;
pub mod planner;
pub mod rules;
