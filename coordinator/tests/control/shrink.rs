//! Shrinking: idle by every witness, drained, re-read, ended by id, forgotten last.

use crate::rig::{GPUS, Rig, two_pools};
use drover::ports::actuate::InstanceState;
use drover::ports::clock::Clock;
use drover::records::DesiredState;
use drover_core::model::{FailureKind, Lifecycle, Millis, NodeId};
use drover_proto::v1;

async fn idle_node(rig: &mut Rig, id: &str) -> NodeId {
    rig.cloud.add("a", id);
    let node = rig.join("a", id).await;
    rig.cycle().await;
    node
}

#[tokio::test]
async fn sc_74_idle_since_survives_a_restart_and_a_short_job_moves_it() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.pass(Millis::minutes(5)).await;
    rig.restart().await;
    rig.pass(Millis::minutes(3)).await;
    rig.work(&node, "python short.py");
    rig.pass(Millis::seconds(10)).await;
    rig.work(&node, "");
    rig.pass(Millis::minutes(9)).await;
    assert_eq!(
        rig.cloud.alive("a"),
        ["i-1"],
        "ten minutes after the short job, not before"
    );
    rig.pass(Millis::minutes(2)).await;
    assert!(rig.cloud.alive("a").is_empty());
    assert!(!rig.has_node("i-1"));

    // Without the job a restart does not move it.
    let mut rig = Rig::new(&two_pools()).await;
    idle_node(&mut rig, "i-2").await;
    rig.pass(Millis::minutes(5)).await;
    rig.restart().await;
    rig.pass(Millis::seconds(290)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-2"]);
    rig.pass(Millis::seconds(30)).await;
    assert!(rig.cloud.alive("a").is_empty());
}

#[tokio::test]
async fn nobody_looked_for_two_days_so_idle_starts_anew() {
    let mut rig = Rig::new(&two_pools()).await;
    idle_node(&mut rig, "i-1").await;
    rig.pass(Millis::minutes(5)).await;
    rig.clock.advance(Millis::minutes(60 * 48));
    rig.restart().await;
    rig.pass(Millis::minutes(9)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    rig.pass(Millis::minutes(2)).await;
    assert!(rig.cloud.alive("a").is_empty());
}

#[tokio::test]
async fn sc_17_a_workload_that_landed_takes_the_drain_back() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.agent(&node, |agent| agent.stubborn = true);
    rig.pass(Millis::minutes(11)).await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Draining);
    // Just before the cordon takes effect a job is bound.
    rig.work(&node, "python train.py");
    rig.agent(&node, |agent| agent.stubborn = false);
    rig.pass(Millis::seconds(20)).await;
    let found = rig.node("i-1");
    assert_eq!(
        (found.lifecycle, found.cordon.is_some()),
        (Lifecycle::Ready, false)
    );
    let told = rig.events("drain_rolled_back").await;
    assert!(
        told[0].message.contains("workload landed"),
        "{}",
        told[0].message
    );
    rig.work(&node, "");
    rig.pass(Millis::minutes(9)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"], "the idle timer starts anew");
}

#[tokio::test]
async fn i1_work_that_comes_after_drained_is_seen_before_leaving() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.cloud.script("a", |script| {
        script.leave_fails = Some(FailureKind::Transient)
    });
    rig.pass(Millis::minutes(11)).await;
    // Let go, and the call failed in passing: it is still there, and somebody starts work past every cordon.
    rig.work(&node, "python late.py");
    rig.cloud.script("a", |script| script.leave_fails = None);
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Ready);
}

