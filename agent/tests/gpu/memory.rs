//! AG-09: reserved memory, and drivers that lack the newer calls.

use drover_agent::collector::GPU_PROCESSES;
use serde_json::{Value, json};

use crate::bed::{Bed, gpus, without};

const TOTAL: u64 = 25_769_803_776;
const RESERVED: u64 = 322_961_408;
const FREE: u64 = 25_446_842_368;

/// (memory of the facts, used, reserved, used includes reserved)
type Memory = (Option<u64>, Option<u64>, Option<u64>, bool);

async fn seen(calls: Value, missing: &[&str]) -> (Memory, bool) {
    let mut bed = Bed::new(
        json!([{"profile": "titan-x", "used": 0, "calls": calls}]),
        1,
    );
    if !missing.is_empty() {
        let library = bed.path("old.so");
        without(missing, &library);
        bed.config.probe.library = Some(library);
    }
    let mut agent = bed.start();
    let seen = agent.wait_gpus(1).await;
    let gpu = &gpus(&seen)[0];
    let memory = (
        seen.facts.gpus[0].memory_bytes,
        gpu.memory_used_bytes,
        gpu.memory_reserved_bytes,
        gpu.used_includes_reserved,
    );
    assert!(seen.workloads.is_empty(), "reserved memory is no workload");
    assert!(seen.conditions.is_empty());
    let known = seen.witnesses.contains(GPU_PROCESSES);
    agent.collector.stop().await;
    (memory, known)
}

fn second() -> Value {
    json!({"total": TOTAL, "reserved": RESERVED, "used": 0, "free": FREE})
}

fn first() -> Value {
    json!({"total": TOTAL, "used": RESERVED, "free": FREE})
}

#[tokio::test]
async fn ag_09_reserved_memory_is_not_used() {
    let (memory, known) = seen(json!({"MemoryInfo_v2": second()}), &[]).await;
    assert_eq!(memory, (Some(TOTAL), Some(0), Some(RESERVED), false));
    assert!(known);
}

#[tokio::test]
async fn ag_09_an_old_driver_says_used_with_reserved() {
    let old = (Some(TOTAL), Some(RESERVED), None, true);
    let (memory, known) = seen(
        json!({"MemoryInfo": first()}),
        &["nvmlDeviceGetMemoryInfo_v2"],
    )
    .await;
    assert_eq!((memory, known), (old, true));
    // The symbol is there and refuses its argument.
    let calls = json!({"MemoryInfo_v2": {"code": 25}, "MemoryInfo": first()});
    assert_eq!(seen(calls, &[]).await, (old, true));
}

#[tokio::test]
async fn ag_09_without_any_memory_call_the_gpu_is_still_fine() {
    let missing = ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"];
    let (memory, known) = seen(json!({}), &missing).await;
    assert_eq!(memory, (None, None, None, false));
    assert!(known);
}

#[tokio::test]
async fn ag_09_processes_are_listed_by_the_older_call() {
    let missing = [
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    ];
    let mut bed = Bed::new(json!([{"profile": "titan-x"}]), 1);
    let library = bed.path("old.so");
    without(&missing, &library);
    bed.config.probe.library = Some(library);
    let me = std::process::id();
    bed.edit(|script| script["processes"] = json!([{"gpu": 0, "pid": me, "memory": 1_048_576}]));
    let mut agent = bed.start();
    let seen = agent
        .wait("this process", |seen| seen.workloads.len() == 1)
        .await;
    assert_eq!(seen.workloads[0].pid, me);
    assert_eq!(seen.workloads[0].gpu_memory_bytes, Some(1_048_576));
    assert!(seen.witnesses.contains(GPU_PROCESSES));
    agent.collector.stop().await;
}
