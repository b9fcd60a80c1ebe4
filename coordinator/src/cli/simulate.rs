//! `drover simulate`: plays a trace against a config on virtual time, with the coordinator's own cycle. Asks no
//! coordinator. `simulate generate` makes a workload.

use super::exit::CliError;
use super::output::{Format, Out, json, say, write_out, yaml};
use super::{Globals, duration};
use crate::sim;
use crate::sim::config::{SimConfig, SimConfigError};
use crate::sim::score::{Run, jobs_file, object, score, table};
use crate::sim::trace::generate::{Wishes, generate};
use crate::sim::trace::read::{Format as TraceFormat, TraceError};
use crate::sim::trace::{Trace, lines, read};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Play a trace, or make one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Verb {
    #[command(subcommand)]
    make: Option<Make>,
    #[command(flatten)]
    play: Play,
}

/// What can be made.
#[derive(Debug, Subcommand)]
enum Make {
    /// Make a workload with bursts, gangs and heavy tails from a seed.
    Generate(Generate),
}

/// Flags of `drover simulate TRACE`.
#[derive(Debug, Args)]
struct Play {
    /// The workload: openb, philly, JSON lines, or a CSV with a header.
    #[arg(value_name = "TRACE", required = true)]
    trace: Option<PathBuf>,
    /// The one file of the simulation: [simulate], the coordinator's tables, the cloud's groups.
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Instead of the config's seed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Format of the trace, where its first line does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = TraceFormat::ALL.map(|(name, _)| name))]
    format: Option<String>,
    /// Write when each job started and ended to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
}

/// Flags of `drover simulate generate`.
#[derive(Debug, Args)]
struct Generate {
    /// The same seed makes the same workload.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// How many jobs.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    jobs: u32,
    /// Within how many days they are submitted.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
    /// Percent of the jobs that come in bursts.
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    bursts: u32,
    /// Percent of the jobs that are gangs of whole nodes.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100))]
    gangs: u32,
    /// GPUs of a node.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus_per_node: u32,
    /// Most nodes of a gang.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    largest_gang: u32,
    /// Half of the jobs run no longer than this.
    #[arg(long, value_name = "DURATION", default_value = "20m", value_parser = duration::parse_ms_positive)]
    typical: u64,
    /// Jobs write a checkpoint this often (default: none).
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_ms_positive)]
    checkpoint: Option<u64>,
    /// Write to this file instead of stdout.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// A file is bad, or the run broke off.
pub fn run(globals: &Globals, out: Out, verb: Verb) -> Result<(), CliError> {
    let _ = globals;
    match verb.make {
        Some(Make::Generate(wishes)) => make(&wishes),
        None => play(out, &verb.play),
    }
}

fn make(asked: &Generate) -> Result<(), CliError> {
    use drover_core::model::Millis;
    let trace = generate(&Wishes {
        seed: asked.seed,
        jobs: asked.jobs,
        span: Millis::minutes(u64::from(asked.days) * 24 * 60),
        burst_percent: asked.bursts,
        gang_percent: asked.gangs,
        gpus_per_node: asked.gpus_per_node,
        largest_gang: asked.largest_gang,
        typical: Millis(asked.typical),
        checkpoint: asked.checkpoint.map(Millis),
    });
    let text = lines::write(&trace)
        .map_err(|error| CliError::Failed(format!("cannot write JSON: {error}")))?;
    match &asked.file {
        Some(path) => {
            std::fs::write(path, text).map_err(|error| CliError::file("write", path, &error))
        }
        None => write_out(text.as_bytes()),
    }
}

/// Says every problem on a line of its own; the error to end with counts them.
fn bad(path: &Path, text: &str) -> CliError {
    let count = text.lines().count();
    say(text);
    let noun = if count == 1 { "problem" } else { "problems" };
    CliError::Config(format!("{} has {count} {noun}", path.display()))
}

fn config(path: &Path) -> Result<SimConfig, CliError> {
    sim::config::load(path).map_err(|error| match &error {
        SimConfigError::Read { path, source } => {
            CliError::Config(format!("cannot read {}: {source}", path.display()))
        }
        SimConfigError::Wrong { path, .. } => bad(path, &error.to_string()),
    })
}

fn trace(path: &Path, setup: &SimConfig, format: Option<&str>) -> Result<Trace, CliError> {
    let mut options = setup.simulate.trace.clone();
    options.format = format.and_then(TraceFormat::named).or(options.format);
    let mut trace = read::load(path, &options).map_err(|error| match &error {
        TraceError::Read { path, source } => {
            CliError::Config(format!("cannot read {}: {source}", path.display()))
        }
        TraceError::Wrong { path, .. } => bad(path, &error.to_string()),
    })?;
    if setup.simulate.skip_unfit {
        sim::engine::leave_out_unfit(&mut trace, setup);
    }
    Ok(trace)
}

fn play(out: Out, asked: &Play) -> Result<(), CliError> {
    // clap insists on both.
    let (Some(path), Some(file)) = (&asked.trace, &asked.config) else {
        return Err(CliError::Usage("name a TRACE and its --config".to_owned()));
    };
    let setup = config(file)?;
    let trace = trace(path, &setup, asked.format.as_deref())?;
    let seed = asked.seed.unwrap_or(setup.simulate.seed);
    let history =
        sim::run(&trace, &setup, seed).map_err(|error| CliError::Failed(chain(&error)))?;
    let offered = sim::offered::of_config(&setup);
    let run = Run {
        trace: &trace,
        history: &history,
        offered: &offered,
        cost: setup.simulate.cost,
        placer: setup.simulate.placer.name(),
        seed,
    };
    if let Some(path) = &asked.jobs {
        jobs_file::write(path, &run).map_err(|error| CliError::Failed(chain(&error)))?;
    }
    let score = score(&run);
    let text = match out.format {
        Format::Json => json(&object(&score))?,
        Format::Yaml => yaml(&object(&score))?,
        Format::Table | Format::Wide => table(&[score]),
    };
    write_out(text.as_bytes())
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
