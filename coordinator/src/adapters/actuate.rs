//! What makes nodes come and go: one adapter per kind of pool.

pub mod asg;
pub mod sim;
pub mod static_hosts;
