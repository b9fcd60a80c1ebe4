//! A score as one JSON object. Keys with a unit carry it: `cost_usd` or `cost_node_hours`.
//!
//! Called by `drover simulate -o json` and the benchmarks. Every key is always there; a figure that does not exist is
//! null, never zero.

use super::{Score, Unit, Waits, Waste};
use serde_json::{Map, Value, json};

/// The object.
#[must_use]
pub fn object(score: &Score) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    let bounds = &score.bounds;
    for (name, value) in [
        ("cost", score.cost),
        ("bound", bounds.fluid),
        ("bound_resource_hours", bounds.resource_hours),
        ("bound_boot_aware", bounds.boot_aware),
        ("no_packing", bounds.no_packing),
    ] {
        for unit in [Unit::Usd, Unit::NodeHours] {
            let value = (unit == score.unit).then_some(value);
            put(&format!("{name}_{}", unit.key()), figure(value));
        }
    }
    for (name, value) in [
        ("cost_over_bound", score.over_bound()),
        ("cost_over_boot_aware", score.over_boot_aware()),
        ("cost_over_no_packing", score.over_no_packing()),
        ("gap_closed", score.gap_closed()),
    ] {
        put(name, figure(value));
    }
    for (name, value) in waits(&score.waits) {
        put(name, figure(value));
    }
    put("wait_max_s", figure(score.waits.most));
    put("wait_from_submission_p50_s", figure(score.waits.raw_p50));
    put("wait_from_submission_p95_s", figure(score.waits.raw_p95));
    let by_size = score.by_gang_size.iter().map(|size| {
        let mut one = Map::new();
        one.insert("units".to_owned(), json!(size.units));
        one.insert("jobs".to_owned(), json!(size.jobs));
        for (name, value) in waits(&size.waits) {
            one.insert(name.to_owned(), figure(value));
        }
        one.insert("share_waited".to_owned(), rounded(size.share_waited));
        let share = rounded(size.share_waited_for_boot);
        one.insert("share_waited_for_boot".to_owned(), share);
        Value::Object(one)
    });
    put("wait_by_gang_size", by_size.collect());
    put("share_waited", rounded(score.share_waited));
    put(
        "share_waited_for_boot",
        rounded(score.share_waited_for_boot),
    );
    for (name, value) in [
        ("jobs", score.jobs),
        ("jobs_killed", score.jobs_killed),
        ("jobs_unstarted", score.jobs_unstarted),
        ("jobs_unfinished", score.jobs_unfinished),
        ("nodes", score.nodes),
        ("nodes_at_once", score.most_nodes),
    ] {
        put(name, json!(value));
    }
    put("jobs_waited_for", json!(score.waited_for));
    put("jobs_impossible", json!(bounds.impossible));
    put("kills", json!(score.kills));
    put("moves", json!(score.moves));
    put("node_hours", rounded(score.node_hours));
    put("useful_node_hours", rounded(score.waste.useful));
    put("waste_node_hours", causes(&score.waste));
    let money = (score.unit == Unit::Usd).then_some(&score.waste_cost);
    put("useful_usd", figure(money.map(|cost| cost.useful)));
    put("waste_usd", money.map_or(Value::Null, causes));
    put("plans", json!(score.plans));
    put("plan_seconds", rounded(score.plan_seconds));
    put("refusals", json!(score.refusals));
    put("violations", json!(score.violations.len()));
    let first: Vec<&String> = score.violations.iter().take(20).collect();
    put("violations_first", json!(first));
    put("simulated_days", rounded(score.days));
    put("trace", json!(score.trace));
    put("policy", json!(score.policy));
    put("placer", json!(score.placer));
    put("seed", json!(score.seed));
    let skipped = score.skipped.iter();
    let skipped: Map<String, Value> = skipped
        .map(|(why, count)| (why.clone(), json!(count)))
        .collect();
    put("skipped", Value::Object(skipped));
    Value::Object(object)
}

fn waits(waits: &Waits) -> [(&'static str, Option<f64>); 3] {
    [
        ("wait_p50_s", waits.p50),
        ("wait_p95_s", waits.p95),
        ("wait_p99_s", waits.p99),
    ]
}

fn causes(waste: &Waste) -> Value {
    let causes = waste.causes().into_iter();
    let causes: Map<String, Value> = causes
        .map(|(name, value)| (name.to_owned(), rounded(value)))
        .collect();
    Value::Object(causes)
}

/// Null where there is none.
fn figure(value: Option<f64>) -> Value {
    value.map_or(Value::Null, rounded)
}

/// Four digits after the point.
fn rounded(value: f64) -> Value {
    json!((value * 10_000.0).round() / 10_000.0)
}
