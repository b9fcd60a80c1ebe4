//! What monitoring is shown of whole stories, and that docs/metrics.md names every metric and no other.

use crate::rig::{GPUS, Rig, two_pools};
use drover::ports::actuate::InstanceState;
use drover::ports::calls::{CallBucket, CallCount, CallCounts};
use drover::serve::http::Format;
use drover_core::model::{FailureKind, Millis};
use drover_tests::exposition::Exposition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Calls of glass.
struct Calls(Vec<CallCount>);

impl CallCounts for Calls {
    fn calls(&self) -> Vec<CallCount> {
        self.0.clone()
    }
}

fn call(name: &str, role: Option<&str>, sent: u64) -> CallCount {
    CallCount {
        region: "eu-west-1".to_owned(),
        role: role.map(str::to_owned),
        api: "autoscaling".to_owned(),
        call: name.to_owned(),
        sent,
        failed: BTreeMap::from([("throttled".to_owned(), 3), ("permission".to_owned(), 1)]),
        throttled: 3,
        not_sent: 2,
        waited_ms: 1_250,
        repetitions: 5,
        last_minute: 1,
        bucket: Some(CallBucket {
            name: "changes".to_owned(),
            burst: 20,
            per_minute: 300,
            per_minute_now: 150,
            left: 7,
            assumed: true,
        }),
    }
}

fn page(rig: &Rig, calls: &[CallCount]) -> Exposition {
    let sources = rig.sources(Arc::new(Calls(calls.to_vec())));
    let text = sources.metrics(Format::OpenMetrics).expect("text");
    Exposition::read(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn of_pool(page: &Exposition, name: &str, pool: &str) -> Option<f64> {
    page.value(name, &[("pool", pool)])
}

#[tokio::test]
async fn a_fleet_is_counted_as_it_is() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    let begun = page(&rig, &[]);
    assert_eq!(of_pool(&begun, "drover_pool_coming_nodes", "a"), Some(3.0));
    assert_eq!(
        begun.value("drover_requests", &[("phase", "pending")]),
        Some(1.0)
    );
    assert_eq!(
        begun.value("drover_request_units", &[("state", "coming")]),
        Some(3.0)
    );
    assert_eq!(begun.value("drover_agents_connected", &[]), Some(0.0));
    assert_eq!(of_pool(&begun, "drover_pool_gpus", "b"), Some(0.0));

    rig.boot_all().await;
    rig.cycle().await;
    rig.clock.advance(Millis::seconds(7));
    let page = page(&rig, &[]);
    let nodes = |pool: &str, state: &str| {
        page.value("drover_pool_nodes", &[("pool", pool), ("state", state)])
    };
    assert_eq!(
        (nodes("a", "ready"), nodes("b", "ready")),
        (Some(3.0), Some(0.0))
    );
    let gpus = f64::from(3 * GPUS);
    assert_eq!(of_pool(&page, "drover_pool_gpus", "a"), Some(gpus));
    assert_eq!(
        of_pool(&page, "drover_pool_gpus_free", "a"),
        Some(0.0),
        "all are held"
    );
    let cost = of_pool(&page, "drover_pool_cost_usd_per_hour", "a");
    assert!(
        cost.is_some_and(|usd| (usd - 43.2).abs() < 1e-9),
        "{cost:?}"
    );
    assert_eq!(of_pool(&page, "drover_pool_wanted_nodes", "a"), Some(3.0));
    assert_eq!(
        of_pool(&page, "drover_pool_reading_age_seconds", "a"),
        Some(7.0)
    );
    let launched = |outcome: &str| {
        let labels = [("pool", "a"), ("outcome", outcome)];
        page.value("drover_pool_launch_nodes_total", &labels)
    };
    assert_eq!(
        (launched("asked"), launched("joined"), launched("missed")),
        (Some(3.0), Some(3.0), Some(0.0))
    );
    assert_eq!(
        page.value("drover_requests", &[("phase", "served")]),
        Some(1.0)
    );
    assert_eq!(page.value("drover_agents_connected", &[]), Some(3.0));
    assert_eq!(
        page.value("drover_demand_units", &[("state", "unplaced")]),
        Some(0.0)
    );
    let mode = |mode: &str| page.value("drover_pool_mode", &[("pool", "a"), ("mode", mode)]);
    assert_eq!((mode("full"), mode("observe")), (Some(1.0), Some(0.0)));
    assert!(page.value("drover_plan_seconds_count", &[]) > Some(1.0));
}

#[tokio::test]
async fn a_person_who_cordons_pauses_and_freezes_is_seen() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    let node = rig.cloud.alive("a").remove(0);
    let by = "admin/ada";
    rig.commands
        .cordon(by, &node, "a new disk")
        .await
        .expect("cordoned");
    rig.commands
        .pause_pool(by, "b", "dear")
        .await
        .expect("paused");
    rig.commands
        .freeze(by, None, "careful")
        .await
        .expect("frozen");
    rig.cycle().await;
    let page = page(&rig, &[]);
    let condition = |word: &str| {
        let labels = [("pool", "a"), ("condition", word)];
        page.value("drover_pool_node_conditions", &labels)
    };
    assert_eq!(
        (condition("cordoned"), condition("available")),
        (Some(1.0), Some(0.0))
    );
    let stopped = |pool: &str, reason: &str| {
        page.value("drover_pool_stopped", &[("pool", pool), ("reason", reason)])
    };
    assert_eq!(
        (stopped("b", "paused"), stopped("a", "paused")),
        (Some(1.0), Some(0.0))
    );
    assert_eq!(stopped("a", "frozen"), Some(1.0));
    assert_eq!(page.value("drover_fleet_frozen", &[]), Some(1.0));
    assert_eq!(
        page.value("drover_alarms", &[("kind", "frozen")]),
        Some(1.0)
    );
    let event = [
        ("about", "fleet"),
        ("event", "frozen"),
        ("severity", "alarm"),
    ];
    assert_eq!(page.value("drover_events_total", &event), Some(1.0));
}

