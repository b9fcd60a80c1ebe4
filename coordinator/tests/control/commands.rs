//! What people may change: each error names its field, nothing half is done, all is in the audit.

use crate::rig::{GPUS, Rig, START, two_pools};
use drover::control::commands::{CommandError, LimitsWish};
use drover::records::RequestSpec;
use drover_core::model::{Locality, Millis, Mode, PoolId, Resources};
use std::collections::BTreeMap;

fn spec() -> RequestSpec {
    RequestSpec {
        units: 1,
        unit: Resources {
            gpus: 1,
            ..Resources::default()
        },
        whole_nodes: false,
        gpu_model: String::new(),
        duration: None,
        gang_min: None,
        locality: Locality::Any,
        priority: 0,
        pools: Vec::new(),
        labels: BTreeMap::new(),
        hold: None,
        ..RequestSpec::default()
    }
}

fn field<T>(result: Result<T, CommandError>) -> &'static str {
    match result {
        Err(CommandError::Invalid { field, .. }) => field,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("accepted"),
    }
}

#[tokio::test]
async fn each_wrong_field_of_a_request_is_named() {
    let teams = "[control.team.vision]\nmax_gpus = 8\n";
    let rig = Rig::new(&format!("{}{teams}", two_pools())).await;
    type Change = fn(&mut RequestSpec);
    let table: [(&str, Change); 11] = [
        ("units", |spec| spec.units = 0),
        ("gpus_per_unit", |spec| spec.unit.gpus = 0),
        ("min_units", |spec| spec.gang_min = Some(2)),
        ("duration_ms", |spec| spec.duration = Some(Millis(0))),
        ("hold_ms", |spec| spec.hold = Some(Millis(u64::MAX))),
        ("pools", |spec| spec.pools = vec![PoolId::from("nowhere")]),
        ("gpu_milli_per_unit", |spec| spec.gpu_milli = 500),
        ("gpu_milli_per_unit", |spec| {
            spec.unit.gpus = 0;
            spec.gpu_milli = 1_000;
        }),
        ("max_wait_ms", |spec| spec.max_wait = Some(Millis(0))),
        ("deadline_unix_ms", |spec| spec.deadline = Some(START)),
        ("team", |spec| spec.team = "visoin".to_owned()),
    ];
    for (wanted, change) in table {
        let mut wrong = spec();
        change(&mut wrong);
        let result = rig.commands.create_request("admin/ada", "r", &wrong).await;
        assert_eq!(field(result), wanted);
    }
    assert_eq!(
        field(
            rig.commands
                .create_request("admin/ada", "a b", &spec())
                .await
        ),
        "name"
    );
    assert_eq!(rig.count("/request/").await, 0);
    let made = rig
        .commands
        .create_request("admin/ada", "", &spec())
        .await
        .expect("a made name");
    assert!(made.0.starts_with("request-"));
    rig.commands
        .create_request("admin/ada", "r", &spec())
        .await
        .expect("created");
    assert!(matches!(
        rig.commands.create_request("admin/bob", "r", &spec()).await,
        Err(CommandError::Exists { .. })
    ));
    let audit = rig.commands.journal().audit(0, 10).await.expect("read");
    assert!(
        audit
            .iter()
            .all(|line| line.actor == "admin/ada" && line.verb == "request.create")
    );
    assert_eq!(audit.len(), 2);
}

#[tokio::test]
async fn requests_are_extended_and_cancelled_at_once() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    rig.commands
        .extend_request("admin/ada", "job", Millis::minutes(30))
        .await
        .expect("extended");
    rig.pass(Millis::minutes(45)).await;
    assert_eq!(rig.shown("job"), "served");
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "cancelled");
    assert!(
        rig.commands
            .extend_request("admin/ada", "job", Millis(1))
            .await
            .is_err()
    );
    rig.pass(Millis::minutes(12)).await;
    assert!(rig.cloud.alive("a").is_empty());
}

#[tokio::test]
async fn limits_and_modes_are_checked_and_survive() {
    let mut rig = Rig::new(&two_pools()).await;
    let wish = LimitsWish {
        min: Some(300),
        ..LimitsWish::default()
    };
    assert_eq!(
        field(rig.commands.set_pool_limits("admin/ada", "a", &wish).await),
        "min"
    );
    assert_eq!(
        field(
            rig.commands
                .set_pool_limits("admin/ada", "a", &LimitsWish::default())
                .await
        ),
        "reset"
    );
    let wish = LimitsWish {
        max: Some(1),
        ..LimitsWish::default()
    };
    rig.commands
        .set_pool_limits("admin/ada", "a", &wish)
        .await
        .expect("set");
    rig.restart().await;
    rig.ask_with("job", 3, GPUS, |spec| spec.pools = vec![PoolId::from("a")])
        .await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 1);
    rig.commands
        .pause_pool("admin/ada", "b", "price")
        .await
        .expect("paused");
    rig.cycle().await;
    assert!(rig.view().pool("b").expect("b").paused[0].contains("price"));
    assert!(matches!(
        rig.commands.pause_pool("admin/ada", "nowhere", "").await,
        Err(CommandError::NotFound { .. })
    ));
}

