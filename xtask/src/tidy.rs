//! The house rules that no compiler checks, read from the clone's own text.
//!
//! Called by `lint` and by this crate's tests. Every rule is a function from
//! [`Tree`] to findings with file, line and the fix; none of them starts a
//! program or writes a file. A rule about a file that does not exist yet
//! begins to apply when the file comes.

mod documents;
mod examples;
mod forms;
mod layers;
mod mask;
mod purity;
mod size;
mod text;
mod tree;

use std::{fmt, path::Path};

use anyhow::Result;

pub(crate) use tree::Tree;

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the clone's root.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong and how to mend it.
    pub(crate) message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// What the rules found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Breaches, by file and line.
    pub(crate) findings: Vec<Finding>,
    /// Worth knowing, no breach.
    pub(crate) notes: Vec<String>,
}

const RULES: &[fn(&Tree) -> Vec<Finding>] = &[
    size::too_long,
    forms::opens_with_docs,
    forms::names,
    forms::ignored_tests,
    forms::unsafe_code,
    forms::unfinished,
    forms::sleeping_tests,
    layers::coordinator,
    layers::core,
    purity::pure_files,
    text::machine_paths,
    text::registry_hosts,
    documents::invariant_lines,
    documents::invariant_tests,
    documents::xtask_commands,
    documents::links,
    examples::keys_documented,
];

/// Applies every rule to the clone at `root`.
///
/// # Errors
/// When git cannot list the files or one cannot be read.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let tree = Tree::read(root)?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort();
    findings.dedup();
    Ok(Report {
        findings,
        notes: size::long(&tree),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clone_is_tidy() {
        let report = super::check(&crate::workspace::root()).unwrap();
        let lines: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