#[tokio::test]
async fn failures_are_counted_by_kind_and_pool() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Shortage)
    });
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let page = page(&rig, &[]);
    let failed = |pool: &str| {
        let labels = [("pool", pool), ("reason", "shortage")];
        page.value("drover_pool_launch_failures_total", &labels)
    };
    assert_eq!((failed("a"), failed("b")), (Some(1.0), None));
    let failing = |pool: &str| {
        let labels = [("pool", pool), ("reason", "shortage")];
        page.value("drover_pool_offerings_failing", &labels)
    };
    assert_eq!((failing("a"), failing("b")), (Some(1.0), Some(0.0)));
    assert_eq!(of_pool(&page, "drover_pool_offerings", "a"), Some(1.0));
    assert_eq!(of_pool(&page, "drover_pool_coming_nodes", "b"), Some(1.0));
}

#[tokio::test]
async fn missing_is_not_zero() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("b", |script| script.dark = true);
    rig.cycle().await;
    let dark = page(&rig, &[]);
    assert_eq!(
        of_pool(&dark, "drover_pool_reading_age_seconds", "b"),
        None,
        "never read"
    );
    assert_eq!(
        of_pool(&dark, "drover_pool_reading_age_seconds", "a"),
        Some(0.0)
    );
    assert_eq!(of_pool(&dark, "drover_pool_wanted_nodes", "b"), None);
    assert_eq!(
        dark.value("drover_alarms", &[("kind", "pool_unreadable")]),
        Some(1.0)
    );

    // A stranger without a price: its pool is the empty one.
    rig.join("", "nobody-knows-it").await;
    rig.cycle().await;
    let page = page(&rig, &[]);
    assert_eq!(of_pool(&page, "drover_pool_cost_usd_per_hour", ""), None);
    assert_eq!(of_pool(&page, "drover_pool_unpriced_nodes", ""), Some(1.0));
    assert_eq!(
        of_pool(&page, "drover_pool_cost_usd_per_hour", "a"),
        Some(0.0)
    );
    assert_eq!(
        of_pool(&page, "drover_pool_gpus", ""),
        Some(f64::from(GPUS))
    );
}

#[tokio::test]
async fn calls_are_those_of_the_budget_and_a_bucket_is_told_once() {
    let rig = Rig::new(&two_pools()).await;
    let role = "arn:aws:iam::123456789012:role/a \"b\"\\c";
    let (one, two) = ("SetDesiredCapacity", "LaunchInstances");
    let calls = [
        call(one, None, 9),
        call(two, None, 4),
        call(one, Some(role), 1),
    ];
    let page = page(&rig, &calls);
    let labels = |name, role| {
        [
            ("region", "eu-west-1"),
            ("role", role),
            ("api", "autoscaling"),
            ("call", name),
        ]
    };
    let sent = |name, role| page.value("drover_aws_requests_total", &labels(name, role));
    assert_eq!(
        (sent(one, ""), sent(two, ""), sent(one, role)),
        (Some(9.0), Some(4.0), Some(1.0))
    );
    let waited = page.value("drover_aws_budget_wait_seconds_total", &labels(two, ""));
    assert_eq!(waited, Some(1.25));
    let [region, at, api, name] = labels(one, role);
    let throttled = [region, at, api, name, ("reason", "throttled")];
    assert_eq!(
        page.value("drover_aws_request_failures_total", &throttled),
        Some(3.0)
    );
    assert_eq!(
        page.of("drover_aws_budget_tokens").len(),
        2,
        "one for each account"
    );
    let bucket = [region, ("role", ""), ("bucket", "changes")];
    let refill = page.value("drover_aws_budget_tokens_per_second", &bucket);
    let limit = page.value("drover_aws_budget_limit_tokens_per_second", &bucket);
    assert_eq!((refill, limit), (Some(2.5), Some(5.0)));
}

