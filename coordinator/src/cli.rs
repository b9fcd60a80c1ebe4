//! Layer 5: the admin CLI, one file per noun. Called by main with the parsed command line. Talks to the coordinator
//! over `drover_proto` only, never to control, adapters or the store; `plan --from` alone asks the planner itself,
//! and `simulate` the simulator.

pub mod api_calls;
pub mod approve;
pub mod audit;
pub mod backup;
pub mod certificates;
pub mod completions;
pub mod connect;
pub mod context;
pub mod contexts;
pub mod demand;
pub mod duration;
pub mod events;
pub mod exit;
pub mod explain;
pub mod freeze;
pub mod nodes;
pub mod output;
pub mod plan;
pub mod pools;
pub mod reference;
pub mod requests;
pub mod sim_cloud;
pub mod simulate;
pub mod status;
pub mod tokens;
pub mod usage;

use clap::{Args, Subcommand};
use exit::CliError;
use output::{Format, Out, say};
use std::process::ExitCode;

/// Flags of every verb.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// Context to use instead of the current one.
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "DROVER_CONTEXT",
        help_heading = "Global options"
    )]
    pub context: Option<String>,
    /// Form of the result.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Global options"
    )]
    pub output: Format,
    /// No colour and no progress bar.
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_color: bool,
    /// How long to wait for an answer (30s); for `requests wait`, how long to wait in all (no limit).
    #[arg(long = "timeout", global = true, value_name = "DURATION", value_parser = duration::parse_ms_positive, help_heading = "Global options")]
    pub timeout_ms: Option<u64>,
}

/// Verbs that ask a running coordinator, or need none.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// How the fleet is: nodes, cost, alarms, what waits for approval.
    Status,
    /// Machines: see them, cordon, drain.
    #[command(subcommand)]
    Nodes(nodes::Verb),
    /// Pools: see them, set modes and limits, pause.
    #[command(subcommand)]
    Pools(pools::Verb),
    /// Capacity requests: ask for GPUs, CPUs or nodes and wait for them.
    #[command(subcommand)]
    Requests(requests::Verb),
    /// What waits for capacity, by class.
    #[command(subcommand)]
    Demand(demand::Verb),
    /// The last plan, a fresh one, or the plan of a saved input.
    Plan(plan::Args),
    /// Why a node, pool or request is as it is.
    Explain(explain::Args),
    /// What happened.
    Events(events::Args),
    /// Stop every change, of the fleet or of one pool.
    Freeze(freeze::FreezeArgs),
    /// Allow changes again.
    Thaw(freeze::ThawArgs),
    /// Let something happen that the breaker holds back.
    Approve(approve::Args),
    /// Join tokens for agents.
    #[command(subcommand)]
    Tokens(tokens::Verb),
    /// Client certificates for people and scripts.
    #[command(subcommand)]
    Certificates(certificates::Verb),
    /// Who changed what.
    #[command(subcommand)]
    Audit(audit::Verb),
    /// What was asked of AWS, and the limits that are kept to.
    ApiCalls,
    /// Save the store and the CA key, sealed, while the coordinator runs.
    Backup(backup::BackupArgs),
    /// Which coordinator is spoken to, and as whom.
    #[command(subcommand)]
    Context(contexts::Verb),
    /// Shell completions, to stdout.
    Completions(completions::Args),
    /// Play a workload against a config on virtual time: what it would cost, and who would wait.
    Simulate(simulate::Verb),
    /// Version of this program and, if asked, of the coordinator.
    Version(status::VersionArgs),
    /// This command line as a Markdown page.
    #[command(hide = true)]
    Reference,
}

/// Runs one verb that asks a coordinator, or needs none.
pub fn run(globals: &Globals, verb: Verb, root: fn() -> clap::Command) -> ExitCode {
    block_on(dispatch(globals, verb, root))
}

/// Runs one verb to its end and says what went wrong on stderr, on one line.
pub fn block_on(verb: impl Future<Output = Result<(), CliError>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(verb),
        Err(error) => Err(CliError::Failed(format!("cannot start: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {}", exit::one_line(&error.to_string())));
            ExitCode::from(&error)
        }
    }
}

async fn dispatch(
    globals: &Globals,
    verb: Verb,
    root: fn() -> clap::Command,
) -> Result<(), CliError> {
    let out = Out::new(globals.output, globals.no_color);
    match verb {
        Verb::Status => status::run(globals, out).await,
        Verb::Nodes(verb) => nodes::run(globals, out, verb).await,
        Verb::Pools(verb) => pools::run(globals, out, verb).await,
        Verb::Requests(verb) => requests::run(globals, out, verb).await,
        Verb::Demand(verb) => demand::run(globals, out, verb).await,
        Verb::Plan(args) => plan::run(globals, out, args).await,
        Verb::Explain(args) => explain::run(globals, out, args).await,
        Verb::Events(args) => events::run(globals, out, args).await,
        Verb::Freeze(args) => freeze::freeze(globals, out, args).await,
        Verb::Thaw(args) => freeze::thaw(globals, out, args).await,
        Verb::Approve(args) => approve::run(globals, out, args).await,
        Verb::Tokens(verb) => tokens::run(globals, out, verb).await,
        Verb::Certificates(verb) => certificates::run(globals, out, verb).await,
        Verb::Audit(verb) => audit::run(globals, out, verb).await,
        Verb::ApiCalls => api_calls::run(globals, out).await,
        Verb::Backup(args) => backup::run(globals, args).await,
        Verb::Context(verb) => contexts::run(globals, out, verb),
        Verb::Completions(args) => completions::run(&args, root()),
        Verb::Simulate(verb) => simulate::run(globals, out, verb),
        Verb::Version(args) => status::version(globals, out, args).await,
        Verb::Reference => output::write_out(reference::markdown(root()).as_bytes()),
    }
}
