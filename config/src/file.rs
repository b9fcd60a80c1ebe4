//! A file with what is wrong with it, as lines for people: file, line, key, what is wrong, the fix.
//!
//! Called by whoever loads a config file, and by readers of other files that tell their problems alike. Reads the file and
//! nothing else.

use std::path::{Path, PathBuf};

/// One thing wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// The key with its tables ("drain.executors"); empty where it is about no key.
    pub key: String,
    /// What is wrong; the key stands before it.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// Why a file gives nothing.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", render(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All of it, by line.
        problems: Vec<Problem>,
    },
}

fn render(path: &Path, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let gap = if problem.key.is_empty() { "" } else { " " };
            format!(
                "{}:{}: {}{gap}{}; {}",
                path.display(),
                problem.line,
                problem.key,
                problem.message,
                problem.fix
            )
        })
        .collect();
    lines.join("\n")
}

/// Reads a file and what it says.
///
/// # Errors
/// The file cannot be read, or all that `parse` finds wrong with it.
pub fn load<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<Problem>>,
) -> Result<T, FileError> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problems| FileError::Wrong {
        path: path.to_owned(),
        problems,
    })
}
