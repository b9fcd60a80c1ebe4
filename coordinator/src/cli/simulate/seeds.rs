//! `drover simulate seeds`: days of small fleets with mishaps, one per seed.

use super::super::exit::CliError;
use super::super::output::{Format, Out, json, say, write_out, yaml};
use crate::sim::seeds::{self, Found};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Flags.
#[derive(Debug, Args)]
pub(super) struct Seeds {
    /// How many seeds, each a day.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    days: u64,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Write each seed that violated something to a file in this directory, made as small as it still does.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What is printed.
#[derive(Serialize)]
struct Sum {
    days: u64,
    first_seed: u64,
    violations: usize,
    found: Vec<Found>,
    broke_off: Vec<(u64, String)>,
    plans: u64,
    jobs: u64,
    jobs_done: u64,
    kills: u64,
    seconds: f64,
    days_per_minute: f64,
}

/// Plays them.
///
/// # Errors
/// Something was violated, or a file cannot be written.
pub(super) fn run(out: Out, asked: &Seeds) -> Result<(), CliError> {
    if let Some(dir) = &asked.keep {
        std::fs::create_dir_all(dir).map_err(|error| CliError::file("make", dir, &error))?;
    }
    let begin = Instant::now();
    let mut sum = Sum {
        days: asked.days,
        first_seed: asked.first,
        violations: 0,
        found: Vec::new(),
        broke_off: Vec::new(),
        plans: 0,
        jobs: 0,
        jobs_done: 0,
        kills: 0,
        seconds: 0.0,
        days_per_minute: 0.0,
    };
    for seed in (asked.first..).take(usize::try_from(asked.days).unwrap_or(usize::MAX)) {
        match seeds::day(seed) {
            Ok(day) => {
                sum.plans += day.plans;
                sum.jobs += u64::from(day.jobs);
                sum.jobs_done += u64::from(day.done);
                sum.kills += u64::from(day.kills);
                let Some(found) = day.found else { continue };
                say(&format!("seed {seed}: {}: {}", found.invariant, found.what));
                sum.found.push(found);
            }
            Err(error) => {
                say(&format!("seed {seed} broke off: {error}"));
                sum.broke_off.push((seed, error.to_string()));
            }
        }
        if let Some(dir) = &asked.keep {
            keep(dir, seed)?;
        }
    }
    sum.violations = sum.found.len() + sum.broke_off.len();
    sum.seconds = begin.elapsed().as_secs_f64();
    // Days are far fewer than 2^52.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let days = sum.days as f64;
    sum.days_per_minute = days / sum.seconds.max(1e-9) * 60.0;
    let text = match out.format {
        Format::Json => json(&sum)?,
        Format::Yaml => yaml(&sum)?,
        Format::Table | Format::Wide => table(&sum),
    };
    write_out(text.as_bytes())?;
    if sum.violations > 0 {
        let text = format!(
            "{} of {} days violated an invariant",
            sum.violations, sum.days
        );
        return Err(CliError::Failed(text));
    }
    Ok(())
}

fn keep(dir: &Path, seed: u64) -> Result<(), CliError> {
    let path = dir.join(format!("{seed}.toml"));
    std::fs::write(&path, seeds::smallest(seed))
        .map_err(|error| CliError::file("write", &path, &error))
}

fn table(sum: &Sum) -> String {
    format!(
        "days             {}\nviolations       {}\njobs             {}\njobs done        {}\nkills            {}\n\
         plans            {}\ndays per minute  {:.0}\n",
        sum.days,
        sum.violations,
        sum.jobs,
        sum.jobs_done,
        sum.kills,
        sum.plans,
        sum.days_per_minute
    )
}
