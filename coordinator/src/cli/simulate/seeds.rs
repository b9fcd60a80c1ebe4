//! `drover simulate seeds`: days of small fleets with mishaps, one per seed.

use super::super::exit::CliError;
use super::super::output::{Format, Out, json, say, write_out, yaml};
use crate::sim::engine::SimError;
use crate::sim::seeds::{self, Day, Found};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
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
    /// How many days are played at a time (default: one per core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    threads: Option<u16>,
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
    let bar = out.progress.then(|| bar(asked.days));
    each(asked, |seed, played| {
        if let Some(bar) = &bar {
            bar.inc(1);
        }
        let Some(text) = sum.take(seed, played) else {
            return Ok(());
        };
        match &bar {
            Some(bar) => bar.suspend(|| say(&text)),
            None => say(&text),
        }
        asked.keep.as_deref().map_or(Ok(()), |dir| keep(dir, seed))
    })?;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    sum.found.sort_by_key(|found| found.seed);
    sum.broke_off.sort();
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

impl Sum {
    /// Adds a day; what is to be said of it, if anything.
    fn take(&mut self, seed: u64, played: Result<Day, SimError>) -> Option<String> {
        match played {
            Ok(day) => {
                self.plans += day.plans;
                self.jobs += u64::from(day.jobs);
                self.jobs_done += u64::from(day.done);
                self.kills += u64::from(day.kills);
                let found = day.found?;
                let text = format!("seed {seed}: {}: {}", found.invariant, found.what);
                self.found.push(found);
                Some(text)
            }
            Err(error) => {
                let text = format!("seed {seed} broke off: {error}");
                self.broke_off.push((seed, error.to_string()));
                Some(text)
            }
        }
    }
}

/// Plays every day, on several threads, and hands each on as it is over.
fn each(
    asked: &Seeds,
    mut take: impl FnMut(u64, Result<Day, SimError>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = asked.threads.map_or_else(cores, usize::from);
    let end = asked.first.saturating_add(asked.days);
    let next = AtomicU64::new(asked.first);
    let (over, played) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (over, next) = (over.clone(), &next);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody takes it any more: something else went wrong.
                    if seed >= end || over.send((seed, seeds::day(seed))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(over);
        played
            .into_iter()
            .try_for_each(|(seed, day)| take(seed, day))
    })
}

fn bar(days: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(days), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("[{bar:32}] {pos}/{len} days, {eta} left") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
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
