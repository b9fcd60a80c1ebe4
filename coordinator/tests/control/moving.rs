//! Consolidation, end to end: work that says that it can move is moved, and nothing else is.

use crate::rig::{Rig, two_pools};
use drover::records::{BreakerRecord, DrainPolicy, keys};
use drover_core::model::{Lifecycle, Millis, NodeId};

fn consolidating(control: &str) -> String {
    two_pools().replace(
        "breaker_pool = 100\n",
        &format!("{control}\nconsolidate = true\n"),
    )
}

/// Nodes i-1, i-2, ... of 16 GPUs, one GPU of each in use.
async fn some_nodes<const N: usize>(config: &str, movable: [bool; N]) -> (Rig, [NodeId; N]) {
    let mut rig = Rig::new(config).await;
    rig.bystanders(4);
    let mut nodes = Vec::new();
    for (n, movable) in movable.into_iter().enumerate() {
        let id = format!("i-{}", n + 1);
        rig.cloud.add("a", &id);
        let node = rig.join("a", &id).await;
        rig.work(&node, "python train.py");
        rig.movable(&node, movable);
        nodes.push(node);
    }
    rig.cycle().await;
    (rig, nodes.try_into().expect("all"))
}

/// Policies of the drains that agents were ordered to do, if any.
fn ordered(rig: &Rig) -> Vec<DrainPolicy> {
    let desired = rig.link.desired.lock().expect("lock");
    let drains = desired.values().filter_map(|order| order.drain.as_ref());
    drains.map(|drain| drain.policy).collect()
}

async fn counted(rig: &Rig) -> usize {
    let records = rig.records().await;
    let breaker = records
        .iter()
        .find(|(key, _)| key.starts_with(keys::BREAKER));
    let acts = breaker.map(|(_, value)| {
        let record: BreakerRecord = serde_json::from_slice(value).expect("JSON");
        record.acts.len()
    });
    acts.unwrap_or(0)
}

#[tokio::test]
async fn sc_20_movable_work_is_moved_off_one_node_and_the_report_says_what_it_saves() {
    let (mut rig, nodes) = some_nodes(&consolidating("breaker_pool = 100"), [true, true]).await;
    rig.pass(Millis::seconds(30)).await;
    let started = rig.events("drain_started").await;
    let [begun] = started.as_slice() else {
        panic!("one drain: {started:?}")
    };
    for said in ["evict", "saves 14.40 USD/h", "says that it can move"] {
        assert!(begun.message.contains(said), "{said}: {}", begun.message);
    }
    let moved = rig.events("moving").await;
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert!(moved[0].message.contains("saves"), "{}", moved[0].message);
    let audit = rig.commands.journal().audit(0, 100).await.expect("read");
    let entry = audit.iter().find(|entry| entry.verb == "node.evict");
    let entry = entry.expect("written down");
    assert!(entry.detail.contains("saves"), "{}", entry.detail);
    rig.pass(Millis::minutes(1)).await;
    let left = rig.cloud.alive("a");
    assert_eq!(left.len(), 1, "one node went, the other one has room");
    assert_eq!(counted(&rig).await, 1, "moving and ending it is one act");
    let stays = nodes
        .iter()
        .find(|node| rig.has_node(node.as_str().trim_start_matches("n-")))
        .expect("one");
    let node = rig.node(stays.as_str().trim_start_matches("n-"));
    assert_eq!(node.lifecycle, Lifecycle::Ready);
    // The last one has nowhere to go.
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.cloud.alive("a").len(), 1);
    assert_eq!(rig.events("moving").await.len(), 1);
}

#[tokio::test]
async fn sc_20_work_that_does_not_say_so_stays() {
    let without = two_pools();
    let with = consolidating("breaker_pool = 100");
    for (config, movable) in [(&without, [true, true]), (&with, [false, false])] {
        let (mut rig, _) = some_nodes(config, movable).await;
        rig.pass(Millis::minutes(30)).await;
        assert_eq!(rig.cloud.alive("a").len(), 2);
        assert!(rig.events("drain_started").await.is_empty());
    }
}

