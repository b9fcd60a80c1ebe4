//! `[drain]`: which executors make the workloads go, and which processes count as workloads. A part of `build`.

use drover_config::Section;

use super::MS;
use crate::config::{Drain, ExecutorKind, ProcessMatcher};

pub(super) fn drain(section: &Section<'_>) -> Drain {
    let fix = "write executors = [\"processes\", \"hooks\"]";
    let mut executors = Vec::new();
    let named = section.texts("executors", fix);
    for at in named.iter().flatten() {
        let kind = match at.value.as_str() {
            "processes" => ExecutorKind::Processes,
            "hooks" => ExecutorKind::Hooks,
            // Told of already.
            empty if empty.trim().is_empty() => continue,
            other => {
                let message = format!("names an unknown executor {other:?}");
                section.report(at.offset, "executors", &message, "known: processes, hooks");
                continue;
            }
        };
        if executors.contains(&kind) {
            let message = format!("names {} twice", at.value);
            section.report(at.offset, "executors", &message, "name it once");
        } else {
            executors.push(kind);
        }
    }
    if named.is_none() {
        executors.push(ExecutorKind::Processes);
    }
    let processes = section
        .sections("process")
        .into_iter()
        .map(|matcher| {
            let fix = "write a text to match";
            let found = ProcessMatcher {
                name: matcher.text("name", fix).map(|at| at.value),
                command: matcher.text("command", fix).map(|at| at.value),
                user: matcher.text("user", fix).map(|at| at.value),
            };
            if found == ProcessMatcher::default() {
                let fix = "set name, command or user";
                matcher.report(
                    matcher.offset(),
                    "name",
                    "is missing: it would match nothing",
                    fix,
                );
            }
            matcher.finish();
            found
        })
        .collect();
    Drain {
        executors,
        processes,
        word_limit: section
            .duration("word_limit", MS(100)..=MS(60_000), "60s")
            .unwrap_or(MS(60_000)),
    }
}
