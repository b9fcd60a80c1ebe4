//! Files that decide with plain values: no clock, no chance, no I/O, no tasks.
//!
//! Called by `tidy`. Cargo keeps crates out of the core; this keeps the standard
//! library's clocks and files out of it, and holds the agent's pure parts to the same.

use super::{Finding, Tree};

/// Folders and files (without `.rs`) that must be pure.
const PURE: &[&str] = &[
    "coordinator/core/src",
    "coordinator/src/world",
    "agent/src/drain/machine",
    "agent/src/session/machine",
    "agent/src/session/backoff",
    "agent/src/session/outbox",
    "agent/src/telemetry/window",
    "agent/src/inventory/merge",
    "agent/src/identity/renew",
];

const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::io",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "tokio::",
    "rand::rng",
    "rand::random",
    "thread_rng",
    "getrandom",
];

/// Names that a pure file must write although nothing impure happens: (file, name, why).
const HARMLESS: &[(&str, &str, &str)] = &[(
    "coordinator/core/src/planner/file.rs",
    "std::io",
    "serde_json's formatter writes to bytes in memory through this trait",
)];

/// Impure calls in pure files.
pub(super) fn pure_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let module = file.path.trim_end_matches(".rs");
        let pure = PURE.iter().any(|place| {
            module
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if !pure {
            continue;
        }
        for (line, code) in file.product_code() {
            let harmless = |call: &str| {
                HARMLESS
                    .iter()
                    .any(|(path, name, _)| *path == file.path && *name == call)
            };
            let named = IMPURE.iter().filter(|call| !harmless(call));
            if let Some(call) = named.into_iter().find(|call| code.contains(**call)) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("`{call}` in a file that decides with plain values: take the time, the dice or the data as an argument"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_in_pure_files_are_found() {
        let text = "//! x\nuse std::time::Duration;\nlet now = Instant::now();\n";
        let tree = Tree::of(&[
            ("coordinator/core/src/rules/drain.rs", text),
            ("agent/src/session/outbox.rs", text),
            ("agent/src/session/outbox_store.rs", text),
            ("agent/src/session.rs", text),
            (
                "coordinator/core/src/planner/file.rs",
                "//! x\nuse std::io::Write;\nuse std::fs;\n",
            ),
        ]);
        let found: Vec<_> = pure_files(&tree)
            .into_iter()
            .map(|f| (f.path, f.line))
            .collect();
        let expect = [
            ("coordinator/core/src/rules/drain.rs", 3),
            ("agent/src/session/outbox.rs", 3),
            ("coordinator/core/src/planner/file.rs", 3),
        ];
        assert_eq!(found, expect.map(|(path, line)| (path.to_owned(), line)));
    }
}
