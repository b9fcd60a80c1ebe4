//! `drover simulate`: plays a trace against a config on virtual time, with the coordinator's own cycle. Asks no
//! coordinator. `simulate generate` makes a workload.

use super::exit::CliError;
use super::output::{Out, Page, Sheet, say, write_out};
use super::{Globals, duration};
use crate::sim;
use crate::sim::config::{SimConfig, SimConfigError};
use crate::sim::history::History;
use crate::sim::trace::generate::{Wishes, generate};
use crate::sim::trace::read::{Format, TraceError};
use crate::sim::trace::{Trace, lines, read};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
    #[arg(long, value_name = "FORMAT", value_parser = Format::ALL.map(|(name, _)| name))]
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
    options.format = format.and_then(Format::named).or(options.format);
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
    let began = Instant::now();
    let history =
        sim::run(&trace, &setup, seed).map_err(|error| CliError::Failed(chain(&error)))?;
    if let Some(path) = &asked.jobs {
        let text = jobs(&trace, &history);
        std::fs::write(path, text).map_err(|error| CliError::file("write", path, &error))?;
    }
    out.one(&Summary::new(
        &trace,
        &setup,
        seed,
        &history,
        began.elapsed().as_secs_f64(),
    ))
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

/// When each job started and ended, so that anyone can compute a score.
fn jobs(trace: &Trace, history: &History) -> String {
    let mut text = String::from("job,submit_ms,started_ms,ended_ms,kills,nodes\n");
    let moment =
        |at: Option<drover_core::model::Millis>| at.map_or_else(String::new, |at| at.0.to_string());
    for (job, found) in trace.jobs.iter().zip(&history.jobs) {
        let on: Vec<String> = found
            .on
            .iter()
            .map(|(node, units)| format!("{node}x{units}"))
            .collect();
        text.push_str(&format!(
            "{},{},{},{},{},{}\n",
            job.id,
            job.submit.0,
            moment(found.started),
            moment(found.ended),
            found.kills,
            on.join(" ")
        ));
    }
    text
}

/// What a run gave.
#[derive(Debug, Serialize)]
struct Summary {
    trace: String,
    policy: String,
    placer: &'static str,
    seed: u64,
    jobs: usize,
    jobs_left_out: u32,
    jobs_started: usize,
    jobs_killed: u32,
    cost_usd: f64,
    cost_node_hours: f64,
    nodes: usize,
    simulated_ms: u64,
    plans: u64,
    plan_seconds: f64,
    violations: Vec<String>,
    run_seconds: f64,
}

impl Summary {
    fn new(
        trace: &Trace,
        setup: &SimConfig,
        seed: u64,
        history: &History,
        run_seconds: f64,
    ) -> Self {
        let hours: u64 = history
            .nodes
            .iter()
            .map(|node| {
                node.ended
                    .unwrap_or(history.end)
                    .0
                    .saturating_sub(node.launched.0)
            })
            .sum();
        let violations = history.violations.iter().take(20);
        Self {
            trace: trace.name.clone(),
            policy: history.policy.clone(),
            placer: setup.simulate.placer.name(),
            seed,
            jobs: trace.jobs.len(),
            jobs_left_out: trace.skipped.iter().map(|(_, count)| count).sum(),
            jobs_started: history
                .jobs
                .iter()
                .filter(|job| job.started.is_some())
                .count(),
            jobs_killed: history.jobs.iter().map(|job| job.kills).sum(),
            cost_usd: sim::score::cost(history),
            cost_node_hours: hours as f64 / 3_600_000.0,
            nodes: history.nodes.len(),
            simulated_ms: history.end.0,
            plans: history.plans,
            plan_seconds: history.plan_seconds,
            violations: violations
                .map(|(at, which, what)| format!("{} ms: {which}: {what}", at.0))
                .collect(),
            run_seconds,
        }
    }
}

impl Sheet for Summary {
    fn sheet(&self, page: &mut Page, _: u64) {
        page.line("Trace", Some(&self.trace));
        page.line(
            "Policy",
            Some(format!("{}, placed by {}", self.policy, self.placer)),
        );
        page.line(
            "Jobs",
            Some(format!("{} ({} left out)", self.jobs, self.jobs_left_out)),
        );
        page.line("Started", Some(self.jobs_started));
        page.line("Killed", Some(self.jobs_killed));
        page.line(
            "Cost",
            Some(format!(
                "{:.2} USD, {:.1} node-hours",
                self.cost_usd, self.cost_node_hours
            )),
        );
        page.line("Nodes ever", Some(self.nodes));
        page.line("Simulated", Some(duration::span(self.simulated_ms)));
        page.line(
            "Plans",
            Some(format!("{} in {:.2} s", self.plans, self.plan_seconds)),
        );
        page.line("Took", Some(format!("{:.1} s", self.run_seconds)));
        page.lines("Violations", &self.violations);
    }
}
