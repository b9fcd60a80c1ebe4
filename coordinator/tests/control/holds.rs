//! Requests whose nodes cannot serve them: where units stay, where they are placed anew, and what waits on nodes that are
//! not ready while others are.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::DrainWish;
use drover::control::view::{RequestView, UnitState};
use drover::records::{AssignmentTarget, DrainPolicy, Then};
use drover_core::model::{Lifecycle, Locality, Millis, NodeId};
use drover_proto::v1;
use std::sync::Arc;

fn request(rig: &Rig, name: &str) -> RequestView {
    let view = rig.view();
    view.request(name).expect("a request").clone()
}

fn units(rig: &Rig, name: &str) -> (u32, u32, u32, u32) {
    let request = request(rig, name);
    (
        request.units_ready,
        request.units_coming,
        request.units_unavailable,
        request.units_missing,
    )
}

/// Nodes that a request holds, by name.
fn held(rig: &Rig, name: &str) -> Vec<String> {
    let found = request(rig, name).assignments;
    let mut names: Vec<String> = found.iter().map(|found| found.node_name.clone()).collect();
    names.sort();
    names
}

async fn drain(rig: &Rig, node: &str, then: Then) {
    let wish = DrainWish {
        node: node.to_owned(),
        policy: DrainPolicy::Wait,
        deadline: None,
        grace: None,
        reason: "new disk".to_owned(),
        then,
    };
    let drained = rig.commands.drain("admin/ada", &wish).await;
    drained.expect("drained");
}

/// Every machine of a pool that has no agent gets one, with so many GPUs.
async fn join_all(rig: &Rig, pool: &str, gpus: u32) -> Vec<NodeId> {
    let mut joined = Vec::new();
    for id in rig.cloud.alive(pool) {
        let node = NodeId(format!("n-{id}"));
        let known = rig.link.agents.lock().expect("lock").contains_key(&node);
        if !known && !id.starts_with("by-") {
            joined.push(rig.join_with(pool, &id, gpus, |_| {}).await);
        }
    }
    joined
}

/// Its GPUs are there now.
fn complete(rig: &Rig, node: &NodeId) {
    rig.agent(node, |agent| {
        let facts = Arc::make_mut(&mut agent.view.facts);
        let missing = GPUS as usize - facts.gpus.len();
        let gpus = (0..missing).map(|_| v1::GpuFacts {
            name: "Tesla K80".into(),
            ..v1::GpuFacts::default()
        });
        facts.gpus.extend(gpus);
    });
}

#[tokio::test]
async fn units_on_nodes_that_were_never_ready_are_placed_anew_once() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("big", 4, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    let first = rig.cloud.alive("a");
    assert_eq!(first.len(), 4);
    rig.join("a", &first[0]).await;
    let bad = join_all(&rig, "a", 0).await;
    rig.cycle().await;
    assert_eq!(units(&rig, "big"), (1, 3, 0, 0));
    // Why it waits is said at once, not after the deadline.
    let said = request(&rig, "big").assignments;
    let lacking = "has joined, is not ready yet: 0 of 16 GPUs".to_owned();
    let alike = said
        .iter()
        .filter(|found| found.state == UnitState::Coming(lacking.clone()));
    assert_eq!(alike.count(), 3, "{said:?}");
    let reason = rig.node(bad[0].as_str()).reason;
    assert_eq!(reason, "joined, not ready: 0 of 16 GPUs; held by big");

    rig.pass(Millis::minutes(14)).await;
    assert_eq!(rig.cloud.alive("a").len(), 4, "they have their time");
    rig.pass(Millis::minutes(2)).await;
    let lost = rig.events("lost").await;
    assert!(
        lost[0]
            .message
            .contains("was never ready and is faulty: 0 of 16 GPUs"),
        "{}",
        lost[0].message
    );
    let asked: u32 = {
        let launches = rig.cloud.launches.lock().expect("lock");
        launches.iter().map(|order| order.count).sum()
    };
    assert_eq!(asked, 7, "three in their place, and not one more");
    assert_eq!(units(&rig, "big"), (1, 3, 0, 0));
    let gone = |rig: &Rig| bad.iter().filter(|id| !rig.has_node(id.as_str())).count();
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(gone(&rig), 3, "the faulty ones leave");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.cloud.alive("a").len(), 4);
}

