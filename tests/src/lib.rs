//! What the end-to-end suites share: the peers that they run against, and peers of our own.
//!
//! Used by tests only. It must not depend on the coordinator, so that the coordinator's tests can use it.

pub mod aws_proxy;
pub mod clock;
pub mod cloud;
pub mod coordinator;
pub mod exposition;
pub mod host;
pub mod identity_document;
pub mod imds;
pub mod moto;
pub mod played_agent;
pub mod programs;
pub mod wait;
pub mod wire;
