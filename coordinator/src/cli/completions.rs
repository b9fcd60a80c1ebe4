//! `drover completions SHELL`. Called by `cli`; needs no coordinator.

use super::exit::CliError;
use super::output::write_out;
use clap_complete::Shell;

/// Shell completions.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// For which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script to stdout.
///
/// # Errors
/// stdout cannot be written.
pub fn run(args: &Args, mut root: clap::Command) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "drover", &mut script);
    write_out(&script)
}
