//! Layer 7: the binary. Reads the command line and hands it to `app` (the daemon's verbs) or `cli` (everything that
//! asks a running coordinator). Must stay thin: no verb is done here.

use clap::{CommandFactory, Parser, Subcommand};
use drover::{app, cli};
use std::process::ExitCode;

/// Drover's coordinator and its admin CLI.
#[derive(Parser)]
#[command(
    name = "drover",
    version,
    about = "Drover watches GPU machines and brings capacity up and down to demand",
    after_help = cli::exit::HELP,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Root {
    #[command(flatten)]
    globals: cli::Globals,
    #[command(subcommand)]
    verb: Verb,
}

/// All verbs: the admin CLI's, and those of the coordinator itself.
#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Admin(cli::Verb),
    /// Run the coordinator.
    Serve(app::serve::Args),
    /// Tell everything that is wrong with a config file, and what it would change.
    CheckConfig(app::check_config::Args),
    /// Fill an empty state directory from a backup; it starts frozen.
    Restore(cli::backup::RestoreArgs),
    /// The simulated cloud as a process of its own.
    #[command(subcommand)]
    SimCloud(cli::sim_cloud::Verb),
}

fn main() -> ExitCode {
    let root = Root::try_parse().unwrap_or_else(|error| {
        let words: Vec<String> = std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        cli::usage::explained(error, &words, Root::command).exit()
    });
    match root.verb {
        Verb::Admin(verb) => cli::run(&root.globals, verb, Root::command),
        Verb::Serve(args) => app::serve::run(&args),
        Verb::CheckConfig(args) => app::check_config::run(&root.globals, &args),
        Verb::Restore(args) => app::restore::run(&args),
        Verb::SimCloud(cli::sim_cloud::Verb::Run { config }) => app::sim_cloud::run(&config),
        Verb::SimCloud(cli::sim_cloud::Verb::Ledger { cloud }) => {
            cli::block_on(cli::sim_cloud::ledger(&root.globals, cloud))
        }
    }
}
