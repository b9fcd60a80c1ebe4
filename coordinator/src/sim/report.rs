//! The report: one HTML page with its plots inside, for people who were not there. No script, nothing from elsewhere.
//!
//! Called by `drover simulate --report DIR`. Shows what the scores and histories say and decides nothing. Every text from
//! a trace or a config is escaped.

mod charts;
mod page;
mod series;
mod svg;

use super::compare::Setting;
use super::score::{Run, Score, object};
use std::path::{Path, PathBuf};

/// What is shown; the first run is the one that the others are compared with.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Runs over one trace.
    pub runs: &'a [Run<'a>],
    /// Their scores, in the same order.
    pub scores: &'a [Score],
    /// Settings that differ between the configs of the first runs; empty where there is only one config.
    pub settings: &'a [Setting],
}

/// The report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct ReportError {
    path: PathBuf,
    source: std::io::Error,
}

/// What is written.
const FILES: [&str; 2] = ["index.html", "scores.json"];

/// Makes the folder and sees whether the files can be written, without changing any that is there: before a long run.
///
/// # Errors
/// The folder cannot be made, or a file not be written.
pub fn prepare(folder: &Path) -> Result<(), ReportError> {
    let failed = |path: &Path, source| ReportError {
        path: path.to_owned(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    for path in FILES.map(|name| folder.join(name)) {
        appendable(&path).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}

/// The file can be written; it is made if it is not there, and else left as it is.
pub(crate) fn appendable(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(path).map(|_| ())
}

/// Writes `index.html` and `scores.json` into the folder, which is made; the page's path.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(folder: &Path, report: &Report<'_>) -> Result<PathBuf, ReportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ReportError { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let [page, scores] = FILES.map(|name| folder.join(name));
    let objects: Vec<_> = report.scores.iter().map(object).collect();
    let text = format!("{}\n", serde_json::Value::Array(objects));
    std::fs::write(&scores, text).map_err(failed(&scores))?;
    std::fs::write(&page, page::html(report)).map_err(failed(&page))?;
    Ok(page)
}

#[cfg(test)]
mod tests;
