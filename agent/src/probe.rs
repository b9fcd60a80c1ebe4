//! The GPU probe: NVML in a child process, because a driver call can hang in the kernel or crash the caller.
//!
//! `main` runs [`child::main`] for the hidden subcommand `gpu-probe`; the collector runs [`parent::spawn`]. Nothing
//! outside [`child`] may touch NVML.

pub mod child;
pub mod op;
pub mod parent;
pub mod protocol;
pub mod view;
