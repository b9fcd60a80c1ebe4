//! The node agent's binary: parses the command line and hands over to the library.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use drover_agent::probe::child::{self, ProbeArgs};

/// Drover's node agent.
#[derive(Debug, Parser)]
#[command(name = "drover-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The GPU probe, started by the agent itself.
    #[command(hide = true)]
    GpuProbe(ProbeArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::GpuProbe(args) => child::main(&args),
    }
}
