//! The node agent as a library, so that its binary and the tests share it.
//!
//! Pure modules at the bottom (drain/machine, session/{machine,backoff,outbox}, telemetry/window,
//! inventory/merge, identity/renew), I/O leaves above them, tasks that join them on top; `main` is thin.

pub mod cli;
pub mod clock;
pub mod collector;
pub mod config;
pub mod drain;
pub mod host;
pub mod identity;
pub mod imds;
pub mod inventory;
pub mod notices;
pub mod notify;
pub mod observation;
pub mod order;
pub mod probe;
pub mod release;
pub mod run;
pub mod session;
pub mod state;
pub mod telemetry;
pub mod workloads;
