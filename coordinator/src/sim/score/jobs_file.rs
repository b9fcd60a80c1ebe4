//! What became of each job and of each node it ran on, as a file: enough to compute the score again.
//!
//! Called by `drover simulate --jobs FILE`: CSV, or JSON when the name ends so. Times are seconds since the start of the
//! simulation; what did not happen is empty, or null.

use super::Run;
use crate::sim::offered;
use crate::sim::report::appendable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Columns of the CSV form.
const HEADER: &str = "job,units,submit_s,start_s,end_s,duration_s,kills,waited_for_boot,nodes";

/// The file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct JobsFileError {
    path: PathBuf,
    source: std::io::Error,
}

/// Sees whether it can be written, without changing one that is there: before a long run.
///
/// # Errors
/// It cannot.
pub fn prepare(path: &Path) -> Result<(), JobsFileError> {
    appendable(path).map_err(|source| JobsFileError {
        path: path.to_owned(),
        source,
    })
}

/// Writes it.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, run: &Run<'_>) -> Result<(), JobsFileError> {
    let json = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let text = if json { as_json(run) } else { csv(run) };
    std::fs::write(path, text).map_err(|source| JobsFileError {
        path: path.to_owned(),
        source,
    })
}

/// One line per job; nodes as `number x units`, separated by blanks. Node numbers count from 0 in the order of asking.
#[must_use]
pub fn csv(run: &Run<'_>) -> String {
    let mut text = format!("{HEADER}\n");
    for (job, happened) in run.trace.jobs.iter().zip(&run.history.jobs) {
        let on: Vec<String> = happened
            .on
            .iter()
            .map(|(node, units)| format!("{node}x{units}"))
            .collect();
        let at = |moment: Option<drover_core::model::Millis>| {
            moment.map_or_else(String::new, |moment| seconds(moment.0))
        };
        let cells = [
            quoted(&job.id),
            offered::parts(job).len().to_string(),
            seconds(job.submit.0),
            at(happened.started),
            at(happened.ended),
            seconds(job.duration.0),
            happened.kills.to_string(),
            happened.waited_for_boot.to_string(),
            on.join(" "),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// `{"jobs": [...], "nodes": [...]}`: with the nodes' prices and lives the cost can be added up.
#[must_use]
pub fn as_json(run: &Run<'_>) -> String {
    let seconds = |at: drover_core::model::Millis| offered::ratio(at.0, 1_000);
    let jobs = run.trace.jobs.iter().zip(&run.history.jobs);
    let jobs: Vec<Value> = jobs
        .map(|(job, happened)| {
            json!({
                "job": job.id,
                "units": offered::parts(job).len(),
                "submit_s": seconds(job.submit),
                "start_s": happened.started.map(seconds),
                "end_s": happened.ended.map(seconds),
                "duration_s": seconds(job.duration),
                "kills": happened.kills,
                "moves": happened.moves,
                "waited_for_boot": happened.waited_for_boot,
                "nodes": happened.on,
            })
        })
        .collect();
    let nodes = run.history.nodes.iter();
    let nodes: Vec<Value> = nodes
        .map(|node| {
            json!({
                "pool": node.pool,
                "instance_type": node.instance_type,
                "zone": node.zone,
                "usd_per_hour": offered::ratio(node.price.0, 1_000_000),
                "launched_s": seconds(node.launched),
                "ready_s": node.ready.map(seconds),
                "ended_s": node.ended.map(seconds),
            })
        })
        .collect();
    let end = seconds(run.history.end);
    let all = json!({ "end_s": end, "jobs": jobs, "nodes": nodes });
    format!("{all}\n")
}

/// Seconds, with as many digits as it takes.
fn seconds(ms: u64) -> String {
    match ms % 1_000 {
        0 => (ms / 1_000).to_string(),
        rest => format!("{}.{rest:03}", ms / 1_000),
    }
}

/// A cell that may hold anything.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
