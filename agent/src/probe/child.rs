//! The child's side of the probe: owns NVML, answers one line per request, ends when its standard input does.
//!
//! Run by `main` as `drover-agent gpu-probe`, started by the collector only. It must not start a tokio runtime or keep
//! anything but NVML.

use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `drover-agent gpu-probe`.
#[derive(Debug, Clone, clap::Args)]
pub struct ProbeArgs {
    /// The NVML library; default: libnvidia-ml.so.1 by the loader's search path.
    #[arg(long, value_name = "PATH")]
    pub library: Option<PathBuf>,
}

/// Runs the child until its standard input ends.
#[must_use]
pub fn main(args: &ProbeArgs) -> ExitCode {
    let _ = args;
    ExitCode::SUCCESS
}
