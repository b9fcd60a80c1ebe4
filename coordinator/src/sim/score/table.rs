//! Scores as a table for people, side by side, and what differs between them in words.
//!
//! Called by `drover simulate -o table`, `--compare` and the report.

use super::{Score, Unit, Waits};
use std::fmt::Write as _;

/// A cell of a score.
type Cell = fn(&Score) -> String;

/// All rows of the table; a unit stands with the figure.
#[must_use]
pub fn rows(scores: &[Score]) -> Vec<(String, Vec<String>)> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut row = |name: &str, cell: Cell| {
        rows.push((name.to_owned(), scores.iter().map(cell).collect()));
    };
    row("policy", |s| s.policy.clone());
    row("placer", |s| s.placer.clone());
    row("seed", |s| s.seed.to_string());
    row("cost", |s| money(s, s.cost));
    row("lower bound, no delay", |s| money(s, s.bounds.fluid));
    row("lower bound, resource-hours", |s| {
        money(s, s.bounds.resource_hours)
    });
    row("lower bound, with boot", |s| money(s, s.bounds.boot_aware));
    row("no packing", |s| money(s, s.bounds.no_packing));
    row("cost / lower bound", |s| times(s.over_bound()));
    row("cost / bound with boot", |s| times(s.over_boot_aware()));
    row("cost / no packing", |s| percent(s.over_no_packing()));
    row("gap closed", |s| percent(s.gap_closed()));
    row("wait above boot p50 / p95 / p99", |s| {
        let Waits { p50, p95, p99, .. } = s.waits;
        let each = [p50, p95, p99].map(|wait| waited(wait, s.jobs));
        each.join(" / ")
    });
    row("jobs that waited", |s| percent(Some(s.share_waited)));
    row("  for a boot", |s| percent(Some(s.share_waited_for_boot)));
    row("jobs", |s| s.jobs.to_string());
    row("jobs never started", |s| s.jobs_unstarted.to_string());
    row("jobs not over", |s| s.jobs_unfinished.to_string());
    row("jobs killed", |s| s.jobs_killed.to_string());
    row("moves of work that can", |s| s.moves.to_string());
    row("node-hours", |s| whole(s.node_hours));
    row("  used", |s| part(s, s.waste.useful));
    row("  booting", |s| part(s, s.waste.boot));
    row("  held for gangs", |s| part(s, s.waste.gang_hold));
    row("  fragmentation", |s| part(s, s.waste.fragmentation));
    row("  idle", |s| part(s, s.waste.idle));
    row("  churn", |s| part(s, s.waste.churn));
    row("nodes / at once", |s| {
        format!("{} / {}", s.nodes, s.most_nodes)
    });
    row("plans / core time", |s| {
        format!("{} / {:.2} s", s.plans, s.plan_seconds)
    });
    row("asks refused", |s| s.refusals.to_string());
    row("violations of invariants", |s| {
        s.violations.len().to_string()
    });
    rows
}