#[tokio::test]
async fn sc_58_a_persons_cordon_is_neither_supply_nor_touched() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.commands
        .cordon("admin/ada", "i-1", "broken fan")
        .await
        .expect("cordoned");
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 2, "grown beside it");
    rig.boot_all().await;
    let order = rig.link.desired.lock().expect("lock")[&node].clone();
    assert_eq!(
        (order.desired, order.by.as_str()),
        (DesiredState::Cordoned, "admin/ada")
    );
    // And one that was set on the host itself.
    rig.commands
        .uncordon("admin/ada", "i-1")
        .await
        .expect("uncordoned");
    rig.agent(&node, |agent| {
        let actual = agent.view.actual.as_mut().expect("actual");
        actual.foreign_cordon = "kubectl cordon by bob".into();
    });
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(
        rig.cloud.alive("a"),
        ["i-1"],
        "the other one went, this one is a person's"
    );
    assert!(rig.has_node("i-1"));
    assert!(rig.commands.uncordon("admin/ada", "i-1").await.is_err());
}

#[tokio::test]
async fn sc_16_a_drain_goes_on_after_a_restart_or_is_taken_back_for_demand() {
    for demand in [false, true] {
        let mut rig = Rig::new(&two_pools()).await;
        let node = idle_node(&mut rig, "i-1").await;
        rig.agent(&node, |agent| agent.stubborn = true);
        rig.pass(Millis::minutes(11)).await;
        assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Draining);
        if demand {
            rig.ask("job", 1, GPUS).await;
        }
        rig.restart().await;
        rig.agent(&node, |agent| agent.stubborn = false);
        rig.pass(Millis::seconds(30)).await;
        if demand {
            assert_eq!(rig.shown("job"), "served");
            assert_eq!(rig.node("i-1").cordon, None);
            assert_eq!(rig.cloud.asked(), 0, "taken back instead of launched");
        } else {
            assert!(rig.cloud.alive("a").is_empty());
        }
    }
}

#[tokio::test]
async fn sc_51_a_refused_termination_brings_the_node_back_and_stops_the_pool() {
    let mut rig = Rig::new(&two_pools()).await;
    idle_node(&mut rig, "i-1").await;
    rig.cloud.script("a", |script| {
        script.leave_fails = Some(FailureKind::Permission)
    });
    rig.pass(Millis::minutes(11)).await;
    let found = rig.node("i-1");
    assert_eq!(found.lifecycle, Lifecycle::Ready);
    assert_eq!(found.cordon, None);
    assert!(
        rig.view()
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "pool_stopped")
    );
    assert!(!rig.events("leave_failed").await.is_empty());
}

/// What the provider refused did not go: once it may, no person is asked.
#[tokio::test]
async fn sc_51_a_refused_termination_is_no_act_of_the_breaker() {
    let mut rig = Rig::new(&two_pools()).await;
    idle_node(&mut rig, "i-1").await;
    rig.cloud
        .script("a", |script| script.leave_fails = Some(FailureKind::Quota));
    rig.pass(Millis::minutes(11)).await;
    assert!(!rig.events("leave_failed").await.is_empty());
    assert_eq!(rig.cloud.alive("a"), ["i-1"]);
    rig.cloud.script("a", |script| script.leave_fails = None);
    rig.pass(Millis::minutes(12)).await;
    assert!(rig.events("approval_needed").await.is_empty());
    assert!(rig.cloud.alive("a").is_empty());
}

#[tokio::test]
async fn sc_34_a_process_on_a_gpu_or_a_dumb_witness_is_busy() {
    let mut rig = Rig::new(&two_pools()).await;
    let worker = idle_node(&mut rig, "i-1").await;
    let dumb = idle_node(&mut rig, "i-2").await;
    idle_node(&mut rig, "i-3").await;
    rig.work(&worker, "python train.py");
    rig.agent(&dumb, |agent| {
        let list = agent.view.workloads.as_mut().expect("a list");
        std::sync::Arc::make_mut(list).unreadable = vec!["gpu-processes: probe hung".into()];
    });
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1", "i-2"]);
    assert!(rig.node("i-1").busy[0].contains("train.py"));
    assert!(rig.node("i-2").busy[0].contains("probe hung"));
}