#[tokio::test]
async fn a_held_node_that_a_person_drains_to_leave_leaves_and_its_units_move() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("job", 2, GPUS, |spec| spec.duration = None)
        .await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    let node = request(&rig, "job").assignments[0].node.clone();
    let node = node.expect("a node");
    // While its work runs nothing is asked in its place.
    rig.work(&node, "train");
    drain(&rig, node.as_str(), Then::Leave).await;
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(units(&rig, "job"), (1, 0, 1, 0));
    assert_eq!(rig.cloud.asked(), 1);
    let explained = rig.commands.explain(node.as_str()).await.expect("told");
    let told = "placed anew once the node is drained";
    assert!(
        explained.lines.iter().any(|line| line.contains(told)),
        "{explained:?}"
    );
    rig.work(&node, "");
    rig.cycle().await;
    assert_eq!(units(&rig, "job"), (1, 1, 0, 0), "asked for in the same go");
    assert_eq!(rig.cloud.asked(), 2);
    rig.pass(Millis::minutes(2)).await;
    assert!(!rig.has_node(node.as_str()), "it has left");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(rig.cloud.asked(), 2);
}

#[tokio::test]
async fn a_gang_that_loses_a_drained_node_is_whole_again() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("gang", 3, GPUS, |spec| {
        spec.duration = None;
        spec.gang_min = Some(3);
        spec.locality = Locality::Site;
    })
    .await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("gang"), "served");
    let before = held(&rig, "gang");
    let pool = request(&rig, "gang").assignments[0].pool.clone();
    let node = request(&rig, "gang").assignments[0].node.clone();
    drain(&rig, node.expect("a node").as_str(), Then::Leave).await;
    rig.pass(Millis::seconds(30)).await;
    rig.boot_all().await;
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.shown("gang"), "served");
    let after = held(&rig, "gang");
    assert_eq!(after.len(), 3);
    let stayed = before.iter().filter(|name| after.contains(name)).count();
    assert_eq!(stayed, 2, "only the drained one is replaced");
    let found = request(&rig, "gang").assignments;
    assert!(found.iter().all(|found| found.pool == pool), "near by");
    assert_eq!(rig.cloud.asked(), 2);
}

#[tokio::test]
async fn i1_no_job_killed_a_node_that_was_ready_keeps_its_units_when_it_turns_faulty_or_silent() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("job", 2, GPUS, |spec| spec.duration = None)
        .await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    let before = held(&rig, "job");
    let nodes: Vec<NodeId> = request(&rig, "job")
        .assignments
        .iter()
        .filter_map(|found| found.node.clone())
        .collect();
    rig.agent(&nodes[0], |agent| {
        Arc::make_mut(&mut agent.view.facts).gpus.pop();
    });
    rig.agent(&nodes[1], |agent| agent.silent = true);
    rig.pass(Millis::minutes(40)).await;
    assert_eq!(units(&rig, "job"), (0, 0, 2, 0));
    assert_eq!(held(&rig, "job"), before);
    assert_eq!((rig.cloud.asked(), rig.cloud.alive("a").len()), (1, 2));
    let explained = rig.commands.explain(nodes[0].as_str()).await.expect("told");
    let way = "--then terminate` places them anew";
    assert!(
        explained.lines.iter().any(|line| line.contains(way)),
        "{explained:?}"
    );
    // Nor does a drain after which a person keeps the node.
    rig.agent(&nodes[1], |agent| agent.silent = false);
    rig.cycle().await;
    drain(&rig, nodes[1].as_str(), Then::Cordoned).await;
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.node(nodes[1].as_str()).lifecycle, Lifecycle::Drained);
    assert_eq!(held(&rig, "job"), before);
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn a_node_that_was_never_ready_and_falls_silent_holds_nothing_for_ever() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("other", 1, GPUS, |_| {}).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let bad = join_all(&rig, "a", 0).await;
    rig.cycle().await;
    rig.agent(&bad[0], |agent| {
        agent.view.workloads = None;
        agent.silent = true;
    });
    rig.pass(Millis::minutes(14)).await;
    assert_eq!(rig.cloud.asked(), 2);
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.asked(), 3, "placed anew");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert!(rig.has_node(bad[0].as_str()), "silence ends no node (I6)");
}

