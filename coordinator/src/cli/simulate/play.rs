//! `drover simulate TRACE`: one run, or several side by side, with their scores, files and report.
//!
//! Called by `cli::simulate`. All runs see the trace as the first config reads it.

use super::names::names;
use super::watched::{chain, watched};
use crate::cli::exit::CliError;
use crate::cli::output::{Format, Out, json, say, write_out, yaml};
use crate::sim;
use crate::sim::compare::{self, Setting, comparison};
use crate::sim::config::SimConfig;
use crate::sim::history::History;
use crate::sim::offered::{Offered, of_config};
use crate::sim::policy::{NAMES, Policy};
use crate::sim::report::{self, Report};
use crate::sim::score::{Run, Score, jobs_file, object, score, table};
use crate::sim::trace::read::Format as TraceFormat;
use crate::sim::trace::{Trace, read};
use clap::Args;
use drover_config::FileError;
use std::path::{Path, PathBuf};

/// Flags of `drover simulate TRACE`.
#[derive(Debug, Args)]
pub(super) struct Play {
    /// The workload: openb, philly, JSON lines, or a CSV with a header.
    /// Not needed when the config has jobs of its own.
    #[arg(value_name = "TRACE")]
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
    /// Run this config too and say what differs; may be given several times.
    #[arg(long, value_name = "FILE")]
    compare: Vec<PathBuf>,
    #[arg(long, value_name = "NAME", value_parser = policy, help = policy_help())]
    policy: Vec<Policy>,
    /// Write a page with plots and the scores into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write when each job started and ended to this file: CSV, or JSON when its name ends in .json.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
}

fn policy_help() -> String {
    format!("Run this policy for comparison too; may be given several times: {NAMES}")
}

fn policy(name: &str) -> Result<Policy, String> {
    name.parse()
        .map_err(|error: sim::policy::PolicyError| error.to_string())
}

/// A run that is over.
struct Played {
    history: History,
    offered: Vec<Offered>,
    setup: SimConfig,
    placer: &'static str,
    seed: u64,
}

/// Plays everything that was asked for.
pub(super) fn play(out: Out, asked: &Play) -> Result<(), CliError> {
    // clap insists on it.
    let Some(file) = &asked.config else {
        return Err(CliError::Usage("name a --config".to_owned()));
    };
    let setup = config(file)?;
    let trace = match &asked.trace {
        Some(path) => trace(path, &setup, asked.format.as_deref())?,
        None => own_jobs(file, &setup)?,
    };
    // Whatever can be refused is refused before minutes are computed.
    let others = asked.compare.iter().map(|path| config(path));
    let others: Vec<SimConfig> = others.collect::<Result<_, _>>()?;
    let settings = settings(file, &asked.compare)?;
    for policy in &asked.policy {
        let checked = policy.check(&of_config(&setup));
        checked.map_err(|error| CliError::Usage(error.to_string()))?;
    }
    if let Some(path) = &asked.jobs {
        jobs_file::prepare(path).map_err(|error| CliError::Failed(chain(&error)))?;
    }
    if let Some(folder) = &asked.report {
        report::prepare(folder).map_err(|error| CliError::Failed(chain(&error)))?;
    }
    let mut played = Vec::new();
    let files = std::iter::once(file).chain(&asked.compare);
    let names = names(&files.map(PathBuf::as_path).collect::<Vec<_>>());
    for (setup, name) in std::iter::once(setup.clone()).chain(others).zip(names) {
        let seed = asked.seed.unwrap_or(setup.simulate.seed);
        let mut history = watched(out, &trace, &setup, seed)?;
        if !asked.compare.is_empty() {
            history.policy = format!("drover {name}");
        }
        played.push(Played {
            history,
            offered: of_config(&setup),
            placer: setup.simulate.placer.name(),
            seed,
            setup,
        });
    }
    for policy in &asked.policy {
        played.push(beside(policy, &trace, &setup, asked.seed)?);
    }
    let runs: Vec<Run<'_>> = played
        .iter()
        .map(|one| Run {
            trace: &trace,
            history: &one.history,
            offered: &one.offered,
            cost: one.setup.simulate.cost,
            placer: one.placer,
            seed: one.seed,
        })
        .collect();
    let scores: Vec<Score> = runs.iter().map(score).collect();
    // First, so that it is there even when a file cannot be written after all.
    print(out, &scores, &settings)?;
    write(asked, &runs, &scores, &settings)
}

