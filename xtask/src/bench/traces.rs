//! `bench traces`: what `drover simulate` and the planner reach on public traces, beside what they must reach.
//!
//! Called by `bench`. The traces are read from `--traces`, `DROVER_TRACES` or `../shared/traces` beside the clone; without
//! them there is nothing to measure. Every figure is taken from the score that `drover simulate -o json` prints, or from
//! the example `static_packing` of drover-core.

mod runs;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{Args, figure::Sink, optimised, plan};
use crate::workspace;
use runs::Simulator;

/// A Philly cluster and what must be reached on it.
struct Philly {
    name: &'static str,
    /// Cost over the lower bound, run times unknown and stated.
    unknown: f64,
    stated: f64,
}

const PHILLY: [Philly; 3] = [
    Philly {
        name: "ee9e8c",
        unknown: 1.025,
        stated: 1.017,
    },
    Philly {
        name: "7f04ca",
        unknown: 1.037,
        stated: 1.032,
    },
    Philly {
        name: "e13805",
        unknown: 1.039,
        stated: 1.034,
    },
];

/// The points of best fit with an idle time-out that no point of ours may lose to in both cost and waiting. The aim is
/// half of the last one's waiting at its cost; all are measured in the same run.
const FAMILY: [&str; 3] = [
    "best-fit-timeout=0s",
    "best-fit-timeout=10m",
    "best-fit-timeout=30m",
];

/// Days that must pass without a violation.
const NAMED_DAYS: u32 = 10_000;

/// Percent of no packing on openb.
const OPENB: f64 = 56.0;

/// Runs every row.
///
/// # Errors
/// When there are no traces, something does not build, or a run breaks off.
pub(super) fn run(args: &Args, sink: &mut Sink) -> Result<()> {
    let folder = folder(args)?;
    let simulator = Simulator::new(optimised::coordinator()?, folder.clone())?;
    openb(&simulator, sink)?;
    for cluster in &PHILLY {
        philly(&simulator, cluster, sink)?;
    }
    for cluster in &PHILLY {
        boot(&simulator, cluster, sink)?;
    }
    for cluster in &PHILLY {
        shortage(&simulator, cluster, sink)?;
    }
    packing(&folder, args.seeds, sink)?;
    days(&simulator, args.days, sink)
}

/// Where the traces lie.
fn folder(args: &Args) -> Result<PathBuf> {
    let folder = args
        .traces
        .clone()
        .or_else(|| std::env::var_os("DROVER_TRACES").map(PathBuf::from))
        .unwrap_or_else(|| workspace::root().join("../shared/traces"));
    if folder.join("openb_pod_list_default.csv").exists() {
        // The simulator runs elsewhere.
        return Ok(folder.canonicalize()?);
    }
    bail!(
        "no openb_pod_list_default.csv in {}: name the folder of the traces with --traces or DROVER_TRACES",
        folder.display()
    )
}

fn openb(simulator: &Simulator, sink: &mut Sink) -> Result<()> {
    let case = "openb default, zero boot, run times unknown";
    let score = simulator.play("openb_pod_list_default.csv", "openb.toml", &[])?;
    let score = score.first()?;
    sink.add_below(
        format!("{case}: cost over no packing"),
        score.number("cost_over_no_packing")? * 100.0,
        "%",
        OPENB,
    );
    sink.add(
        format!("{case}: fluid bound over no packing"),
        score.number("bound_usd")? / score.number("no_packing_usd")? * 100.0,
        "%",
    );
    harm(sink, case, score)?;
    sink.add(
        format!("{case}: core time of {} plans", score.number("plans")?),
        score.number("plan_seconds")?,
        "s",
    );
    Ok(())
}

/// What must never be: killed jobs, jobs left behind, violations.
fn harm(sink: &mut Sink, case: &str, score: &runs::Score) -> Result<()> {
    for (what, key) in [
        ("jobs killed", "jobs_killed"),
        ("jobs never started", "jobs_unstarted"),
        ("violations of invariants", "violations"),
    ] {
        sink.add_below(format!("{case}: {what}"), score.number(key)?, "", 0.0);
    }
    Ok(())
}