#[tokio::test]
async fn what_is_so_already_is_said_and_not_done_again() {
    let rig = Rig::new(&two_pools()).await;
    let lines = async || {
        let audit = rig.commands.journal().audit(0, 100).await;
        audit.expect("read").len()
    };
    let by = "admin/ada";
    let commands = &rig.commands;
    let max = |max: u32| LimitsWish {
        max: Some(max),
        ..LimitsWish::default()
    };
    let reset = LimitsWish {
        reset: true,
        ..LimitsWish::default()
    };
    // Each twice: the first time it changes something.
    for second in [false, true] {
        let before = lines().await;
        let pause = commands.pause_pool(by, "a", "price").await;
        let told = [
            pause.expect("paused").unchanged,
            commands
                .freeze(by, None, "careful")
                .await
                .expect("frozen")
                .unchanged,
            commands
                .freeze(by, Some("a"), "")
                .await
                .expect("frozen")
                .unchanged,
            commands
                .set_pool_mode(by, "a", Mode::Grow, "")
                .await
                .expect("set")
                .unchanged,
            commands
                .set_pool_limits(by, "a", &max(5))
                .await
                .expect("set")
                .unchanged,
        ];
        let wanted = [
            "pool a is paused already by admin/ada: price",
            "the fleet is frozen already by admin/ada: careful",
            "pool a is frozen already by admin/ada",
            "pool a is in mode grow already",
            "pool a has min 0, max 5, spare 0 already",
        ];
        for (told, wanted) in told.iter().zip(wanted) {
            assert_eq!(told.as_deref(), second.then_some(wanted));
        }
        assert_eq!(lines().await == before, second, "nothing to audit");
    }
    // Another reason is another pause; without one the first stays.
    let again = commands.pause_pool(by, "a", "heat").await.expect("paused");
    assert_eq!(again.unchanged, None);
    let again = commands.pause_pool(by, "a", "").await.expect("paused");
    assert!(again.unchanged.is_some_and(|told| told.ends_with(": heat")));
    for wanted in [false, true] {
        let resumed = commands.resume_pool(by, "a").await.expect("resumed");
        assert_eq!(resumed.unchanged.is_some(), wanted);
        let limits = commands.set_pool_limits(by, "a", &reset).await;
        assert_eq!(limits.expect("reset").unchanged.is_some(), wanted);
    }
}

#[tokio::test]
async fn names_of_nodes_must_be_known_and_unique() {
    let mut rig = Rig::new(&two_pools()).await;
    for id in ["i-1", "i-2"] {
        rig.cloud.add("a", id);
        let node = rig.join("a", id).await;
        rig.agent(&node, |agent| {
            std::sync::Arc::make_mut(&mut agent.view.facts).hostname = "twin".into();
        });
    }
    rig.cloud.add("a", "i-3");
    rig.cycle().await;
    assert!(matches!(
        rig.commands.cordon("admin/ada", "twin", "").await,
        Err(CommandError::Ambiguous { .. })
    ));
    assert!(matches!(
        rig.commands.cordon("admin/ada", "nobody", "").await,
        Err(CommandError::NotFound { .. })
    ));
    assert!(matches!(
        rig.commands.cordon("admin/ada", "i-3", "").await,
        Err(CommandError::Refused(_))
    ));
    rig.commands
        .cordon("admin/ada", "i-1", "fan")
        .await
        .expect("cordoned");
}

#[tokio::test]
async fn events_are_found_by_any_name_of_a_node_and_an_unknown_one_is_refused() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let instance = rig.cloud.alive("a")[0].clone();
    let node = rig.join("a", &instance).await;
    rig.cycle().await;
    for name in [node.as_str(), &instance, &format!("host-{instance}")] {
        let subject = rig.commands.event_subject(name).await.expect("a node");
        assert_eq!(subject, node.0, "{name}");
        assert!(
            !rig.commands.events(0, &subject, 10).await.is_empty(),
            "{name}"
        );
    }
    for name in ["a", "job", ""] {
        assert_eq!(rig.commands.event_subject(name).await.expect("known"), name);
    }
    let refused = rig
        .commands
        .event_subject("nobody")
        .await
        .expect_err("unknown");
    assert!(refused.to_string().contains("nobody"), "{refused}");
}
