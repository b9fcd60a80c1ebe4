//! AG-13: open handles block reset and unbind, so `release` must really let go.

use std::time::{Duration, Instant};

use drover_agent::collector::{GPU_PROCESSES, ReleaseError};
use serde_json::json;

use crate::bed::{Bed, condition, gpus, holders};

const TTL: Duration = Duration::from_secs(600);

#[tokio::test]
async fn ag_13_release_lets_go_and_resume_comes_back() {
    let bed = Bed::new(json!([{"profile": "titan-x", "count": 2}]), 2);
    let devices = bed.path("devices");
    let mut agent = bed.start();
    agent.wait_gpus(2).await;
    assert!(!holders(&devices).is_empty());

    let begin = Instant::now();
    agent.collector.release(TTL).await.unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "it waits for nothing"
    );
    assert!(holders(&devices).is_empty());
    assert_eq!((bed.calls("Init"), bed.calls("Shutdown")), (1, 1));
    agent
        .wait("released", |seen| condition(seen, "gpu_released").is_some())
        .await;
    for _ in 0..20 {
        let seen = agent.next().await;
        assert!(
            gpus(&seen).is_empty() && seen.telemetry.as_ref().unwrap().memory_used_bytes.is_some()
        );
        assert_eq!(seen.facts.gpus.len(), 2);
        assert!(seen.unreadable.contains_key(GPU_PROCESSES));
    }
    assert_eq!(bed.calls("Init"), 1);

    agent.collector.resume().await.unwrap();
    let back = agent.wait_gpus(2).await;
    assert!(back.conditions.is_empty(), "{:?}", back.conditions);
    assert_eq!(bed.calls("Init"), 2);
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_13_a_release_ends_by_itself() {
    let bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    // Longer than a child may take to leave, or nothing would be left of it.
    agent
        .collector
        .release(Duration::from_secs(3))
        .await
        .unwrap();
    agent
        .wait("released", |seen| condition(seen, "gpu_released").is_some())
        .await;
    let back = agent.wait_gpus(1).await;
    assert!(back.conditions.is_empty());
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_13_a_hung_probe_refuses_instead_of_lying() {
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    bed.hang("PowerUsage").await;
    let begin = Instant::now();
    let refused = agent.collector.release(TTL).await.unwrap_err();
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "it is refused, not waited for"
    );
    assert_eq!(refused.to_string(), "refused: probe hung (power_usage)");
    let seen = agent.next().await;
    assert!(condition(&seen, "gpu_released").is_none());
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_13_a_release_outlives_the_agent() {
    let bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let mut agent = bed.start();
    agent.wait_gpus(1).await;
    agent.collector.release(TTL).await.unwrap();
    agent.collector.stop().await;
    assert_eq!(bed.calls("Init"), 1);

    let mut agent = bed.start();
    let seen = agent
        .wait("released", |seen| condition(seen, "gpu_released").is_some())
        .await;
    assert!(seen.unreadable[GPU_PROCESSES].contains("released"));
    for _ in 0..10 {
        agent.next().await;
    }
    assert_eq!(bed.calls("Init"), 1);
    agent.collector.resume().await.unwrap();
    agent.wait_gpus(1).await;
    agent.collector.stop().await;

    let agent = bed.start();
    std::fs::remove_dir_all(bed.path("state")).unwrap();
    let refused = agent.collector.release(TTL).await.unwrap_err();
    assert!(matches!(refused, ReleaseError::State(_)), "{refused}");
    agent.collector.stop().await;
}
