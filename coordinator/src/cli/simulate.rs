//! `drover simulate`: plays a trace against a config on virtual time, with the coordinator's own cycle. Asks no
//! coordinator. `simulate generate` makes a workload, `simulate seeds` plays days of mishaps.

mod names;
mod play;
mod seeds;
mod watched;

use super::exit::CliError;
use super::output::{Out, write_out};
use super::{Globals, duration};
use crate::sim::trace::generate::{Wishes, generate};
use crate::sim::trace::lines;
use clap::{Args, Subcommand};
use play::Play;
use std::path::PathBuf;

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
    /// Play days of small fleets with mishaps, one per seed, and say what was violated.
    Seeds(seeds::Seeds),
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
        Some(Make::Seeds(asked)) => seeds::run(out, &asked),
        None => play::play(out, &verb.play),
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
