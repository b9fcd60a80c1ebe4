//! AG-05, AG-08, AG-29: the driver comes late, or does not fit, or may not be opened.

use std::time::Duration;

use drover_agent::collector::GPU_PROCESSES;
use serde_json::json;

use crate::bed::{Bed, condition, gpus, until};

#[tokio::test]
async fn ag_05_a_driver_that_comes_late_is_taken() {
    let mut bed = Bed::new(json!([{"profile": "titan-x", "count": 2}]), 2);
    bed.edit(|script| script["driver_version"] = json!("535.1"));
    let link = bed.path("lib/libnvidia-ml.so.1");
    bed.config.probe.library = Some(link);
    let mut agent = bed.start();
    let absent = agent
        .wait("driver absent", |seen| {
            condition(seen, "driver_absent").is_some()
        })
        .await;
    assert!(
        condition(&absent, "driver_absent")
            .unwrap()
            .message
            .starts_with("2 NVIDIA GPUs")
    );
    assert_eq!(absent.facts.pci_gpus, Some(2));
    assert!(absent.unreadable.contains_key(GPU_PROCESSES));

    bed.install("535.1");
    let there = agent.wait_gpus(2).await;
    assert!(there.conditions.is_empty());
    assert_eq!(there.facts.driver_version.as_deref(), Some("535.1"));
    assert!(
        gpus(&there)
            .iter()
            .all(|gpu| gpu.power_violation_ns.is_none())
    );

    agent
        .collector
        .release(Duration::from_secs(600))
        .await
        .unwrap();
    bed.install("580.95");
    bed.edit(|script| {
        script["driver_version"] = json!("580.95");
        script["calls"] = json!({"ViolationStatus": {"value": 7}});
    });
    agent.collector.resume().await.unwrap();
    let again = agent
        .wait("the new driver", |seen| {
            gpus(seen).len() == 2
                && gpus(seen)
                    .iter()
                    .all(|gpu| gpu.power_violation_ns == Some(7))
        })
        .await;
    assert_eq!(again.facts.driver_version.as_deref(), Some("580.95"));
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_05_a_value_that_is_not_supported_is_asked_once() {
    let bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    let rounds = bed.calls("Count_v2");
    until("ten more rounds", || bed.calls("Count_v2") > rounds + 10).await;
    assert_eq!(bed.calls("ViolationStatus 0"), 1);
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_05_without_a_gpu_there_is_no_condition() {
    let mut bed = Bed::new(json!([]), 0);
    bed.config.probe.library = Some(bed.path("nothing.so"));
    let mut agent = bed.start();
    let seen = agent
        .wait("a CPU node", |seen| seen.witnesses.contains(GPU_PROCESSES))
        .await;
    assert!(seen.conditions.is_empty(), "{:?}", seen.conditions);
    assert_eq!(seen.facts.pci_gpus, Some(0));
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_08_a_mismatch_is_named_with_both_versions_and_heals() {
    let mut bed = Bed::new(json!([{"profile": "titan-x", "count": 2}]), 2);
    bed.load_module("535.183.01");
    bed.config.probe.library = Some(bed.install("550.90.07"));
    bed.edit(|script| script["init"] = json!({"code": 18}));
    let mut agent = bed.start();
    let seen = agent
        .wait("mismatch", |seen| {
            condition(seen, "driver_lib_mismatch").is_some()
        })
        .await;
    let found = condition(&seen, "driver_lib_mismatch").unwrap().clone();
    assert!(
        found
            .message
            .contains("module 535.183.01, library 550.90.07"),
        "{}",
        found.message
    );
    assert_eq!(seen.facts.pci_gpus, Some(2));

    // Init calls back off: 50, 100, 200, 400 ms and then 400 ms each.
    let (begin, before) = (std::time::Instant::now(), bed.calls("Init"));
    until("five more tries", || bed.calls("Init") >= before + 5).await;
    assert!(begin.elapsed() > Duration::from_millis(700), "no back-off");
    assert_eq!(agent.next().await.conditions, [found]);

    bed.load_module("550.90.07");
    bed.edit(|script| script["init"] = json!(0));
    let healed = agent.wait_gpus(2).await;
    assert_eq!(healed.facts.gpus.len(), 2);
    agent
        .wait("no condition", |seen| seen.conditions.is_empty())
        .await;

    // The package is upgraded under a running agent.
    bed.install("560.35.03");
    let old = agent
        .wait("reload needed", |seen| {
            condition(seen, "driver_reload_needed").is_some() && gpus(seen).len() == 2
        })
        .await;
    let found = condition(&old, "driver_reload_needed").unwrap().clone();
    assert!(
        found.message.contains("library 560.35.03"),
        "{}",
        found.message
    );
    for _ in 0..10 {
        assert_eq!(agent.next().await.conditions, std::slice::from_ref(&found));
    }
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_08_a_library_without_a_version_in_its_name_is_no_mismatch() {
    let bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    bed.load_module("535.183.01");
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    for _ in 0..10 {
        assert_eq!(agent.next().await.conditions, []);
    }
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_29_code_999_names_device_access_and_backs_off() {
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    bed.edit(|script| script["init"] = json!({"code": 999}));
    let mut agent = bed.start();
    let seen = agent
        .wait("refused", |seen| {
            condition(seen, "gpu_probe_failed").is_some()
        })
        .await;
    let found = condition(&seen, "gpu_probe_failed").unwrap();
    assert!(found.message.contains("/dev/nvidia"), "{}", found.message);
    let (begin, before) = (std::time::Instant::now(), bed.calls("Init"));
    until("five more tries", || bed.calls("Init") >= before + 5).await;
    assert!(begin.elapsed() > Duration::from_millis(700), "a crash loop");
    agent.collector.stop().await;
}
