//! Rules that hold documents and code together: invariants, commands, links.
//!
//! Called by `tidy`. Each begins to apply when its document exists. That the
//! commands of `drover` and `drover-agent` in the README exist is tested against
//! the binaries, in tests/.

use clap::CommandFactory as _;

use super::{Finding, Tree};

/// The invariants by number and name; the design's own list.
const INVARIANTS: &[&str] = &[
    "no_job_killed",
    "protected_by_construction",
    "never_beyond_limits",
    "ask_once",
    "mine_only",
    "silence_is_not_death",
    "undo_only_own",
    "gang_whole",
    "always_explained",
    "fenced",
    "bounded_retry",
    "cheapest_first",
    "idle_needs_witnesses",
    "bounded_destruction",
];

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MARK: &str = "**Invariant:**";

/// ARCHITECTURE.md states every invariant.
pub(super) fn invariant_lines(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(ARCHITECTURE) else {
        return Vec::new();
    };
    numbered()
        .filter(|(number, name)| stated_at(&file.text, number, name).is_none())
        .map(|(number, name)| {
            Finding::new(
                ARCHITECTURE,
                1,
                format!("no line `{MARK} {number} {name}: ...`: say there what it means and where it is checked"),
            )
        })
        .collect()
}

/// Every stated invariant has a test that carries its name.
pub(super) fn invariant_tests(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(ARCHITECTURE) else {
        return Vec::new();
    };
    numbered()
        .filter_map(|(number, name)| {
            let line = stated_at(&file.text, &number, name)?;
            let wanted = format!("{}_{name}", number.to_lowercase());
            if tree.rust().any(|file| has_test(&file.code, &wanted)) {
                return None;
            }
            let message = format!("no test function is named after `{wanted}`: write the test that would fail if it broke");
            Some(Finding::new(ARCHITECTURE, line, message))
        })
        .collect()
}

fn numbered() -> impl Iterator<Item = (String, &'static str)> {
    INVARIANTS
        .iter()
        .enumerate()
        .map(|(at, name)| (format!("I{}", at + 1), *name))
}

fn stated_at(text: &str, number: &str, name: &str) -> Option<usize> {
    let at = text.lines().position(|line| {
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        line.contains(MARK) && words.contains(&number) && words.contains(&name)
    })?;
    Some(at + 1)
}

/// True when a function with the words in its name stands below a test attribute.
fn has_test(code: &str, wanted: &str) -> bool {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let Some((_, rest)) = line.split_once("fn ") else {
            return false;
        };
        let name = rest.split('(').next().unwrap_or_default();
        // `i1` must not find `i10`, nor `ask_once` `mask_once`.
        let named = format!("_{name}_").contains(&format!("_{wanted}_"));
        let attributes = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.is_empty() || line.starts_with("#["));
        named && attributes.into_iter().any(|line| line.contains("test"))
    })
}

/// The `cargo xtask` commands of every document exist.
pub(super) fn xtask_commands(tree: &Tree) -> Vec<Finding> {
    let command = crate::Cli::command();
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| is_living_document(&file.path))
    {
        for (at, line) in file.text.lines().enumerate() {
            for (_, rest) in line
                .match_indices("cargo xtask ")
                .map(|(at, found)| (at, &line[at + found.len()..]))
            {
                let name: String = rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '-')
                    .collect();
                if !name.is_empty() && command.find_subcommand(&name).is_none() {
                    findings.push(Finding::new(
                        &file.path,
                        at + 1,
                        format!("`cargo xtask {name}` does not exist; `cargo xtask help` lists what does"),
                    ));
                }
            }
        }
    }
    findings
}

/// Links between documents lead to files that exist.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| is_living_document(&file.path))
    {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (at, line) in file.text.lines().enumerate() {
            for (start, _) in line.match_indices("](") {
                let target = line[start + 2..]
                    .split([')', '#', ' '])
                    .next()
                    .unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let path = resolved(folder, target);
                let inside = format!("{path}/");
                if !tree
                    .files
                    .iter()
                    .any(|file| file.path == path || file.path.starts_with(&inside))
                {
                    findings.push(Finding::new(
                        &file.path,
                        at + 1,
                        format!("the link to {target} leads nowhere: {path} does not exist"),
                    ));
                }
            }
        }
    }
    findings
}

/// Markdown that describes the present; designs are frozen once merged.
fn is_living_document(path: &str) -> bool {
    path.ends_with(".md") && !path.starts_with("designs/") && !path.ends_with("CHANGELOG.md")
}

fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_invariants_are_found() {
        let text = "# x\n**Invariant:** I1 no_job_killed: a\n**Invariant:** I10 fenced: b\nI2 protected_by_construction\n";
        let found = invariant_lines(&Tree::of(&[("ARCHITECTURE.md", text)]));
        assert_eq!(found.len(), 12);
        assert!(
            found
                .iter()
                .all(|finding| !finding.message.contains("I1 no_job_killed"))
        );
        assert!(invariant_lines(&Tree::of(&[("README.md", "x")])).is_empty());
    }

    #[test]
    fn an_invariant_without_a_test_is_found() {
        let text = "**Invariant:** I1 no_job_killed: a\n**Invariant:** I10 fenced: b\n**Invariant:** **I4 ask_once**: c\n";
        let code = "#[test]\nfn i1_no_job_killed_on_scale_in() {}\nfn i10_fenced() {}\n#[tokio::test]\nasync fn sc_01_i4_ask_once() {}\n";
        let found = invariant_tests(&Tree::of(&[
            ("ARCHITECTURE.md", text),
            ("a/src/a.rs", code),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn commands_that_do_not_exist_are_found() {
        let text = "run `cargo xtask test` or\n\n    cargo xtask frobnicate --now\n";
        let found = xtask_commands(&Tree::of(&[
            ("README.md", text),
            ("designs/001-x.md", text),
        ]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 3);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let text = "[a](../README.md) [b](gone.md)\n[c](https://example.org/x) [d](#part) [e](../deploy/)\n";
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("README.md", ""),
            ("deploy/x.service", ""),
        ]);
        let found = links(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("docs/gone.md"));
    }
}
