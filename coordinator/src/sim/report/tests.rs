//! The page: well-formed, self-contained, whole for any run.

use super::*;
use crate::sim::bounds::Curve;
use crate::sim::config::Cost;
use crate::sim::history::History;
use crate::sim::offered::Offered;
use crate::sim::policy::Policy;
use crate::sim::score::score;
use crate::sim::trace::{Job, Trace};
use drover_core::model::{MicroUsd, Millis, Resources};

/// Tags are balanced, attributes quoted, `&` and `<` only as markup. As much of XML as the page uses.
fn check(text: &str) {
    let body = text.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let mut open: Vec<&str> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        let between = &rest[..at];
        for part in between.split('&').skip(1) {
            let end = part.find(';').expect("an entity ends");
            assert!(
                ["amp", "lt", "gt", "quot", "#39"].contains(&&part[..end]),
                "&{part}"
            );
        }
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.trim_start_matches('/');
        let name = name.split([' ', '/', '\n']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "closes what is open: </{closed}>");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

fn gpus(count: u32) -> Resources {
    Resources {
        gpus: count,
        ..Resources::default()
    }
}

fn workload(name: &str) -> (Trace, Vec<Offered>) {
    let jobs = (0..20_u64).map(|n| {
        let mut job = Job::new(
            format!("j{n}"),
            Millis::minutes(n * 37),
            Millis::minutes(90),
            gpus(8),
        );
        job.units = 1 + u32::try_from(n % 3).unwrap_or(0);
        job
    });
    let trace = Trace {
        name: name.to_owned(),
        jobs: jobs.collect(),
        skipped: vec![("<why> & \"how\"".to_owned(), 2)],
    };
    let offered = vec![Offered {
        name: "gpu8".to_owned(),
        pool: "p".to_owned(),
        price: MicroUsd(55_040_000),
        allocatable: gpus(8),
        boot: Millis::minutes(5),
        ..Offered::default()
    }];
    (trace, offered)
}

fn run<'a>(trace: &'a Trace, history: &'a History, offered: &'a [Offered]) -> Run<'a> {
    Run {
        trace,
        history,
        offered,
        cost: Cost::Usd,
        placer: "planner",
        seed: 1,
    }
}

fn history(name: &str, trace: &Trace, offered: &[Offered]) -> History {
    let policy: Policy = name.parse().expect("a policy");
    policy.run(trace, offered, 1).expect("runs")
}

#[test]
fn the_page_is_whole_and_holds_nothing_from_elsewhere() {
    let (trace, offered) = workload("<script>alert('x')</script> & co");
    let names = [
        "best-fit",
        "best-fit-timeout=10m",
        "cluster-autoscaler",
        "predecessor",
    ];
    let histories = names.map(|name| history(name, &trace, &offered));
    let runs: Vec<Run<'_>> = histories
        .iter()
        .map(|history| run(&trace, history, &offered))
        .collect();
    let scores: Vec<Score> = runs.iter().map(score).collect();
    let settings = [Setting {
        key: "pool.p.idle_after".to_owned(),
        values: vec![Some("\"<0s>\"".to_owned()), None],
    }];
    let page = page::html(&Report {
        runs: &runs,
        scores: &scores,
        settings: &settings,
    });
    check(&page);
    assert!(!page.contains("<script"), "a script");
    assert!(!page.contains("href=") && !page.contains("src=") && !page.contains("url("));
    // The name space of SVG is a name and is not fetched.
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("http"), "something from elsewhere");
    // Two totals and lines, one plot of capacity for each, waste, waits.
    assert_eq!(page.matches("<svg").count(), 4 + names.len());
    for name in names {
        assert!(page.contains(name), "{name}");
    }
    assert!(
        page.contains("cluster-autoscaler costs "),
        "no difference named"
    );
    assert!(page.contains("&lt;why&gt; &amp; &quot;how&quot;"));
}

