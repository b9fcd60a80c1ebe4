//! AG-03, AG-04 and a crash: what the driver does to the probe it does not do to the agent.

use std::time::{Duration, Instant};

use drover_agent::collector::GPU_PROCESSES;
use serde_json::json;

use crate::bed::{Bed, DEADLINE, SOON, condition, gpus, until};

#[tokio::test]
async fn ag_03_one_init_for_a_thousand_rounds() {
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    bed.config.interval = Duration::from_millis(1);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    until("1000 rounds", || bed.calls("Count_v2") >= 1000).await;
    assert_eq!((bed.calls("Init"), bed.calls("Shutdown")), (1, 0));
    agent
        .collector
        .release(Duration::from_secs(600))
        .await
        .unwrap();
    agent.collector.resume().await.unwrap();
    agent.wait_gpus(1).await;
    assert_eq!((bed.calls("Init"), bed.calls("Shutdown")), (2, 1));
    agent.collector.stop().await;
    assert_eq!(bed.calls("Shutdown"), 2);
}

#[tokio::test]
async fn ag_03_an_init_that_never_returns_delays_nothing() {
    let mut bed = Bed::new(json!([{"profile": "titan-x", "count": 2}]), 2);
    bed.edit(|script| script["init"] = json!("hang"));
    bed.config.probe.init_deadline = Duration::from_secs(4);
    let mut agent = bed.start();
    let first = agent
        .wait("host values", |seen| seen.telemetry.is_some())
        .await;
    assert_eq!(first.conditions, [], "it waited until init was given up");
    assert_eq!(first.facts.pci_gpus, Some(2));
    let hung = agent
        .wait("hung", |seen| condition(seen, "gpu_probe_hung").is_some())
        .await;
    assert_eq!(condition(&hung, "gpu_probe_hung").unwrap().subject, "init");
    assert!(hung.unreadable.contains_key(GPU_PROCESSES));
    bed.edit(|script| script["init"] = json!(0));
    let healed = agent.wait_gpus(2).await;
    assert!(healed.conditions.is_empty());
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_04_every_call_hangs_and_the_host_is_still_seen() {
    let card = json!({"profile": "titan-x"});
    let mut bed = Bed::new(json!([card, card]), 2);
    bed.config.probe.op_deadline = SOON;
    bed.config.probe.init_deadline = SOON;
    let mut agent = bed.start();
    agent.wait_gpus(2).await;
    // For GPU 0 alone: the change may come between its call and that of GPU 1, and the first to hang is told.
    bed.edit(|script| script["gpus"][0]["calls"] = json!({"PowerUsage": "hang"}));
    let hung = agent
        .wait("hung", |seen| condition(seen, "gpu_probe_hung").is_some())
        .await;
    let found = condition(&hung, "gpu_probe_hung").unwrap().clone();
    assert_eq!(found.subject, "power_usage");
    assert!(
        found.faulty && found.message.contains("GPU 0"),
        "{}",
        found.message
    );

    // It is tried again and hangs again: one condition, no values repeated, host values in each.
    bed.edit(|script| script["init"] = json!("hang"));
    let (begin, before) = (Instant::now(), bed.calls("Init"));
    let (mut seen_times, mut last) = (0, 0);
    while seen_times < 30 || bed.calls("Init") < before + 3 {
        assert!(begin.elapsed() < DEADLINE, "it is not tried again");
        seen_times += 1;
        let seen = agent.next().await;
        let telemetry = seen.telemetry.as_ref().unwrap();
        assert!(telemetry.memory_used_bytes.is_some() && telemetry.at_unix_ms != last);
        last = telemetry.at_unix_ms;
        assert!(gpus(&seen).is_empty(), "values of a hung driver");
        assert_eq!(seen.facts.gpus.len(), 2);
        assert!(
            seen.unreadable[GPU_PROCESSES].contains("power_usage"),
            "{:?}",
            seen.unreadable
        );
        assert!(!seen.witnesses.contains(GPU_PROCESSES));
        let conditions: Vec<_> = seen.conditions.iter().collect();
        assert_eq!(conditions, [&found]);
    }
    let begin = Instant::now();
    agent.collector.stop().await;
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_crash_in_the_driver_is_named_and_not_a_loop() {
    let mut bed = Bed::new(json!([{"profile": "v100"}]), 1);
    bed.config.probe.retry_max = Duration::from_secs(60);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    bed.edit(|script| script["calls"] = json!({"Temperature": "crash"}));
    let seen = agent
        .wait("crash", |seen| {
            condition(seen, "gpu_probe_crashed").is_some()
        })
        .await;
    let found = condition(&seen, "gpu_probe_crashed").unwrap().clone();
    assert_eq!(found.subject, "temperature");
    assert!(found.message.contains("signal 6"), "{}", found.message);
    let begin = Instant::now();
    let before = bed.calls("Init");
    until("three tries", || bed.calls("Init") >= before + 3).await;
    // 50, 100, 200 ms with jitter.
    assert!(begin.elapsed() > Duration::from_millis(150), "no back-off");
    bed.edit(|script| script["calls"] = json!({}));
    let healed = agent.wait_gpus(1).await;
    assert!(healed.conditions.is_empty());
    agent.collector.stop().await;
}

#[tokio::test]
async fn the_child_does_not_outlive_its_parent() {
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    for hang in [false, true] {
        let mut agent = bed.start();
        agent.wait_gpus(1).await;
        let devices = bed.path("devices");
        assert_eq!(crate::bed::holders(&devices).len(), 1);
        if hang {
            bed.hang("PowerUsage").await;
        }
        drop(agent);
        until("the end of the child", || {
            crate::bed::holders(&devices).is_empty()
        })
        .await;
    }
}

#[tokio::test]
async fn facts_name_the_call_that_hangs_and_still_show_the_host() {
    for (script, call) in [
        (json!({"init": "hang"}), "gpu probe hung in nvmlInit_v2"),
        (
            json!({"calls": {"PowerUsage": "hang"}}),
            "gpu probe hung in nvmlDeviceGetPowerUsage of GPU 0",
        ),
    ] {
        let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
        bed.config.probe.op_deadline = SOON;
        bed.config.probe.init_deadline = 3 * SOON;
        bed.edit(|all| {
            for (key, value) in script.as_object().unwrap() {
                all[key] = value.clone();
            }
        });
        let begin = Instant::now();
        let seen = drover_agent::run::observe(bed.config.clone(), Duration::from_secs(20))
            .await
            .unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(!seen.facts.hostname.is_empty() && seen.telemetry.is_some());
        assert_eq!(condition(&seen, "gpu_probe_hung").unwrap().message, call);
    }
}

#[tokio::test]
async fn the_facts_command_tells_a_hang_on_stderr_and_succeeds() {
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    bed.edit(|script| script["calls"] = json!({"PowerUsage": "hang"}));
    let config = bed.path("agent.toml");
    let text = format!(
        "coordinator = \"https://x:1\"\n[metadata]\nendpoint = \"off\"\n[gpu]\nlibrary = {:?}\ndeadline = \"1s\"\n",
        crate::bed::stub()
    );
    std::fs::write(&config, text).unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_drover-agent"))
        .args(["facts", "--output", "json", "--config"])
        .arg(&config)
        .env("DROVER_NVML_STUB", bed.path("script.json"))
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("gpu probe hung in nvmlDeviceGetPowerUsage of GPU 0"),
        "{said}"
    );
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(facts["cpu_permille"].is_u64(), "{facts}");
}
