//! What the planner's decisions cost on public traces: one JSON object a line, `{case, value, unit}` with `target` where
//! there is one. `replay DIR [PART]`: DIR holds `philly_*.csv` and `openb_pod_list_default.csv`; only cases whose name
//! contains PART.
//!
//! Calls `planner::plan` alone and follows its runs, launches and drains at once: no coordinator, no scheduler, no
//! simulator between. So a figure here is a figure of the planner. Set-ups as with the reference figures of the traces:
//! Philly on 8-GPU nodes at price one, openb on p3, c7i and r7i at on-demand prices.

#[path = "replay/bound.rs"]
mod bound;
#[path = "replay/traces.rs"]
mod traces;
#[path = "replay/world.rs"]
mod world;

use drover_core::model::{Anticipate, Millis};
use serde::Serialize;
use std::path::{Path, PathBuf};
use world::{Outcome, Setup, replay};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Serialize)]
struct Figure<'a> {
    case: String,
    value: f64,
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

/// A Philly cluster and what its replay should cost at most, as multiples of the bound.
struct Cluster {
    name: &'static str,
    /// Boot 0, run times unknown and stated.
    unknown: f64,
    stated: f64,
    /// Boot 5 min: best fit with an idle time of 30 minutes, and percent of the jobs that wait there.
    idle: (f64, f64),
}

const PHILLY: [Cluster; 3] = [
    Cluster {
        name: "ee9e8c",
        unknown: 1.025,
        stated: 1.017,
        idle: (1.040, 47.3),
    },
    Cluster {
        name: "7f04ca",
        unknown: 1.037,
        stated: 1.032,
        idle: (1.045, 51.5),
    },
    Cluster {
        name: "e13805",
        unknown: 1.039,
        stated: 1.034,
        idle: (1.079, 23.0),
    },
];

/// Percent of no packing on openb.
const OPENB: f64 = 56.0;

/// A way to set a replay up, with the most that it should cost and the most percent of jobs that should wait.
type Case = (String, Setup, Option<(f64, f64)>);

fn main() -> Result {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("replay DIR [PART]")?);
    let part = args.next().unwrap_or_default();
    for cluster in &PHILLY {
        let mut cases = without_boot((cluster.unknown, cluster.stated));
        cases.extend(with_boot(cluster.idle));
        for (case, setup, target) in cases {
            let case = format!("philly {} {case}", cluster.name);
            if case.contains(&part) {
                philly(&dir, cluster, &case, &setup, target)?;
            }
        }
    }
    for (case, setup, target) in without_boot((OPENB, OPENB)) {
        let case = format!("openb {case}");
        if case.contains(&part) {
            openb(&dir, &case, &setup, target)?;
        }
    }
    Ok(())
}

/// Targets: unknown, stated. Nobody waits.
fn without_boot(targets: (f64, f64)) -> Vec<Case> {
    let setup = |stated, forgets| Setup {
        stated,
        forgets,
        ..Setup::default()
    };
    vec![
        (
            "boot 0, unknown".to_owned(),
            setup(false, false),
            Some((targets.0, 0.0)),
        ),
        (
            "boot 0, stated".to_owned(),
            setup(true, false),
            Some((targets.1, 0.0)),
        ),
        (
            "boot 0, unknown, nothing learnt".to_owned(),
            setup(false, true),
            None,
        ),
    ]
}

fn with_boot(target: (f64, f64)) -> Vec<Case> {
    let mut cases = Vec::new();
    for stated in [false, true] {
        let known = if stated { "stated" } else { "unknown" };
        for (minutes, anticipates) in [(0, false), (10, false), (30, false), (0, true), (10, true)]
        {
            let what = if anticipates { ", anticipate" } else { "" };
            let setup = Setup {
                stated,
                boot: Millis::minutes(5),
                idle_after: Millis::minutes(minutes),
                anticipate: anticipates.then(Anticipate::default),
                forgets: false,
            };
            cases.push((
                format!("boot 5 min, {known}, idle {minutes} min{what}"),
                setup,
                anticipates.then_some(target),
            ));
        }
    }
    cases
}

fn philly(
    dir: &Path,
    cluster: &Cluster,
    case: &str,
    setup: &Setup,
    target: Option<(f64, f64)>,
) -> Result {
    let jobs = traces::philly(&dir.join(format!("philly_{}.csv", cluster.name)))?;
    let least = bound::node_seconds(&jobs, setup.boot.0 / 1_000) as f64;
    let out = replay(&traces::eight_gpus(), &jobs, setup)?;
    let cost = out.node_seconds as f64 / least;
    tell(case, &out, cost, "x of the bound", target)
}

fn openb(dir: &Path, case: &str, setup: &Setup, target: Option<(f64, f64)>) -> Result {
    let types = traces::p3_c7i_r7i();
    let jobs = traces::openb(&dir.join("openb_pod_list_default.csv"), &types)?;
    let alone = bound::no_packing(&types, &jobs) as f64;
    let out = replay(&types, &jobs, setup)?;
    let cost = out.micro_usd as f64 / alone * 100.0;
    tell(case, &out, cost, "% of no packing", target)
}

fn tell(case: &str, out: &Outcome, cost: f64, unit: &str, target: Option<(f64, f64)>) -> Result {
    let waited = out.waited as f64 / out.jobs.max(1) as f64 * 100.0;
    let longest = out.longest.as_secs_f64() * 1_000.0;
    for (what, value, unit, target) in [
        ("cost", cost, unit, target.map(|t| t.0)),
        ("jobs that wait", waited, "%", target.map(|t| t.1)),
        ("plans", out.plans as f64, "plans", None),
        ("longest plan", longest, "ms", None),
    ] {
        let figure = Figure {
            case: format!("{case}: {what}"),
            value,
            unit,
            target,
        };
        println!("{}", serde_json::to_string(&figure)?);
    }
    Ok(())
}