/// The files that were asked for.
fn write(
    asked: &Play,
    runs: &[Run<'_>],
    scores: &[Score],
    settings: &[Setting],
) -> Result<(), CliError> {
    if let (Some(path), Some(first)) = (&asked.jobs, runs.first()) {
        jobs_file::write(path, first).map_err(|error| CliError::Failed(chain(&error)))?;
    }
    if let Some(folder) = &asked.report {
        let report = Report {
            runs,
            scores,
            settings,
        };
        let page = report::write(folder, &report);
        let page = page.map_err(|error| CliError::Failed(chain(&error)))?;
        say(&format!("report: {}", page.display()));
    }
    Ok(())
}

/// The jobs that stand in the config.
fn own_jobs(file: &Path, setup: &SimConfig) -> Result<Trace, CliError> {
    if setup.simulate.jobs.is_empty() {
        let text = format!(
            "name a TRACE: {} has no [[simulate.job]] of its own",
            file.display()
        );
        return Err(CliError::Usage(text));
    }
    let name = file.file_name().unwrap_or_default();
    let mut trace = Trace {
        name: name.to_string_lossy().into_owned(),
        jobs: setup.simulate.jobs.clone(),
        skipped: Vec::new(),
    };
    trace.sort();
    if setup.simulate.skip_unfit {
        sim::engine::leave_out_unfit(&mut trace, setup);
    }
    Ok(trace)
}

/// A policy for comparison, on what the first config offers.
fn beside(
    policy: &Policy,
    trace: &Trace,
    setup: &SimConfig,
    seed: Option<u64>,
) -> Result<Played, CliError> {
    let offered = of_config(setup);
    let seed = seed.unwrap_or(setup.simulate.seed);
    let history = policy
        .run(trace, &offered, seed)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(Played {
        history,
        offered,
        setup: setup.clone(),
        placer: policy.placer(),
        seed,
    })
}

/// What differs between the configs.
fn settings(first: &Path, others: &[PathBuf]) -> Result<Vec<Setting>, CliError> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut texts = Vec::new();
    for path in std::iter::once(first).chain(others.iter().map(PathBuf::as_path)) {
        let text = std::fs::read_to_string(path);
        texts.push(text.map_err(|error| CliError::file("read", path, &error))?);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    compare::settings(&texts).map_err(|error| CliError::Config(error.message().to_owned()))
}

fn print(out: Out, scores: &[Score], settings: &[Setting]) -> Result<(), CliError> {
    let whole = match scores {
        [one] => object(one),
        several => comparison(several, settings),
    };
    let text = match out.format {
        Format::Json => json(&whole)?,
        Format::Yaml => yaml(&whole)?,
        Format::Table | Format::Wide => {
            let mut text = table(scores);
            text.push_str(&compare::words(scores, settings));
            text
        }
    };
    write_out(text.as_bytes())
}

/// Says every problem on a line of its own; the error to end with counts them.
fn bad(path: &Path, text: &str) -> CliError {
    let count = text.lines().count();
    say(text);
    let noun = if count == 1 { "problem" } else { "problems" };
    CliError::Config(format!("{} has {count} {noun}", path.display()))
}

fn refused(error: &FileError) -> CliError {
    match error {
        FileError::Read { path, source } => {
            CliError::Config(format!("cannot read {}: {source}", path.display()))
        }
        FileError::Wrong { path, .. } => bad(path, &error.to_string()),
    }
}

fn config(path: &Path) -> Result<SimConfig, CliError> {
    sim::config::load(path).map_err(|error| refused(&error))
}

fn trace(path: &Path, setup: &SimConfig, format: Option<&str>) -> Result<Trace, CliError> {
    let mut options = setup.simulate.trace.clone();
    options.format = format.and_then(TraceFormat::named).or(options.format);
    let mut trace = read::load(path, &options).map_err(|error| refused(&error))?;
    if setup.simulate.skip_unfit {
        sim::engine::leave_out_unfit(&mut trace, setup);
    }
    if trace.jobs.is_empty() {
        let left: Vec<String> = trace
            .skipped
            .iter()
            .map(|(why, n)| format!("{n}: {why}"))
            .collect();
        let text = format!(
            "no job of {} is left to play ({})",
            path.display(),
            left.join(", ")
        );
        return Err(CliError::Config(text));
    }
    Ok(trace)
}