#[tokio::test]
async fn an_instance_that_ends_without_us_frees_its_units() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    let id = rig.cloud.alive("a")[0].clone();
    let node = NodeId(format!("n-{id}"));
    rig.agent(&node, |agent| agent.silent = true);
    rig.cloud
        .machines
        .lock()
        .expect("lock")
        .get_mut(&id)
        .expect("there")
        .state = InstanceState::Gone;
    rig.pass(Millis::seconds(20)).await;
    assert!(!rig.has_node(&id));
    assert_eq!(rig.events("vanished").await.len(), 1);
    assert_eq!(
        rig.cloud.alive("a").len(),
        1,
        "asked again for the lost unit"
    );
}

#[tokio::test]
async fn an_operators_drain_waits_says_why_and_stays_cordoned() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.work(&node, "python train.py");
    let wish = drover::control::commands::DrainWish {
        node: "host-i-1".into(),
        policy: drover::records::DrainPolicy::Wait,
        deadline: None,
        grace: None,
        reason: "new disk".into(),
        then: drover::records::Then::Cordoned,
    };
    rig.commands
        .drain("admin/ada", &wish)
        .await
        .expect("ordered");
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Draining);
    let told = rig.commands.explain("host-i-1").await.expect("explained");
    assert!(told.summary.contains("alice"), "{}", told.summary);
    rig.work(&node, "");
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Drained);
    assert_eq!(rig.cloud.alive("a"), ["i-1"], "it stays");
    rig.commands
        .uncordon("admin/ada", "i-1")
        .await
        .expect("back");
    rig.cycle().await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Ready);

    // Then: leave.
    let wish = drover::control::commands::DrainWish {
        then: drover::records::Then::Leave,
        ..wish
    };
    rig.commands
        .drain("admin/ada", &wish)
        .await
        .expect("ordered");
    rig.pass(Millis::seconds(30)).await;
    assert!(rig.cloud.alive("a").is_empty());
    assert!(!rig.has_node("i-1"));
}

#[tokio::test]
async fn sc_90_a_spot_notice_forces_a_drain_at_once() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = idle_node(&mut rig, "i-1").await;
    rig.work(&node, "python train.py");
    let end = rig.clock.wall().after(Millis::minutes(2));
    rig.link
        .notices
        .lock()
        .expect("lock")
        .push(drover::ports::link::AgentNotice {
            node: node.clone(),
            notice: v1::Notice {
                id: "s1".into(),
                kind: "spot_interruption".into(),
                deadline_unix_ms: end.0,
                ..v1::Notice::default()
            },
        });
    rig.cycle().await;
    let order = rig.link.desired.lock().expect("lock")[&node].clone();
    let drain = order.drain.expect("draining");
    assert_eq!(drain.policy, drover::records::DrainPolicy::Force);
    assert!(drain.deadline.expect("a deadline") < end);
    assert_eq!(order.reason, "spot notice");
    assert!(
        rig.link.notices.lock().expect("lock").is_empty(),
        "acknowledged"
    );
}

#[tokio::test]
async fn a_region_that_gives_no_answer_to_a_termination_delays_no_other() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(3);
    idle_node(&mut rig, "i-1").await;
    rig.cloud.add("b", "i-2");
    rig.join("b", "i-2").await;
    rig.cloud.script("a", |script| script.leave_hangs = true);
    rig.pass(Millis::minutes(15)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-1"], "asked for, and no answer");
    assert!(
        !rig.cloud.alive("b").contains(&"i-2".to_owned()),
        "goes all the same"
    );
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Leaving);
    let calls = |rig: &Rig| {
        let leaves = rig.cloud.leaves.lock().expect("lock");
        leaves.iter().filter(|id| *id == "i-1").count()
    };
    assert_eq!(calls(&rig), 1, "it is called once while no answer comes");
    // Work goes on meanwhile.
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["b".into()])
        .await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    rig.cloud.script("a", |script| script.leave_hangs = false);
    rig.cloud.answer();
    rig.pass(Millis::seconds(20)).await;
    assert!(rig.cloud.alive("a").is_empty());
    assert!(
        !rig.has_node("i-1"),
        "the answer was taken in a later cycle"
    );
    assert_eq!(calls(&rig), 1);
}
