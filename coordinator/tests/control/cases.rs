//! Field cases by their id, as far as requests, agents and a cloud can play them.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::DrainWish;
use drover::ports::clock::Clock;
use drover::records::{DrainPolicy, Then};
use drover_core::model::{Lifecycle, Millis, NodeId, PoolId};

fn with(keys: &str) -> String {
    two_pools().replace("name = \"a\"\n", &format!("name = \"a\"\n{keys}"))
}

async fn fleet(rig: &mut Rig, pool: &str, count: usize) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for n in 0..count {
        let id = format!("{pool}-{n}");
        rig.cloud.add(pool, &id);
        nodes.push(rig.join(pool, &id).await);
    }
    rig.cycle().await;
    nodes
}

fn wish(node: &NodeId, policy: DrainPolicy, deadline: Option<Millis>) -> DrainWish {
    DrainWish {
        node: node.0.clone(),
        policy,
        deadline,
        grace: None,
        reason: "new disk".to_owned(),
        then: Then::Cordoned,
    }
}

#[tokio::test]
async fn sc_02_below_the_minimum_and_short() {
    let mut rig = Rig::new(&with("min = 3\n")).await;
    rig.cloud.script("a", |script| script.capacity = Some(1));
    let nodes = fleet(&mut rig, "a", 1).await;
    rig.work(&nodes[0], "python train.py");
    rig.ask("jobs", 2, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 1, "the one real node stays");
    assert_eq!(rig.cloud.alive("b").len(), 2, "the jobs go elsewhere");
    let said = rig.view().pool("a").expect("a").reasons.join("; ");
    assert!(said.contains("2 below minimum"), "{said}");
    assert!(said.contains("shortage"), "{said}");
    // Probes of one, each after a longer pause.
    let before = rig.cloud.asked();
    rig.pass(Millis::minutes(20)).await;
    let launches = rig.cloud.launches.lock().expect("lock").clone();
    let probes: Vec<u32> = launches[before..]
        .iter()
        .filter(|order| order.pool.as_str() == "a")
        .map(|order| order.count)
        .collect();
    assert!((2..=6).contains(&probes.len()), "{probes:?}");
    assert!(probes.iter().all(|count| *count == 1), "{probes:?}");
}

#[tokio::test]
async fn sc_15_what_the_group_launches_by_itself_is_adopted_and_goes_when_idle() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cycle().await;
    rig.cloud.add("a", "i-own");
    rig.cycle().await;
    assert_eq!(rig.events("adopted").await.len(), 1);
    assert_eq!(rig.view().pool("a").expect("a").unmanaged, 1, "it counts");
    rig.pass(Millis::minutes(40)).await;
    assert_eq!(
        rig.cloud.alive("a"),
        ["i-own"],
        "never reaped: we did not launch it"
    );
    rig.join("a", "i-own").await;
    rig.pass(Millis::minutes(11)).await;
    assert!(rig.cloud.alive("a").is_empty(), "used, and idle in the end");
}

#[tokio::test]
async fn sc_20_batch_is_not_packed() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, "a", 2).await;
    for node in &nodes {
        rig.work(node, "python train.py");
    }
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2);
    for node in &nodes {
        let reason = rig.node(node.as_str()).reason;
        assert!(reason.contains("under-used"), "{reason}");
    }
}

#[tokio::test]
async fn sc_21_draining_holds_nothing_up() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(2);
    let busy = fleet(&mut rig, "a", 1).await;
    let idle = fleet(&mut rig, "b", 1).await;
    rig.work(&busy[0], "python train.py");
    rig.cycle().await;
    rig.commands
        .drain("admin/ada", &wish(&busy[0], DrainPolicy::Wait, None))
        .await
        .expect("drains");
    rig.pass(Millis::seconds(590)).await;
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec![PoolId::from("a")])
        .await;
    rig.pass(Millis::seconds(30)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        2,
        "the draining one is no supply"
    );
    assert!(!rig.has_node(idle[0].as_str()), "and the idle one goes");
    assert_eq!(rig.node(busy[0].as_str()).lifecycle, Lifecycle::Draining);
}

#[tokio::test]
async fn sc_68_spare_is_a_standing_target() {
    let mut rig = Rig::new(&with("spare = 1\n")).await;
    rig.bystanders(4);
    let nodes = fleet(&mut rig, "a", 3).await;
    for node in &nodes {
        rig.work(node, "python train.py");
    }
    rig.cycle().await;
    rig.boot_all().await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        4,
        "one more than the three that work"
    );
    for node in &nodes[..2] {
        rig.work(node, "");
    }
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        2,
        "of three idle ones one is kept"
    );
    assert_eq!(rig.view().pool("a").expect("a").idle, 1);
}

#[tokio::test]
async fn sc_81_silent_nodes_are_no_supply() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, "a", 2).await;
    rig.work(&nodes[1], "python train.py");
    rig.agent(&nodes[0], |agent| agent.silent = true);
    rig.pass(Millis::minutes(50)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2, "never for silence");
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec![PoolId::from("a")])
        .await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 3);
    // It returns after the other was asked for: nothing is cancelled.
    rig.agent(&nodes[0], |agent| agent.silent = false);
    rig.boot_all().await;
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(rig.cloud.alive("a").len(), 3);
    rig.pass(Millis::minutes(12)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        2,
        "the one without work goes when idle"
    );
}

#[tokio::test]
async fn sc_84_jobs_are_work_and_an_eviction_names_who_ordered_it() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, "a", 1).await;
    rig.work(&nodes[0], "python small.py");
    rig.pass(Millis::minutes(60 * 5)).await;
    assert_eq!(rig.count("/order/").await, 0, "nothing is done to it");
    let deadline = Millis::minutes(10);
    rig.commands
        .drain(
            "admin/olga",
            &wish(&nodes[0], DrainPolicy::Evict, Some(deadline)),
        )
        .await
        .expect("drains");
    rig.cycle().await;
    let order = rig.link.desired.lock().expect("lock")[&nodes[0]].clone();
    let drain = order.drain.expect("a drain");
    assert_eq!(
        (order.by.as_str(), drain.policy),
        ("admin/olga", DrainPolicy::Evict)
    );
    assert_eq!(drain.deadline, Some(rig.clock.wall().after(deadline)));
    let told = rig.events("drain_started").await;
    assert!(
        told[0].message.contains("admin/olga"),
        "{}",
        told[0].message
    );
}

#[tokio::test]
async fn sc_86_kept_only_if_it_helps() {
    let text = with("labels = { gpu = \"old\" }\n")
        .replace("removal_quota = \"100%\"", "removal_quota = 2");
    let mut rig = Rig::new(&text).await;
    rig.bystanders(10);
    fleet(&mut rig, "a", 10).await;
    rig.pass(Millis::seconds(580)).await;
    // Work that none of them can do keeps none of them.
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec![PoolId::from("b")])
        .await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    let mut most = 0;
    for _ in 0..30 {
        rig.pass(Millis::seconds(10)).await;
        most = most.max(rig.view().pool("a").expect("a").draining);
    }
    assert!(
        rig.cloud.alive("a").is_empty(),
        "{:?}",
        rig.cloud.alive("a")
    );
    assert!(most <= 2, "never more than the quota at once: {most}");
}