/// The table.
#[must_use]
pub fn table(scores: &[Score]) -> String {
    let rows = rows(scores);
    let width = |cells: &mut dyn Iterator<Item = &String>| {
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let names = width(&mut rows.iter().map(|(name, _)| name));
    let columns: Vec<usize> = (0..scores.len())
        .map(|at| width(&mut rows.iter().map(|(_, cells)| &cells[at])))
        .collect();
    let mut text = String::new();
    for (name, cells) in &rows {
        let mut line = format!("{name:<names$}");
        for (cell, width) in cells.iter().zip(&columns) {
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if let Some(score) = scores.first() {
        for (why, count) in &score.skipped {
            let _ = writeln!(text, "left out of {}: {count} ({why})", score.trace);
        }
    }
    for line in sizes(scores).into_iter().chain(left(scores)) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// What a run left undone and what it waited for, in lines; empty when all ran everything.
#[must_use]
pub fn left(scores: &[Score]) -> Vec<String> {
    let mut lines = Vec::new();
    for score in scores.iter().filter(|score| !score.is_whole()) {
        let mut said = Vec::new();
        let (unstarted, unfinished) = (score.jobs_unstarted, score.jobs_unfinished);
        if unstarted > 0 {
            said.push(format!("{unstarted} of {} jobs never started", score.jobs));
        }
        if unfinished > 0 {
            said.push(format!("{unfinished} were not over when the run was"));
        }
        let said = said.join(", ");
        let policy = &score.policy;
        lines.push(format!(
            "{policy}: {said}; its cost is that of less work and is compared with nothing"
        ));
        let causes = score.waited_for.iter();
        lines.extend(causes.map(|cause| format!("{policy} waited for: {cause}")));
    }
    lines
}

/// Waits by gang size, where there is more than one size and few scores.
fn sizes(scores: &[Score]) -> Vec<String> {
    let mut lines = Vec::new();
    if scores.len() > 2 {
        return lines;
    }
    for score in scores.iter().filter(|score| score.by_gang_size.len() > 1) {
        for size in &score.by_gang_size {
            lines.push(format!(
                "{}, jobs of {} unit{}: {}, wait p50 {}, p95 {}, p99 {}; {} waited, {} for a boot",
                score.policy,
                size.units,
                if size.units == "1" { "" } else { "s" },
                size.jobs,
                waited(size.waits.p50, size.jobs),
                waited(size.waits.p95, size.jobs),
                waited(size.waits.p99, size.jobs),
                percent(Some(size.share_waited)),
                percent(Some(size.share_waited_for_boot)),
            ));
        }
    }
    lines
}

/// What the second does differently from the first, the weightiest first; empty when nothing differs. The costs of runs
/// that did not do the same work are not compared.
#[must_use]
pub fn differences(first: &Score, second: &Score) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |differs: bool, text: String| {
        if differs {
            found.push(text);
        }
    };
    let (a, b) = (&first.policy, &second.policy);
    let whole_runs = first.is_whole() && second.is_whole();
    let cost = second.cost - first.cost;
    let relative = super::quotient(cost.abs(), first.cost)
        .map_or_else(String::new, |by| format!(" ({:.1} %)", by * 100.0));
    say(
        whole_runs && cost.abs() >= 0.005,
        format!(
            "{b} costs {} {}{relative} than {a}",
            money(first, cost.abs()),
            if cost > 0.0 { "more" } else { "less" },
        ),
    );
    let mut count = |what: &str, one: usize, other: usize| {
        say(
            one != other,
            format!("{what}: {one} with {a}, {other} with {b}"),
        );
    };
    count(
        "jobs never started",
        first.jobs_unstarted,
        second.jobs_unstarted,
    );
    count(
        "jobs not over",
        first.jobs_unfinished,
        second.jobs_unfinished,
    );
    count("jobs killed", first.jobs_killed, second.jobs_killed);
    count(
        "violations of invariants",
        first.violations.len(),
        second.violations.len(),
    );
    count(
        "asks refused",
        first.refusals as usize,
        second.refusals as usize,
    );
    for (name, one, other) in [
        ("p50", first.waits.p50, second.waits.p50),
        ("p95", first.waits.p95, second.waits.p95),
        ("p99", first.waits.p99, second.waits.p99),
    ] {
        let differ = match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() >= 0.5,
            (one, other) => one != other,
        };
        say(
            differ,
            format!(
                "{name} wait above the boot: {} with {a}, {} with {b}",
                waited(one, first.jobs),
                waited(other, second.jobs)
            ),
        );
    }
    for (what, one, other) in [
        ("jobs that waited", first.share_waited, second.share_waited),
        (
            "jobs that waited for a boot",
            first.share_waited_for_boot,
            second.share_waited_for_boot,
        ),
    ] {
        say(
            (one - other).abs() >= 0.0005,
            format!(
                "{what}: {} with {a}, {} with {b}",
                percent(Some(one)),
                percent(Some(other))
            ),
        );
    }
    for ((cause, one), (_, other)) in first.waste.causes().into_iter().zip(second.waste.causes()) {
        let cause = cause.replace('_', " ");
        say(
            whole_runs
                && (one - other).abs() >= 0.05
                && (one - other).abs() >= first.node_hours * 0.001,
            format!(
                "node-hours lost to {cause}: {} with {a}, {} with {b}",
                whole(one),
                whole(other)
            ),
        );
    }
    found
}

/// With its unit.
#[must_use]
pub fn money(score: &Score, amount: f64) -> String {
    match score.unit {
        Unit::Usd => format!("{} USD", whole(amount)),
        Unit::NodeHours => format!("{} h", whole(amount)),
    }
}

fn part(score: &Score, hours: f64) -> String {
    match super::quotient(hours, score.node_hours) {
        Some(share) => format!("{} ({:.1} %)", whole(hours), share * 100.0),
        None => whole(hours),
    }
}

fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}x"))
}

/// Of one, as percent.
#[must_use]
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// Thousands apart; one digit after the point below a hundred.
#[must_use]
pub fn whole(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}")
}

/// A wait of so many jobs; the rank may fall on one that never started.
#[must_use]
pub fn waited(wait: Option<f64>, jobs: usize) -> String {
    match wait {
        Some(seconds) => span(seconds),
        None if jobs > 0 => "not started".to_owned(),
        None => "-".to_owned(),
    }
}

/// Seconds, minutes or hours.
#[must_use]
pub fn span(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7_200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}
