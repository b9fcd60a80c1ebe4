//! AG-01: one lost GPU beside healthy ones.

use drover_agent::observation::{GpuState, GpuUse};
use serde_json::json;

use crate::bed::{Bed, condition, gpus};

fn empty(lost: &GpuUse) -> bool {
    *lost
        == GpuUse {
            uuid: lost.uuid.clone(),
            pci_address: lost.pci_address.clone(),
            state: lost.state,
            ..GpuUse::default()
        }
}

fn full(gpu: &GpuUse) -> bool {
    gpu.state == GpuState::Ok
        && gpu.utilisation_percent.is_some()
        && gpu.memory_used_bytes.is_some()
        && gpu.power_mw.is_some()
        && gpu.processes_known
}

#[tokio::test]
async fn ag_01_one_lost_gpu_beside_healthy_ones() {
    let gone = std::process::Command::new("true").spawn().unwrap();
    let pid = gone.id();
    gone.wait_with_output().unwrap();
    let card = json!({"profile": "titan-x", "used": 0});
    let mut bed = Bed::new(json!([card, card, card, card]), 4);
    bed.config.probe.lost_every_rounds = 5;
    let mut agent = bed.start();
    let before = agent.wait_gpus(4).await;
    assert!(gpus(&before).iter().all(full));
    assert!(before.conditions.is_empty(), "{:?}", before.conditions);
    let who = (
        gpus(&before)[2].uuid.clone(),
        gpus(&before)[2].pci_address.clone(),
    );

    bed.edit(|script| {
        script["gpus"][2]["calls"] = json!({"HandleByIndex": {"code": 15}});
        script["processes"] = json!([{"gpu": 0, "pid": pid, "memory": 1_073_741_824_u64}]);
    });
    let lost = agent
        .wait("GPU 2 lost", |seen| condition(seen, "gpu_lost").is_some())
        .await;
    let since = condition(&lost, "gpu_lost").unwrap().since_unix_ms;
    assert_eq!(lost.facts.gpus, before.facts.gpus);
    let asked = (
        bed.calls("HandleByIndex_v2 2"),
        bed.calls("HandleByIndex_v2 0"),
    );
    let mut rounds = 0;
    while rounds < 20 {
        let seen = agent.next().await;
        if gpus(&seen).is_empty() {
            // A tick in which the probe was late.
            continue;
        }
        rounds += 1;
        let gpu = &gpus(&seen)[2];
        assert_eq!(
            (gpu.state, gpu.uuid.clone(), gpu.pci_address.clone()),
            (GpuState::Lost, who.0.clone(), who.1.clone())
        );
        assert!(empty(gpu), "{gpu:?}");
        assert!(
            [0, 1, 3].iter().all(|index| full(&gpus(&seen)[*index])),
            "{:?}",
            gpus(&seen)
        );
        assert!(seen.workloads.is_empty());
        assert_eq!(seen.conditions.len(), 1, "{:?}", seen.conditions);
        assert_eq!(seen.conditions[0].since_unix_ms, since, "a second event");
    }
    let asked = (
        bed.calls("HandleByIndex_v2 2") - asked.0,
        bed.calls("HandleByIndex_v2 0") - asked.1,
    );
    assert!(
        asked.0 * 3 < asked.1,
        "the lost GPU is asked as often: {asked:?}"
    );

    bed.edit(|script| script["gpus"][2]["calls"] = json!({}));
    let healed = agent
        .wait("GPU 2 back", |seen| {
            seen.conditions.is_empty() && gpus(seen).len() == 4
        })
        .await;
    assert!(gpus(&healed).iter().all(full));
    assert_eq!(bed.calls("Init"), 1);
    agent.collector.stop().await;
}

#[tokio::test]
async fn ag_01_lost_within_a_tick_is_not_half_filled() {
    let mut bed = Bed::new(json!([{"profile": "h100"}, {"profile": "h100"}]), 2);
    let mut agent = bed.start();
    agent.wait_gpus(2).await;
    for calls in [
        json!({"UtilizationRates": {"code": 15}, "MemoryInfo": {"code": 15}}),
        json!({"EnforcedPowerLimit": {"code": 16}}),
        json!({"Temperature": {"code": 11}}),
    ] {
        bed.edit(|script| script["gpus"][0]["calls"] = calls.clone());
        let seen = agent
            .wait("GPU 0 bad", |seen| {
                gpus(seen)
                    .first()
                    .is_some_and(|gpu| gpu.state != GpuState::Ok)
            })
            .await;
        assert!(empty(&gpus(&seen)[0]), "{:?}", gpus(&seen)[0]);
        assert!(full(&gpus(&seen)[1]));
        bed.edit(|script| script["gpus"][0]["calls"] = json!({}));
        agent.wait_gpus(2).await;
    }
    agent.collector.stop().await;
}
