//! Drover's wire contract: generated types and clients, and the limits that both ends enforce.
//!
//! Wire types stop at each side's `convert.rs`; nothing here decides anything.

pub mod limits;

/// The fleet: agent and admin service.
#[expect(
    missing_docs,
    clippy::allow_attributes_without_reason,
    reason = "generated; documented in the proto files"
)]
pub mod v1 {
    tonic::include_proto!("drover.v1");
}

/// The simulated cloud.
#[expect(
    missing_docs,
    clippy::allow_attributes_without_reason,
    reason = "generated; documented in the proto files"
)]
pub mod sim {
    tonic::include_proto!("drover.sim.v1");
}
