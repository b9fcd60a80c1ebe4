//! AG-21: lifecycle hooks, with agents and a group of glass.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::DrainWish;
use drover::ports::actuate::InstanceState;
use drover::ports::clock::Clock;
use drover::ports::hooks::Hook;
use drover::records::{DrainPolicy, HookOn, Then};
use drover_core::model::{FailureKind, Millis, NodeId, UnixMs};
use drover_proto::v1;

fn with(keys: &str) -> String {
    two_pools().replacen(
        "removal_quota = \"100%\"\n",
        &format!("removal_quota = \"100%\"\n{keys}"),
        1,
    )
}

fn hook(on: HookOn, timeout_s: u64) -> Hook {
    Hook {
        name: "drover".to_owned(),
        on,
        timeout: Millis::seconds(timeout_s),
        limit: Millis::seconds((timeout_s * 100).min(172_800)),
    }
}

/// A node of pool a at work, whose group has a hook.
async fn working(config: &str) -> (Rig, NodeId) {
    let mut rig = Rig::new(config).await;
    rig.cloud.script("a", |script| {
        script.hooks = vec![hook(HookOn::Terminating, 300)];
    });
    rig.cloud.add("a", "i-1");
    let node = rig.join("a", "i-1").await;
    rig.work(&node, "python train.py");
    rig.cycle().await;
    (rig, node)
}

/// The agent sees the group's decision and tells it.
async fn terminated(rig: &mut Rig, node: &NodeId) -> UnixMs {
    let from = rig.clock.wall();
    rig.cloud.terminates("i-1");
    rig.notice(
        node,
        v1::Notice {
            id: "lifecycle_terminating/i-1/Terminated".into(),
            kind: "lifecycle_terminating".into(),
            ..v1::Notice::default()
        },
    );
    rig.cycle().await;
    from
}

#[tokio::test]
async fn ag_21_beats_give_the_drain_time_and_one_completion_ends_it() {
    let (mut rig, node) = working(&two_pools()).await;
    let from = terminated(&mut rig, &node).await;
    let order = rig.link.desired.lock().expect("lock")[&node].clone();
    let drain = order.drain.expect("one drain");
    assert_eq!(drain.policy, DrainPolicy::Wait);
    assert!(
        order.reason.contains("its group terminates it"),
        "{}",
        order.reason
    );
    rig.pass(Millis::seconds(400)).await;
    // The agent restarts: beats neither stop nor double.
    rig.agent(&node, |agent| agent.silent = true);
    rig.pass(Millis::seconds(20)).await;
    rig.agent(&node, |agent| agent.silent = false);
    rig.pass(Millis::seconds(280)).await;
    rig.work(&node, "");
    rig.pass(Millis::seconds(600)).await;
    assert_eq!(
        rig.cloud.hook_seconds("beat", "i-1", from),
        [150, 300, 450, 600]
    );
    let done = rig.cloud.hook_seconds("complete", "i-1", from);
    assert_eq!(done.len(), 1, "{done:?}");
    assert!((700..=720).contains(&done[0]), "{done:?}");
    assert_eq!(rig.events("drain_started").await.len(), 1);
    let told = rig.events("hook_completed").await;
    assert_eq!(told.len(), 1);
    assert!(told[0].message.contains("drained"), "{}", told[0].message);
    assert!(
        rig.cloud.ended.lock().expect("lock").is_empty(),
        "the group ends it, not we"
    );
}

#[tokio::test]
async fn ag_21_the_deadline_policy_gives_up_once_and_is_named() {
    let text = with("[pool.notices]\nterminating = \"wait\"\nterminating_deadline = \"200s\"\n");
    let (mut rig, node) = working(&text).await;
    let from = terminated(&mut rig, &node).await;
    rig.pass(Millis::seconds(900)).await;
    assert_eq!(rig.cloud.hook_seconds("beat", "i-1", from), [150]);
    assert_eq!(rig.cloud.hook_seconds("complete", "i-1", from), [200]);
    let told = rig.events("hook_completed").await;
    let said = &told[0].message;
    assert!(
        said.contains("policy wait of pool a gave the drain up after 200 s"),
        "{said}"
    );
    assert_eq!(rig.events("hook_ends").await.len(), 1, "warned ahead");
    let audit = rig.commands.journal().audit(0, 1_000).await.expect("read");
    assert!(
        audit
            .iter()
            .any(|line| line.verb == "hook.complete" && line.detail.contains("policy wait")),
        "the record names it (I1)"
    );
}

#[tokio::test]
async fn ag_21_an_instance_that_nobody_knows_is_completed() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.hooks = vec![hook(HookOn::Terminating, 300)];
    });
    rig.cloud.add("a", "i-9");
    rig.cycle().await;
    let from = rig.clock.wall();
    rig.cloud.terminates("i-9");
    rig.pass(Millis::minutes(3)).await;
    assert_eq!(rig.cloud.hook_seconds("complete", "i-9", from).len(), 1);
    let told = rig.events("hook_completed").await;
    assert!(
        told[0].message.contains("unknown node"),
        "{}",
        told[0].message
    );
    assert!(rig.cloud.hook_seconds("beat", "i-9", from).is_empty());
}

