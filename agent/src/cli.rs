//! The agent's command line.
//!
//! Called by `main`. stdout is data, stderr is talk. Exit codes: 0 done, 1 failed, 2 usage, 64 bad config.

mod facts;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand, ValueEnum};
use drover_config::FileError;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::clock;
use crate::collector::CollectorConfig;
use crate::config::{self, Config, LogFormat};
use crate::drain;
use crate::probe::child::{self, ProbeArgs};
use crate::release::{self, Released};
use crate::run;
use crate::state::StateDir;

/// Where the config lies unless --config says otherwise.
const CONFIG: &str = "/etc/drover-agent/drover-agent.toml";
/// What does not end by itself within this is left behind.
const LEAVE_BEHIND: Duration = Duration::from_millis(200);
/// `facts` gives one driver call so long.
const FACTS_CALL: Duration = Duration::from_secs(2);
/// `facts` gives nvmlInit and the first handle of a GPU so long.
const FACTS_INIT: Duration = Duration::from_secs(8);
/// Exit code of a bad config.
const BAD_CONFIG: u8 = 64;

/// Drover's node agent.
#[derive(Debug, Parser)]
#[command(
    name = "drover-agent",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, 64 bad config (also one that is not there)."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report this host to its coordinator and carry out its orders.
    Run(ConfigArgs),
    /// Print what the agent sees of this host; needs no coordinator.
    Facts {
        /// Shape of the output.
        #[arg(short, long, value_enum, default_value_t = Output::Table)]
        output: Output,
        /// Read GPU library, matchers and metadata endpoint from this config file.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Tell everything that is wrong with a config file, and with the directories that it names.
    CheckConfig(ConfigArgs),
    /// Break-glass for root: undo what Drover did to this host, let the GPUs go, and let orders wait until `resume`
    /// or the next boot.
    Release {
        #[command(flatten)]
        config: ConfigArgs,
        /// For how long the GPUs are let go (ms, s, m, h, d).
        #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = drover_config::duration)]
        gpu_for: Duration,
    },
    /// Take `release` back.
    Resume(ConfigArgs),
    /// The GPU probe, started by the agent itself.
    #[command(hide = true)]
    GpuProbe(ProbeArgs),
}

#[derive(Debug, clap::Args)]
struct ConfigArgs {
    /// The config file.
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// One object.
    Json,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::GpuProbe(args) => return child::main(&args),
        Command::Run(args) => with_config(&args.config, run_agent),
        Command::Facts { output, config } => {
            facts::print(config.as_deref(), output == Output::Json)
        }
        Command::CheckConfig(args) => config::check(&args.config)
            .map(|notes| {
                for note in notes {
                    eprintln!("note: {note}");
                }
                eprintln!("{} is fine", args.config.display());
            })
            .map_err(Failure::Config),
        Command::Release { config, gpu_for } => {
            with_config(&config.config, |config| release_host(&config, gpu_for))
        }
        Command::Resume(args) => with_config(&args.config, |config| {
            let state = StateDir::open(&config.state_dir)?;
            let was = release::resume(&state)?;
            eprintln!(
                "{}",
                if was {
                    "resumed"
                } else {
                    "not released, nothing to resume"
                }
            );
            Ok(())
        }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Config(error)) => {
            eprintln!("{:#}", anyhow::Error::from(error));
            ExitCode::from(BAD_CONFIG)
        }
        Err(Failure::Other(error)) => {
            eprintln!("drover-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Config(FileError),
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

fn load(path: &Path) -> Result<Config, Failure> {
    config::load(path).map_err(Failure::Config)
}

fn with_config(path: &Path, act: impl FnOnce(Config) -> anyhow::Result<()>) -> Result<(), Failure> {
    Ok(act(load(path)?)?)
}

/// One thread is enough and small; what blocks for long has its own.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_secs(2))
        .max_blocking_threads(16)
        .build()
        .context("the async runtime cannot be made")
}

fn run_agent(config: Config) -> anyhow::Result<()> {
    log_to_stderr(&config.log)?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(run::run(config));
    // A thread that hangs in the kernel is not joined.
    runtime.shutdown_timeout(LEAVE_BEHIND);
    if let Err(error) = outcome {
        eprintln!("drover-agent: {:#}", anyhow::Error::from(error));
        std::process::exit(1);
    }
    std::process::exit(0)
}

fn log_to_stderr(log: &config::Log) -> anyhow::Result<()> {
    let targets: Targets = log.level.parse().context("log.level")?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match log.format {
        LogFormat::Text => layer
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(targets))
        .init();
    Ok(())
}

fn release_host(config: &Config, gpu_for: Duration) -> anyhow::Result<()> {
    let state = StateDir::open(&config.state_dir)?;
    let executors = drain::executors(config, &state);
    let released = runtime()?.block_on(release::release(&state, executors, gpu_for))?;
    match released {
        Released::ByAgent => eprintln!("released: the agent undid ours and let the GPUs go"),
        Released::Already { gpu_until_unix_ms } => {
            eprintln!(
                "already released; the GPUs are let go until {}",
                clock::text(gpu_until_unix_ms)
            );
        }
        Released::Here => eprintln!("released: no agent runs, ours was undone from here"),
        Released::GpuRefused(why) => {
            anyhow::bail!("ours was undone and orders wait, but the GPUs are still held: {why}")
        }
    }
    Ok(())
}

/// What the collector is told by `facts`.
fn facts_config(path: Option<&Path>) -> Result<CollectorConfig, Failure> {
    let mut config = match path {
        Some(path) => run::collector_config(&load(path)?),
        None => CollectorConfig::default(),
    };
    config.interval = Duration::from_millis(500);
    // A person waits: a hang is named sooner than by the agent that runs for weeks.
    config.probe.op_deadline = config.probe.op_deadline.min(FACTS_CALL);
    config.probe.init_deadline = config.probe.init_deadline.min(FACTS_INIT);
    // The running agent's own business.
    config.state_dir = None;
    Ok(config)
}
