//! `cargo xtask`: Drover's own test, lint and benchmark commands.
//!
//! Called by people and by `.ci/run`. One module per command; the modules hold
//! the work, this file only picks one. It must stay light: it is compiled
//! before anything else can start.

mod bench;
mod catalogue;
mod command;
mod demo;
mod lint;
mod peers;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Drover's build, test and benchmark commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One variant per command, one module per variant.
#[derive(clap::Subcommand)]
enum Command {
    /// Build everything once, start the peers and run every test.
    Test(test::Args),
    /// Check format, clippy, licences, dependencies and the house rules.
    Lint(lint::Args),
    /// Play the whole story on this machine: a rack, a cloud of three regions, 1,661 GPUs.
    Demo(demo::Args),
    /// Measure one thing against its budget.
    Bench(bench::Args),
    /// Write the compiled-in list of EC2 instance types anew from the facts beside it.
    Catalogue(catalogue::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Catalogue(args) => catalogue::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