#[tokio::test]
async fn ag_21_a_cancelled_drain_without_a_hook_calls_nobody() {
    let (mut rig, node) = working(&two_pools()).await;
    let wish = DrainWish {
        node: node.0.clone(),
        policy: DrainPolicy::Wait,
        deadline: None,
        grace: None,
        reason: "new disk".to_owned(),
        then: Then::Cordoned,
    };
    rig.commands
        .drain("admin/ada", &wish)
        .await
        .expect("drains");
    rig.pass(Millis::minutes(1)).await;
    rig.commands
        .cancel_drain("admin/ada", node.as_str())
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(10)).await;
    assert!(rig.cloud.hook_calls.lock().expect("lock").is_empty());
}

#[tokio::test]
async fn a_hook_in_a_pool_that_is_only_observed_is_left_alone() {
    let (mut rig, node) = working(&two_pools()).await;
    let text = two_pools().replacen("\"full\"", "\"observe\"", 1);
    rig.push_config(&text).await;
    terminated(&mut rig, &node).await;
    rig.pass(Millis::minutes(10)).await;
    assert!(rig.cloud.hook_calls.lock().expect("lock").is_empty());
    assert!(!rig.link.desired.lock().expect("lock").contains_key(&node));
}

#[tokio::test]
async fn a_restart_neither_stops_nor_doubles_beats_and_completes_once() {
    let (mut rig, node) = working(&two_pools()).await;
    let from = terminated(&mut rig, &node).await;
    rig.pass(Millis::seconds(200)).await;
    rig.restart().await;
    rig.pass(Millis::seconds(200)).await;
    assert_eq!(rig.cloud.hook_seconds("beat", "i-1", from), [150, 300]);
    rig.work(&node, "");
    // It ends after each durable step in turn until the call was made, and once with the call's answer on its way.
    for step in 1..40 {
        rig.crash.arm(step);
        rig.clock.advance(Millis::seconds(10));
        let crashed = rig.cycle_or_crash().await;
        rig.crash.disarm();
        if crashed {
            rig.restart().await;
        }
        if !rig.cloud.completed.lock().expect("lock").is_empty() {
            break;
        }
    }
    rig.pass(Millis::minutes(5)).await;
    let beats = rig.cloud.hook_seconds("beat", "i-1", from);
    let done = rig.cloud.hook_seconds("complete", "i-1", from);
    assert!(!done.is_empty());
    assert!(beats.iter().all(|at| *at < done[0]), "{beats:?} {done:?}");
    assert_eq!(rig.events("hook_completed").await.len(), 1);
}

#[tokio::test]
async fn calls_that_fail_are_made_again_and_told_once() {
    let (mut rig, node) = working(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.hook_fails = Some(FailureKind::Permission);
    });
    let from = terminated(&mut rig, &node).await;
    rig.pass(Millis::seconds(200)).await;
    let tried = rig.cloud.hook_seconds("beat", "i-1", from);
    assert!(tried.len() > 2, "{tried:?}");
    let warned = rig.events("warning").await;
    assert_eq!(warned.len(), 1);
    assert!(
        warned[0].message.contains("could not be held"),
        "{}",
        warned[0].message
    );
    rig.cloud.script("a", |script| script.hook_fails = None);
    rig.pass(Millis::seconds(20)).await;
    rig.work(&node, "");
    rig.pass(Millis::seconds(30)).await;
    assert_eq!(rig.events("hook_completed").await.len(), 1);
}

#[tokio::test]
async fn our_own_leaves_do_not_wait_for_a_hooks_timeout() {
    let (mut rig, node) = working(&two_pools()).await;
    rig.bystanders(4);
    rig.work(&node, "");
    rig.pass(Millis::minutes(11)).await;
    // It was let go, and its group holds it in the hook.
    let mut machines = rig.cloud.machines.lock().expect("lock").clone();
    machines.get_mut("i-1").expect("there").state = InstanceState::Leaving;
    *rig.cloud.machines.lock().expect("lock") = machines;
    let from = rig.clock.wall();
    rig.pass(Millis::seconds(30)).await;
    let done = rig.cloud.hook_seconds("complete", "i-1", from);
    assert_eq!(done.len(), 1, "{done:?}");
}

#[tokio::test]
async fn launching_hooks_that_the_pool_names_are_completed_once_the_node_takes_work() {
    let text = with("[pool.notices]\nlaunch_hooks = [\"drover\"]\n");
    let mut rig = Rig::new(&text).await;
    for pool in ["a", "b"] {
        rig.cloud.script(pool, |script| {
            script.hooks = vec![hook(HookOn::Launching, 300)];
        });
    }
    for pool in ["a", "b"] {
        rig.ask_with(&format!("job-{pool}"), 1, GPUS, |spec| {
            spec.pools = vec![pool.into()];
        })
        .await;
    }
    rig.cycle().await;
    let from = rig.clock.wall();
    let (ours, others) = (rig.cloud.alive("a"), rig.cloud.alive("b"));
    assert_eq!((ours.len(), others.len()), (1, 1));
    rig.pass(Millis::seconds(200)).await;
    // It is seen with the reading after the ask.
    assert_eq!(rig.cloud.hook_seconds("beat", &ours[0], from), [160]);
    assert!(
        rig.cloud
            .hook_seconds("complete", &ours[0], from)
            .is_empty()
    );
    rig.boot_all().await;
    rig.pass(Millis::seconds(20)).await;
    assert_eq!(rig.cloud.hook_seconds("complete", &ours[0], from).len(), 1);
    let calls = rig.cloud.hook_calls.lock().expect("lock");
    assert!(
        calls.iter().all(|(_, of, _)| *of != others[0]),
        "not named there"
    );
}