#[test]
fn a_run_without_jobs_makes_a_page_too() {
    let (mut trace, offered) = workload("nothing");
    trace.jobs.clear();
    let history = history("best-fit", &trace, &offered);
    let runs = [run(&trace, &history, &offered)];
    let scores = [score(&runs[0])];
    let page = page::html(&Report {
        runs: &runs,
        scores: &scores,
        settings: &[],
    });
    check(&page);
    assert!(!page.contains("NaN") && !page.contains("inf\""), "{page}");
}

#[test]
fn files_are_written_into_a_folder_that_is_made() {
    let (trace, offered) = workload("t");
    let history = history("best-fit", &trace, &offered);
    let runs = [run(&trace, &history, &offered)];
    let scores = [score(&runs[0])];
    let report = Report {
        runs: &runs,
        scores: &scores,
        settings: &[],
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = write(&folder.path().join("a/b"), &report).expect("writes");
    check(&std::fs::read_to_string(&page).expect("is there"));
    let text = std::fs::read_to_string(page.with_file_name("scores.json")).expect("is there");
    let scores: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert!(scores[0]["cost_usd"].is_f64(), "{text}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("writes");
    assert!(write(&file, &report).is_err());
}

#[test]
fn means_keep_the_area() {
    let minutes = |count| Millis::minutes(count);
    let curve = Curve(vec![
        (minutes(3), 2.0),
        (minutes(250), 5.0),
        (minutes(400), 0.0),
    ]);
    let means = series::means(&curve, minutes(480));
    let area: f64 = means.iter().sum();
    assert!((area - (247.0 * 2.0 + 150.0 * 5.0)).abs() < 1e-6, "{area}");
    let sums = series::sums(&curve, minutes(480));
    let last = sums.last().copied().unwrap_or_default();
    assert!((last - curve.integral()).abs() < 1e-9, "{last}");
}

#[test]
fn axes_of_short_runs_tell_their_steps_apart() {
    let line = || svg::Line {
        name: "x".to_owned(),
        class: "run1",
        values: vec![0.0, 0.0008],
        area: false,
    };
    for (hours, unit) in [
        (0.0, "seconds"),
        (20.0 / 3_600.0, "seconds"),
        (0.4 / 3_600.0, "seconds"),
        (0.5, "minutes"),
    ] {
        let text = svg::lines("t", "USD", hours, &[line()]);
        assert!(text.contains(&format!("{unit} since the start")), "{text}");
        for anchor in ["end", "middle"] {
            let mut ticks: Vec<&str> = text
                .split("<text class=\"tick\"")
                .filter(|part| part.contains(&format!("text-anchor=\"{anchor}\">")))
                .filter_map(|part| part.split('>').nth(1)?.split('<').next())
                .filter(|tick| !tick.contains("since"))
                .collect();
            let all = ticks.len();
            assert!(all > 2, "{hours} {anchor}: {ticks:?}");
            ticks.dedup();
            assert_eq!(ticks.len(), all, "{hours} {anchor}: {ticks:?}");
        }
    }
}

#[test]
fn jobs_that_never_started_stand_at_the_top_of_the_page() {
    let (trace, offered) = workload("t");
    let whole = history("best-fit", &trace, &offered);
    let mut none = whole.clone();
    none.policy = "idler".to_owned();
    none.nodes.clear();
    none.jobs
        .iter_mut()
        .for_each(|job| *job = Default::default());
    none.waited_for = vec!["p: stopped".to_owned()];
    let runs = [run(&trace, &none, &offered), run(&trace, &whole, &offered)];
    let scores: Vec<Score> = runs.iter().map(score).collect();
    let page = page::html(&Report {
        runs: &runs,
        scores: &scores,
        settings: &[],
    });
    check(&page);
    let top = page.split("<h2>").next().unwrap_or_default();
    assert!(top.contains("idler: 20 of 20 jobs never started"), "{top}");
    assert!(top.contains("idler waited for: p: stopped"), "{top}");
    assert!(!page.contains("best-fit costs "), "costs are compared");
}
