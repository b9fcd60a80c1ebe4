//! The page around the plots.
//!
//! Called by `report`. Written as XML-clean HTML, so that a plain reader can check it.

use super::svg::escaped;
use super::{Report, charts};
use crate::sim::score::table::{left, money, percent, rows, waited};
use crate::sim::score::{Score, differences};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// What the words mean, for those who see them first.
const WORDS: &[(&str, &str)] = &[
    (
        "Lower bound",
        "What the work costs if nodes came in fractions, at once, and could be exchanged at every instant. Nobody can reach \
         it; it says how far there is to go.",
    ),
    (
        "No packing",
        "Each unit of each job on a node of its own, the cheapest that holds it.",
    ),
    (
        "Gap closed",
        "How much of the way from no packing to the lower bound: 0 % is no packing, 100 % the bound.",
    ),
    (
        "Wait above the boot",
        "Time from submission to start, less the time that any node needs to boot. A job that never started waited longer \
         than any that did.",
    ),
    (
        "Jobs that waited",
        "Those that did not start the moment they were submitted; for a boot: those that started on a node that was not up \
         when they came.",
    ),
    ("Fragmentation", "The unused part of nodes that work."),
    ("Idle", "Nodes that are up and have no work."),
    (
        "Churn",
        "Nodes that never ran anything, and boots that came right after a like node was given back.",
    ),
    (
        "Held for gangs",
        "Nodes that are up and wait, so that a job of several nodes can start whole.",
    ),
];

/// The whole page.
pub(super) fn html(report: &Report<'_>) -> String {
    let trace = report.scores.first().map_or("", |score| &score.trace);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Drover simulation: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Simulation of {name}</h1>\n",
        name = escaped(trace)
    );
    if let Some(score) = report.scores.first() {
        summary(&mut out, score, report.scores);
    }
    compared(&mut out, report);
    out.push_str("<h2>Cost</h2>\n");
    out.push_str(&charts::totals(report));
    out.push_str(&charts::cost(report));
    out.push_str("<h2>Demand against capacity</h2>\n");
    out.push_str(&charts::capacity(report));
    out.push_str("<h2>Waste by cause</h2>\n");
    out.push_str(&charts::waste(report));
    out.push_str("<h2>Waits</h2>\n");
    out.push_str(&charts::waits(report));
    figures(&mut out, report);
    violations(&mut out, report);
    out.push_str("<h2>What the words mean</h2>\n<dl>\n");
    for (word, meaning) in WORDS {
        let _ = writeln!(out, "<dt>{word}</dt><dd>{meaning}</dd>");
    }
    let _ = write!(
        out,
        "</dl>\n<p class=\"small\">Drover {}. The figures are in scores.json beside this page; \
         <code>drover simulate --jobs FILE</code> writes each job's start and end.</p>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn summary(out: &mut String, score: &Score, scores: &[Score]) {
    let _ = write!(
        out,
        "<p>{} jobs over {:.1} days, decided by <b>{}</b>, placed by {}, seed {}.",
        score.jobs,
        score.days,
        escaped(&score.policy),
        escaped(&score.placer),
        score.seed
    );
    for (why, count) in &score.skipped {
        let _ = write!(out, " Left out: {count} ({}).", escaped(why));
    }
    out.push_str("</p>\n");
    for line in left(scores) {
        let _ = writeln!(out, "<p><b>{}</b></p>", escaped(&line));
    }
    out.push_str("<div class=\"tiles\">\n");
    let tiles = [
        ("cost", money(score, score.cost)),
        ("of no packing", percent(score.over_no_packing())),
        (
            "over the lower bound",
            percent(score.over_bound().map(|over| over - 1.0)),
        ),
        (
            "wait above the boot, p95",
            waited(score.waits.p95, score.jobs),
        ),
        ("jobs killed", score.jobs_killed.to_string()),
        ("jobs never started", score.jobs_unstarted.to_string()),
    ];
    for (name, value) in tiles {
        let _ = writeln!(
            out,
            "<div class=\"tile\"><b>{}</b><span>{name}</span></div>",
            escaped(&value)
        );
    }
    out.push_str("</div>\n");
}

fn compared(out: &mut String, report: &Report<'_>) {
    let Some((first, others)) = report.scores.split_first() else {
        return;
    };
    if others.is_empty() {
        return;
    }
    out.push_str("<h2>What differs</h2>\n");
    for other in others {
        let found = differences(first, other);
        let _ = write!(
            out,
            "<h3>{} against {}</h3>\n<ul>\n",
            escaped(&other.policy),
            escaped(&first.policy)
        );
        if found.is_empty() {
            out.push_str("<li>Nothing that is measured here.</li>\n");
        }
        for line in found {
            let _ = writeln!(out, "<li>{}</li>", escaped(&line));
        }
        out.push_str("</ul>\n");
    }
    if let Some(setting) = report.settings.first() {
        out.push_str("<h3>Settings</h3>\n<table>\n<tr><th>setting</th>");
        // Configs come first, policies for comparison have none.
        for score in report.scores.iter().take(setting.values.len()) {
            let _ = write!(out, "<th>{}</th>", escaped(&score.policy));
        }
        out.push_str("</tr>\n");
        for setting in report.settings {
            let _ = write!(out, "<tr><td><code>{}</code></td>", escaped(&setting.key));
            for value in &setting.values {
                let value = value.as_deref().unwrap_or("not set");
                let _ = write!(out, "<td><code>{}</code></td>", escaped(value));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table>\n");
    }
}

fn figures(out: &mut String, report: &Report<'_>) {
    out.push_str("<h2>All figures</h2>\n<table class=\"figures\">\n");
    for (at, (name, cells)) in rows(report.scores).into_iter().enumerate() {
        let tag = if at == 0 { "th" } else { "td" };
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escaped(name.trim()));
        for cell in cells {
            let _ = write!(out, "<{tag}>{}</{tag}>", escaped(&cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    sizes(out, report);
}

fn sizes(out: &mut String, report: &Report<'_>) {
    out.push_str(
        "<h3>Waits above the boot by gang size</h3>\n<table class=\"figures\">\n<tr><th>policy</th><th>units</th>\
         <th>jobs</th><th>p50</th><th>p95</th><th>p99</th><th>waited</th><th>for a boot</th></tr>\n",
    );
    for score in report.scores {
        for size in &score.by_gang_size {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&score.policy),
                size.units,
                size.jobs,
                waited(size.waits.p50, size.jobs),
                waited(size.waits.p95, size.jobs),
                waited(size.waits.p99, size.jobs),
                percent(Some(size.share_waited)),
                percent(Some(size.share_waited_for_boot)),
            );
        }
    }
    out.push_str("</table>\n");
}

fn violations(out: &mut String, report: &Report<'_>) {
    for score in report.scores {
        if score.violations.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "<h2>Invariants that {} violated</h2>\n<ul>\n",
            escaped(&score.policy)
        );
        for line in score.violations.iter().take(50) {
            let _ = writeln!(out, "<li>{}</li>", escaped(line));
        }
        out.push_str("</ul>\n");
    }
}