#[tokio::test]
async fn i1_work_that_stops_being_movable_takes_the_drain_back_before_it_is_told_anything() {
    let (mut rig, nodes) = some_nodes(&consolidating("breaker_pool = 100"), [true, false]).await;
    let [moving, _] = &nodes;
    rig.agent(moving, |agent| agent.stubborn = true);
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Draining);
    assert_eq!(ordered(&rig), [DrainPolicy::Wait], "it only keeps work off");
    assert!(rig.events("moving").await.is_empty(), "not cordoned yet");
    rig.movable(moving, false);
    rig.agent(moving, |agent| agent.stubborn = false);
    rig.pass(Millis::minutes(1)).await;
    let node = rig.node("i-1");
    assert_eq!(
        (node.lifecycle, node.cordon.is_some()),
        (Lifecycle::Ready, false)
    );
    let told = rig.events("drain_rolled_back").await;
    assert_eq!(told.len(), 1);
    assert!(told[0].message.contains("can move"), "{}", told[0].message);
    assert!(rig.events("moving").await.is_empty());
    assert_eq!(counted(&rig).await, 0);
    assert_eq!(rig.cloud.alive("a").len(), 2);
}

#[tokio::test]
async fn i1_work_that_the_list_does_not_name_is_not_told_to_move() {
    let (mut rig, nodes) = some_nodes(&consolidating("breaker_pool = 100"), [true, false]).await;
    rig.agent(&nodes[0], |agent| agent.stubborn = true);
    rig.pass(Millis::seconds(20)).await;
    let drain = rig.link.desired.lock().expect("lock")[&nodes[0]].clone();
    rig.agent(&nodes[0], |agent| {
        // Cordoned; its drain sees a session beside the process.
        let id = drain.drain.as_ref().expect("draining").id.0.clone();
        agent.view.order_status = Some(drover_proto::v1::OrderStatus {
            epoch: drain.epoch,
            generation: drain.generation,
            drain_id: id,
            drain_state: drover_proto::v1::DrainState::Waiting.into(),
            workloads_now: 2,
            ..drover_proto::v1::OrderStatus::default()
        });
    });
    rig.pass(Millis::seconds(30)).await;
    assert!(rig.events("moving").await.is_empty());
    rig.pass(Millis::minutes(1)).await;
    assert!(rig.events("moving").await.is_empty());
    assert!(!rig.events("drain_rolled_back").await.is_empty());
}

#[tokio::test]
async fn i14_moving_work_is_counted_and_beyond_the_limit_a_person_is_asked() {
    let config = consolidating("breaker_pool = 1");
    let (mut rig, nodes) = some_nodes(&config, [true, true, false]).await;
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2, "one went");
    assert_eq!(rig.events("moving").await.len(), 1);
    assert_eq!(counted(&rig).await, 1);
    let view = rig.view();
    let [approval] = view.approvals.as_slice() else {
        panic!("a person is asked once")
    };
    let [waits] = approval.nodes.as_slice() else {
        panic!("about one node: {approval:?}")
    };
    assert!(nodes[..2].contains(waits));
    assert!(
        approval.message.contains("its work has moved"),
        "{}",
        approval.message
    );
    let order = rig.link.desired.lock().expect("lock")[waits].clone();
    assert_eq!(
        order.drain.map(|drain| drain.policy),
        Some(DrainPolicy::Wait),
        "until then it only keeps work off"
    );
    let id = approval.id.clone();
    rig.commands.approve("admin/ada", &id).await.expect("given");
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-3"]);
    assert_eq!(counted(&rig).await, 2);
}

#[tokio::test]
async fn a_freeze_holds_what_was_not_told_to_move_yet() {
    let (mut rig, nodes) = some_nodes(&consolidating("breaker_pool = 100"), [true, false]).await;
    rig.agent(&nodes[0], |agent| agent.stubborn = true);
    rig.pass(Millis::seconds(20)).await;
    assert_eq!(rig.node("i-1").lifecycle, Lifecycle::Draining);
    rig.commands
        .freeze("admin/ada", None, "looking")
        .await
        .expect("frozen");
    rig.agent(&nodes[0], |agent| agent.stubborn = false);
    rig.pass(Millis::minutes(5)).await;
    assert!(rig.events("moving").await.is_empty());
    rig.commands.thaw("admin/ada", None).await.expect("thawed");
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.events("moving").await.len(), 1);
}
