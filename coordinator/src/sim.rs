//! Layer 5: `drover simulate`. Traces, the virtual ports around the very same `control::cycle`, what places jobs, the
//! score, the policies for comparison and the report.
//!
//! Called by the CLI and the benchmarks. **Invariant:** it differs from production only in the ports it passes.

pub mod bounds;
pub mod compare;
pub mod config;
pub mod engine;
pub mod fault;
pub mod history;
mod invariants;
mod job_table;
pub mod offered;
mod placer;
pub mod policy;
mod ports;
pub mod report;
mod scenario;
pub mod score;
pub mod seeds;
mod stage;
pub mod trace;

#[cfg(test)]
mod reference;

pub use engine::run;