fn philly(simulator: &Simulator, cluster: &Philly, sink: &mut Sink) -> Result<()> {
    let trace = format!("philly_{}.csv", cluster.name);
    for (durations, target) in [("unknown", cluster.unknown), ("stated", cluster.stated)] {
        let case = format!("philly {}, boot 0, run times {durations}", cluster.name);
        let config = simulator.config_with("philly.toml", "durations", durations)?;
        let played = simulator.play_with(&trace, &config, &[])?;
        let score = played.first()?;
        sink.add_below(
            format!("{case}: cost over the lower bound"),
            score.number("cost_over_bound")?,
            "x",
            target,
        );
        sink.add_below(
            format!("{case}: wait p99"),
            score.number("wait_p99_s")?,
            "s",
            0.0,
        );
        harm(sink, &case, score)?;
    }
    Ok(())
}

fn boot(simulator: &Simulator, cluster: &Philly, sink: &mut Sink) -> Result<()> {
    let case = format!("philly {}, boot 5 min, run times unknown", cluster.name);
    let trace = format!("philly_{}.csv", cluster.name);
    let played = simulator.play(&trace, "philly-boot.toml", &FAMILY)?;
    let score = played.first()?;
    // Of every policy all jobs that did not start at once: one that places each job the moment it comes has no job that
    // waits for a boot and then gets other room, and would be measured by another rule with `share_waited_for_boot`.
    let point = |score: &runs::Score| -> Result<(f64, f64)> {
        Ok((
            score.number("cost_over_boot_aware")?,
            score.number("share_waited")? * 100.0,
        ))
    };
    let (cost, waiting) = point(score)?;
    let family: Vec<(f64, f64)> = played.others().map(point).collect::<Result<_>>()?;
    let (last_cost, last_waiting) = *family.last().context("no idle time-out was played")?;
    sink.add_below(
        format!("{case}: cost over the boot-aware bound"),
        cost,
        "x",
        last_cost,
    );
    sink.add_below(
        format!("{case}: jobs that wait"),
        waiting,
        "%",
        last_waiting / 2.0,
    );
    sink.add(
        format!("{case}: of them for a boot, % of all jobs"),
        score.number("share_waited_for_boot")? * 100.0,
        "%",
    );
    let mut better = 0.0;
    for (name, (their_cost, their_waiting)) in FAMILY.iter().zip(family) {
        if their_cost < cost && their_waiting < waiting {
            better += 1.0;
        }
        sink.add(
            format!("{case}: {name}, cost over the boot-aware bound"),
            their_cost,
            "x",
        );
        sink.add(
            format!("{case}: {name}, jobs that wait"),
            their_waiting,
            "%",
        );
    }
    sink.add_below(
        format!("{case}: idle time-outs that are better in both"),
        better,
        "",
        0.0,
    );
    harm(sink, &case, score)
}

fn shortage(simulator: &Simulator, cluster: &Philly, sink: &mut Sink) -> Result<()> {
    let case = format!(
        "philly {}, boot 5 min, shortages in one of three regions",
        cluster.name
    );
    let trace = format!("philly_{}.csv", cluster.name);
    let played = simulator.play(&trace, "philly-shortage.toml", &[])?;
    let score = played.first()?;
    sink.add(
        format!("{case}: cost over the boot-aware bound"),
        score.number("cost_over_boot_aware")?,
        "x",
    );
    sink.add(
        format!("{case}: wait p95"),
        score.number("wait_p95_s")?,
        "s",
    );
    sink.add(
        format!("{case}: asks refused"),
        score.number("refusals")?,
        "",
    );
    let all = score.number("node_hours")?;
    for cause in ["boot", "gang_hold", "fragmentation", "idle", "churn"] {
        sink.add(
            format!("{case}: node-hours lost to {cause}"),
            score.part("waste_node_hours", cause)? / all * 100.0,
            "%",
        );
    }
    harm(sink, &case, score)
}

fn packing(folder: &Path, seeds: u32, sink: &mut Sink) -> Result<()> {
    let program = optimised::static_packing()?;
    plan::pass_on(
        Command::new(program).arg(folder).arg(seeds.to_string()),
        sink,
    )
}

/// Small fleets with mishaps, a day for each seed. The target is named for 10,000 of them.
fn days(simulator: &Simulator, days: u32, sink: &mut Sink) -> Result<()> {
    let case = format!("{days} simulated days with mishaps");
    let found = simulator.days(days)?;
    let target = (days >= NAMED_DAYS).then_some(0.0);
    sink.put(
        format!("{case}: violations of invariants"),
        found.number("violations")?,
        "",
        target,
    );
    sink.add(
        format!("{case}: days per minute"),
        found.number("days_per_minute")?,
        "1/min",
    );
    Ok(())
}
