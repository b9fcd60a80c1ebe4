//! One run, with a bar on a terminal that shows how far it is. Called by `play`.

use crate::cli::exit::CliError;
use crate::cli::output::Out;
use crate::sim::config::SimConfig;
use crate::sim::engine::{SimError, run_telling};
use crate::sim::history::History;
use crate::sim::trace::Trace;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};

const DAY_MS: u64 = 86_400_000;

/// Plays one run; on a terminal a bar shows how far it is.
pub(super) fn watched(
    out: Out,
    trace: &Trace,
    setup: &SimConfig,
    seed: u64,
) -> Result<History, CliError> {
    let failed = |error: SimError| CliError::Failed(chain(&error));
    if !out.progress {
        return crate::sim::run(trace, setup, seed).map_err(failed);
    }
    let all = u64::try_from(trace.jobs.len()).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
    let style = "[{bar:32}] {pos}/{len} jobs over, day {msg}, {elapsed}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style.progress_chars("=> "));
    }
    let day = AtomicU64::new(u64::MAX);
    let history = run_telling(trace, setup, seed, &|progress| {
        let now = progress.at.0 / DAY_MS;
        if day.swap(now, Ordering::Relaxed) != now {
            bar.set_message(now.to_string());
        }
        bar.set_position(u64::try_from(progress.done).unwrap_or(u64::MAX));
    });
    bar.finish_and_clear();
    history.map_err(failed)
}

/// An error with its sources.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