/// Name, type and labels of each metric in the tables of docs/metrics.md.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let quoted = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", name, kind, labels, _unit, meaning, ""] = cells.as_slice()
            && let Some(name) = name
                .strip_prefix('`')
                .and_then(|rest| rest.strip_suffix('`'))
        {
            assert!(!meaning.is_empty(), "{line}");
            let row = ((*kind).to_owned(), quoted(labels));
            assert!(
                found.insert(name.to_owned(), row).is_none(),
                "twice: {line}"
            );
        }
    }
    found
}

/// A story in which every family gets a sample.
async fn eventful() -> Rig {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(3);
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Shortage)
    });
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    rig.cloud.script("b", |script| {
        script.leave_fails = Some(FailureKind::Transient)
    });
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(15)).await;
    rig
}

#[tokio::test]
async fn every_metric_is_documented_and_nothing_else_is() {
    let rig = eventful().await;
    let page = page(&rig, &[call("LaunchInstances", None, 9)]);
    let mut told: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for (family, about) in &page.families {
        let name = match about.kind.as_str() {
            "counter" => format!("{family}_total"),
            "info" => format!("{family}_info"),
            _ => family.clone(),
        };
        let sample = match about.kind.as_str() {
            "histogram" => format!("{family}_count"),
            _ => name.clone(),
        };
        let samples = page.of(&sample);
        let first = samples
            .first()
            .unwrap_or_else(|| panic!("{family} has no sample here"));
        let labels: BTreeSet<String> = first.labels.keys().cloned().collect();
        for other in samples {
            assert!(other.labels.keys().eq(&labels), "{other:?}");
        }
        assert!(
            !about.help.is_empty() && about.help.starts_with(char::is_uppercase),
            "{family}"
        );
        told.insert(name, (about.kind.clone(), labels));
    }
    let documented = documented();
    for (name, row) in &told {
        assert_eq!(documented.get(name), Some(row), "{name} in docs/metrics.md");
    }
    for name in documented.keys() {
        assert!(told.contains_key(name), "{name} is documented and not told");
    }
    assert!(told.len() > 40, "{told:?}");
}

/// Labels stay bounded: no node, instance, request or person is named, however much happens.
#[tokio::test]
async fn nobody_is_named() {
    let mut rig = eventful().await;
    rig.cloud.script("b", |script| script.leave_fails = None);
    rig.ask("secret-project", 2, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.pass(Millis::minutes(2)).await;
    let machines = rig.cloud.machines.lock().expect("lock").clone();
    assert!(
        machines
            .values()
            .any(|machine| machine.state == InstanceState::Running)
    );
    let page = page(&rig, &[]);
    let values: BTreeSet<&String> = page
        .samples
        .iter()
        .flat_map(|s| s.labels.values())
        .collect();
    for value in values {
        let named = machines.keys().any(|id| value.contains(id.as_str()));
        assert!(
            !named && !value.contains("secret") && !value.contains("admin/"),
            "{value}"
        );
    }
}

#[tokio::test]
async fn the_older_format_has_the_same_samples() {
    let rig = eventful().await;
    let sources = rig.sources(Arc::new(Calls(vec![call("LaunchInstances", None, 9)])));
    let new = sources.metrics(Format::OpenMetrics).expect("text");
    let old = sources.metrics(Format::Prometheus).expect("text");
    let samples = |text: &str| -> Vec<String> {
        // It writes the bounds of buckets without a fraction, and the buckets before their sum.
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("le="));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(samples(&new), samples(&old));
    assert_eq!(new.matches("le=").count(), old.matches("le=").count());
    assert!(
        old.contains("# TYPE drover_aws_requests_total counter"),
        "{old}"
    );
}

#[test]
fn open_metrics_is_for_who_asks_for_it() {
    let prometheus =
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
    assert_eq!(
        Format::wanted([prometheus].into_iter()),
        Format::OpenMetrics
    );
    for accept in [&["*/*"][..], &["text/html", "text/plain"], &[]] {
        assert_eq!(Format::wanted(accept.iter().copied()), Format::Prometheus);
    }
}

/// Every name in the rules is one that is documented, so that no alert is silent for a typing error.
#[test]
fn the_rules_for_alerts_name_what_there_is() {
    let documented = documented();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/prometheus/");
    for (file, least) in [("prometheus.yml", 0), ("drover.rules.yml", 8)] {
        let text = std::fs::read_to_string(format!("{folder}{file}")).expect("the file");
        serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&text).expect("YAML");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: BTreeSet<&str> = words.filter(|word| word.starts_with("drover_")).collect();
        assert!(names.len() >= least, "{file}: {names:?}");
        for name in names {
            assert!(documented.contains_key(name), "{file}: {name} is no metric");
        }
    }
}
