//! How long plans take: one JSON object a line, `{case, value, unit}` with `target` where the case is the whole workload
//! that the budget names. `plan_bench [REPEATS [PART]]`: only the case whose name is PART, else those whose name
//! contains it.
//!
//! Built and run by `cargo xtask bench plan`. Every case asserts what its plan does before a figure is printed: a figure
//! of a wrong plan is worth nothing (SC-48). Timed is `planner::plan`, check included, as core time; inputs are built outside.

#[path = "plan_bench/baseline.rs"]
mod baseline;
#[path = "plan_bench/estimator.rs"]
mod estimator;
#[path = "plan_bench/fleet.rs"]
mod fleet;
#[path = "plan_bench/mix.rs"]
mod mix;
#[path = "plan_bench/queues.rs"]
mod queues;
#[path = "plan_bench/rules.rs"]
mod rules;
#[path = "plan_bench/shapes.rs"]
mod shapes;

use drover_core::model::{PlanInput, Planned};
use drover_core::planner;
use serde::Serialize;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Further figures of a plan: what, value, unit, and the most that it may be; or what is wrong with it.
type Looked = Result<Vec<(&'static str, f64, &'static str, Option<f64>)>, String>;

/// One workload.
struct Case {
    name: String,
    /// Makes the input; outside of what is timed.
    make: Box<dyn Fn() -> PlanInput>,
    /// Looks at the plan before it is timed.
    look: fn(&PlanInput, &Planned) -> Looked,
    /// Most milliseconds, when this is the workload that the budget names.
    target_ms: Option<f64>,
    /// Most megabytes of the process with this workload alone, when the budget names it.
    target_mb: Option<f64>,
    /// Cases before it, by name, that it is compared with: most percent of their time.
    against: Vec<(String, f64)>,
}

#[derive(Serialize)]
struct Figure {
    case: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
}

fn main() -> std::process::ExitCode {
    let repeats: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(10);
    let mut cases = mix::cases();
    cases.push(estimator::case());
    cases.extend(queues::cases());
    cases.extend(fleet::cases());
    let part = std::env::args().nth(2).unwrap_or_default();
    let whole = cases.iter().any(|case| case.name == part);
    cases.retain(|case| case.name == part || !whole && case.name.contains(&part));
    let mut medians = BTreeMap::new();
    for case in cases {
        if let Err(why) = measure(&case, repeats.max(1), &mut medians) {
            eprintln!("plan_bench: {}: {why}", case.name);
            return std::process::ExitCode::FAILURE;
        }
    }
    std::process::ExitCode::SUCCESS
}

fn measure(case: &Case, repeats: usize, medians: &mut BTreeMap<String, f64>) -> Result<(), String> {
    forget_peak();
    let input = (case.make)();
    let begin = Instant::now();
    let planned = planner::plan(&input);
    let peak = peak_mb()?;
    let rounds = rounds(begin.elapsed());
    if !planned.report.dropped.is_empty() {
        return Err(format!("the check dropped {:?}", planned.report.dropped[0]));
    }
    let more = (case.look)(&input, &planned)?;
    let bytes = planner::to_bytes(&planned);
    drop(planned);

    let mut times_ms = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let begin = core_ms()?;
        for _ in 0..rounds {
            black_box(planner::plan(black_box(&input)));
        }
        times_ms.push((core_ms()? - begin) / f64::from(rounds));
        if planner::to_bytes(&planner::plan(&input)) != bytes {
            return Err("the same input gave another plan".to_owned());
        }
    }
    times_ms.sort_by(f64::total_cmp);
    let median = times_ms[times_ms.len() / 2];
    say(&case.name, "median", median, "ms", case.target_ms);
    say(&case.name, "least", times_ms[0], "ms", None);
    say(&case.name, "most", times_ms[times_ms.len() - 1], "ms", None);
    say(
        &case.name,
        "peak memory, input and plan",
        peak,
        "MB",
        case.target_mb,
    );
    for (other, target) in &case.against {
        if let Some(before) = medians.get(other) {
            let what = format!("time, of that of {other}");
            say(
                &case.name,
                &what,
                median / before * 100.0,
                "%",
                Some(*target),
            );
        }
    }
    medians.insert(case.name.clone(), median);
    for (what, value, unit, target) in more {
        say(&case.name, what, value, unit, target);
    }
    Ok(())
}

/// The kernel's record of the most memory begins anew, where it lets us.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Most megabytes of memory that the process has had since.
fn peak_mb() -> Result<f64, String> {
    let path = "/proc/self/status";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: f64 = kib
        .and_then(|kib| kib.parse().ok())
        .ok_or_else(|| format!("{path}: no VmHWM"))?;
    Ok(kib * 1_024.0 / 1e6)
}

/// Plans per sample, which takes 100 ms or more.
fn rounds(one: Duration) -> u32 {
    let one_us = one.as_micros().max(1);
    u32::try_from(100_000_u128.div_ceil(one_us)).unwrap_or(u32::MAX)
}

/// Milliseconds that this thread has had a core. The planner has one thread and waits for nothing: on a machine with a
/// free core this is the time it takes, and elsewhere it does not count what others do.
fn core_ms() -> Result<f64, String> {
    // Else the count is that of the last tick, up to four milliseconds old.
    std::thread::yield_now();
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let first = text.split_whitespace().next().unwrap_or_default();
    let nanoseconds: f64 = first.parse().map_err(|_| format!("{path}: {text}"))?;
    Ok(nanoseconds / 1e6)
}

fn say(case: &str, what: &str, value: f64, unit: &'static str, target: Option<f64>) {
    let figure = Figure {
        case: format!("{case}: {what}"),
        value,
        unit,
        target,
    };
    println!(
        "{}",
        serde_json::to_string(&figure).expect("a figure is plain data")
    );
}
