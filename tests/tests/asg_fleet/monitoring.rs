//! What monitoring is told of groups: the calls to AWS are those that `drover api-calls` counts, nodes and GPUs are there.

use super::*;
use drover_tests::exposition::{Exposition, scrape};
use std::net::SocketAddr;

/// Requests sent, by region and call, as the CLI tells them.
fn counted(field: &Field) -> BTreeMap<(String, String), f64> {
    let calls = field.coordinator.ask(&["api-calls"]);
    let calls = calls.as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    calls
        .map(|call| {
            let key = (text(&call["region"]), text(&call["call"]));
            (key, call["sent"].as_f64().expect("a count"))
        })
        .collect()
}

/// The same as Prometheus is told.
fn told(page: &Exposition) -> BTreeMap<(String, String), f64> {
    let samples = page.of("drover_aws_requests_total").into_iter();
    samples
        .map(|sample| {
            let label = |name: &str| sample.labels[name].clone();
            assert_eq!(label("role"), "", "there is one account");
            ((label("region"), label("call")), sample.value)
        })
        .collect()
}

fn of_pool(at: SocketAddr, name: &str, pool: &str) -> Option<f64> {
    scrape(at).value(name, &[("pool", pool)])
}

#[test]
fn every_call_to_aws_is_counted_in_the_metrics_as_the_cli_counts_it() {
    let refused = |action: &str| Fault {
        action: Some(action.into()),
        group: Some("closed".into()),
        ..denied()
    };
    let denied = Scenario {
        faults: vec![refused("LaunchInstances"), refused("SetDesiredCapacity")],
        ..Scenario::default()
    };
    let pools = [pool(EAST, "closed"), pool(WEST, "open")];
    let mut field = Field::prepare(&pools, denied);
    let at = field.coordinator.monitored();
    field.run("");
    field.ask_for("job", 1);
    field.boot("open", WEST, 1);
    field.served("job");

    // Calls go on all the time: what is scraped lies between what is told before and after.
    let before = counted(&field);
    let page = scrape(at);
    let after = counted(&field);
    let told = told(&page);
    assert!(before.len() > 3, "{before:?}");
    for (call, least) in &before {
        let (here, most) = (told.get(call), after[call]);
        assert!(
            here.is_some_and(|here| (*least..=most).contains(here)),
            "{call:?}: {here:?}, and from {least} to {most} by the CLI"
        );
    }
    assert!(told.keys().all(|call| after.contains_key(call)), "{told:?}");
    let launches = |region: &str| {
        told.get(&(region.into(), "LaunchInstances".into()))
            .copied()
    };
    assert_eq!((launches(EAST), launches(WEST)), (Some(1.0), Some(1.0)));
    let failures = page.of("drover_aws_request_failures_total");
    let refused = |call: &str| -> Vec<(&str, &str, f64)> {
        let these = failures
            .iter()
            .filter(|sample| sample.labels["call"] == call);
        these
            .map(|sample| {
                let labels = &sample.labels;
                let (region, reason) = (labels["region"].as_str(), labels["reason"].as_str());
                (region, reason, sample.value)
            })
            .collect()
    };
    for call in ["LaunchInstances", "SetDesiredCapacity"] {
        assert_eq!(refused(call), [(EAST, "permission", 1.0)], "{call}");
    }
    let stopped = [("pool", "closed"), ("reason", "failed")];
    assert_eq!(page.value("drover_pool_stopped", &stopped), Some(1.0));
    assert_eq!(
        page.value("drover_alarms", &[("kind", "pool_stopped")]),
        Some(1.0)
    );
    let failed = [("pool", "closed"), ("reason", "permission")];
    assert_eq!(
        page.value("drover_pool_launch_failures_total", &failed),
        Some(1.0)
    );
    let buckets = page.of("drover_aws_budget_tokens");
    assert!(
        buckets.iter().any(|bucket| bucket.labels["region"] == WEST),
        "{buckets:?}"
    );

    wait::until(
        "the node with its GPU, its price and its reading",
        SOON,
        || (of_pool(at, "drover_pool_gpus", "open") == Some(1.0)).then_some(()),
    );
    let page = scrape(at);
    let of = |name: &str| page.value(name, &[("pool", "open")]);
    assert_eq!(
        of("drover_pool_gpus_free"),
        Some(0.0),
        "the request holds it"
    );
    assert_eq!(of("drover_pool_cost_usd_per_hour"), Some(1.0));
    assert_eq!(of("drover_pool_wanted_nodes"), Some(1.0));
    let age = of("drover_pool_reading_age_seconds");
    assert!(age.is_some_and(|seconds| seconds < 60.0), "{age:?}");
    let joined = [("pool", "open"), ("outcome", "joined")];
    assert_eq!(
        page.value("drover_pool_launch_nodes_total", &joined),
        Some(1.0)
    );
}