#[tokio::test]
async fn what_waits_on_a_node_without_its_gpus_goes_to_a_ready_one() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("big", 3, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    let slow = join_all(&rig, "a", 0).await;
    rig.cycle().await;
    assert_eq!(units(&rig, "big"), (0, 3, 0, 0));
    for id in ["j-1", "j-2", "j-3"] {
        rig.cloud.add("a", id);
    }
    rig.boot_all().await;
    // Younger than what waits: it gets none of them.
    rig.clock.advance(Millis(1_000));
    rig.ask_with("young", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
    assert_eq!(held(&rig, "big"), ["host-j-1", "host-j-2", "host-j-3"]);
    // What comes is supply like any other, and enough: nothing is asked for.
    assert_eq!(units(&rig, "young"), (0, 1, 0, 0));
    assert_eq!(rig.cloud.asked(), 1);
    assert_eq!(rig.events("moved").await.len(), 3);
    complete(&rig, &slow[0]);
    rig.cycle().await;
    assert_eq!(rig.shown("young"), "served");
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn a_ready_node_goes_to_the_first_in_rank_and_never_to_one_it_does_not_suit() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    for (name, pools, labels, priority) in [
        ("picky", vec!["b"], "", 0),
        ("marked", vec![], "ssd", 0),
        ("plain", vec![], "", 0),
        ("first", vec![], "", 5),
    ] {
        rig.ask_with(name, 1, GPUS, |spec| {
            spec.pools = pools.iter().map(|pool| (*pool).into()).collect();
            spec.priority = priority;
            if !labels.is_empty() {
                spec.labels = [("disk".to_owned(), labels.to_owned())].into();
            }
        })
        .await;
        rig.clock.advance(Millis(1_000));
    }
    rig.cycle().await;
    assert_eq!(rig.shown("marked"), "impossible");
    rig.cloud.add("a", "j-1");
    rig.join("a", "j-1").await;
    rig.cycle().await;
    assert_eq!(held(&rig, "first"), ["host-j-1"]);
    assert_eq!(rig.shown("first"), "served");
    assert_eq!(units(&rig, "plain"), (0, 1, 0, 0));
    rig.cloud.add("a", "j-2");
    rig.join("a", "j-2").await;
    rig.cycle().await;
    assert_eq!(held(&rig, "plain"), ["host-j-2"]);
    assert_eq!(units(&rig, "picky"), (0, 1, 0, 0), "of the other pool");
    let asked: u32 = {
        let launches = rig.cloud.launches.lock().expect("lock");
        launches.iter().map(|order| order.count).sum()
    };
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn a_ready_node_that_nothing_before_it_can_use_is_not_left_idle() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("huge", 500, GPUS, |spec| spec.gang_min = Some(500))
        .await;
    rig.clock.advance(Millis(1_000));
    rig.ask("plain", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(units(&rig, "plain"), (0, 1, 0, 0));
    rig.cloud.add("a", "j-1");
    rig.join("a", "j-1").await;
    rig.cycle().await;
    assert_eq!(held(&rig, "plain"), ["host-j-1"]);
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn a_place_of_a_launch_that_comes_free_is_closed_up() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    for name in ["one", "two", "three"] {
        rig.ask_with(name, 1, GPUS, |spec| spec.pools = vec!["a".into()])
            .await;
    }
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1, "one launch of three");
    rig.cloud.add("a", "j-1");
    rig.join("a", "j-1").await;
    rig.cycle().await;
    // One more is the spare that came free, whose place is nobody's.
    rig.ask_with("four", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    let mut places = Vec::new();
    for name in ["one", "two", "three", "four"] {
        for found in request(&rig, name).record.assignments {
            if let AssignmentTarget::Launch(_, place) = found.target {
                places.push(place);
            }
        }
    }
    places.sort_unstable();
    assert_eq!(places, [0, 1, 2]);
    rig.boot_all().await;
    rig.cycle().await;
    for name in ["one", "two", "three", "four"] {
        assert_eq!(rig.shown(name), "served", "{name}");
    }
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn an_idle_drain_of_drovers_own_is_taken_back_for_what_waits() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.cloud.add("a", "j-1");
    let idle = rig.join("a", "j-1").await;
    rig.agent(&idle, |agent| agent.stubborn = true);
    rig.cycle().await;
    // Too large for it; then it is drained as idle.
    rig.pass(Millis::minutes(11)).await;
    let node = rig.node(idle.as_str());
    assert!(node.drain.is_some_and(|drain| drain.own_idle));
    assert!(matches!(node.lifecycle, Lifecycle::Draining));
    // Its cordon is somebody's for a moment, so that new work asks for a node.
    rig.agent(&idle, |agent| agent.silent = true);
    rig.pass(Millis::minutes(2)).await;
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    assert_eq!(units(&rig, "job"), (0, 1, 0, 0));
    rig.agent(&idle, |agent| {
        agent.silent = false;
        agent.stubborn = false;
    });
    rig.cycle().await;
    assert_eq!(held(&rig, "job"), ["host-j-1"]);
    assert_eq!(rig.shown("job"), "served");
    let node = rig.node(idle.as_str());
    assert_eq!((node.drain, node.cordon), (None, None));
}

#[tokio::test]
async fn a_gang_in_one_zone_does_not_leave_it_for_a_ready_node() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(20);
    rig.ask_with("gang", 2, GPUS, |spec| {
        spec.gang_min = Some(2);
        spec.locality = Locality::Pool;
    })
    .await;
    rig.cycle().await;
    let pool = request(&rig, "gang").assignments[0].pool.clone();
    let pool = pool.expect("a pool");
    let other = if pool.as_str() == "a" { "b" } else { "a" };
    rig.cloud.add(other, "j-1");
    rig.join(other, "j-1").await;
    rig.cycle().await;
    assert_eq!(units(&rig, "gang"), (0, 2, 0, 0));
    rig.cloud.add(pool.as_str(), "j-2");
    rig.join(pool.as_str(), "j-2").await;
    rig.cycle().await;
    assert_eq!(units(&rig, "gang"), (1, 1, 0, 0));
    assert!(matches!(
        rig.view().named("n-j-1")[0].lifecycle,
        Lifecycle::Ready
    ));
}

#[tokio::test]
async fn i11_bounded_retry_a_template_whose_nodes_are_never_ready_stops_its_pool() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(40);
    rig.ask_with("big", 2, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    for _ in 0..120 {
        rig.pass(Millis::minutes(1)).await;
        join_all(&rig, "a", 0).await;
    }
    assert_eq!(rig.cloud.asked(), 3, "one miss for each launch of two");
    let explained = rig.commands.explain("a").await.expect("told");
    let why = "3 launches in a row never joined or were never ready";
    assert!(explained.summary.contains(why), "{explained:?}");
    assert_eq!(rig.cloud.alive("a").len(), 0, "the broken ones are gone");
    rig.commands
        .resume_pool("admin/ada", "a")
        .await
        .expect("resumed");
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
}

#[tokio::test]
async fn a_miss_that_stopped_nothing_is_forgotten_without_a_word() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(40);
    rig.ask_with("big", 2, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    join_all(&rig, "a", 0).await;
    rig.pass(Millis::minutes(16)).await;
    assert_eq!(rig.cloud.asked(), 2, "placed anew");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
    assert!(rig.events("pool_clear").await.is_empty());
}
