//! What people are shown: nothing is called coming that cannot come, and what holds is told once and in their words.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::DrainWish;
use drover::control::view::{RequestView, UnitState};
use drover::ports::clock::Clock;
use drover::records::{DrainPolicy, Then};
use drover_core::model::{Lifecycle, Millis, NodeId};

async fn fleet(rig: &mut Rig, count: usize) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for at in 0..count {
        let id = format!("i-{at:03}");
        rig.cloud.add("a", &id);
        nodes.push(rig.join("a", &id).await);
    }
    rig.cycle().await;
    nodes
}

fn request(rig: &Rig, name: &str) -> RequestView {
    let view = rig.view();
    view.request(name).expect("a request").clone()
}

fn units(request: &RequestView) -> (u32, u32, u32, u32) {
    (
        request.units_ready,
        request.units_coming,
        request.units_unavailable,
        request.units_missing,
    )
}

#[tokio::test]
async fn units_on_a_node_that_was_taken_away_are_unavailable_not_coming() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 2).await;
    rig.ask_with("job", 2, GPUS, |spec| spec.duration = None)
        .await;
    rig.cycle().await;
    assert_eq!(units(&request(&rig, "job")), (2, 0, 0, 0));
    let lost = |rig: &Rig, why: &str| {
        let found = request(rig, "job");
        assert_eq!(units(&found), (1, 0, 1, 0), "{why}");
        let told = &found.reasons[0];
        assert!(told.contains("1 unit is unavailable: host-i-00"), "{told}");
        assert!(told.contains(why), "{told}");
        let explained = futures::FutureExt::now_or_never(rig.commands.explain("job"))
            .expect("at once")
            .expect("explained");
        let says = |text: &&String| text.contains(why) && text.contains("unavailable");
        assert_eq!(explained.lines.iter().filter(says).count(), 0, "told once");
        assert!(explained.summary.contains(why), "{}", explained.summary);
    };

    rig.commands
        .cordon("admin/ada", "i-000", "new disk")
        .await
        .expect("cordoned");
    rig.cycle().await;
    lost(&rig, "is cordoned by admin/ada: new disk");
    rig.commands
        .uncordon("admin/ada", "i-000")
        .await
        .expect("uncordoned");
    rig.cycle().await;
    assert_eq!(units(&request(&rig, "job")), (2, 0, 0, 0));

    rig.agent(&nodes[1], |agent| agent.silent = true);
    rig.pass(Millis::minutes(2)).await;
    lost(&rig, "is unreachable since");
    rig.agent(&nodes[1], |agent| agent.silent = false);
    rig.cycle().await;
    assert_eq!(units(&request(&rig, "job")), (2, 0, 0, 0));

    let wish = DrainWish {
        node: "i-000".to_owned(),
        policy: DrainPolicy::Wait,
        deadline: None,
        grace: None,
        reason: "old kernel".to_owned(),
        then: Then::Cordoned,
    };
    rig.commands
        .drain("admin/ada", &wish)
        .await
        .expect("drained");
    rig.cycle().await;
    lost(&rig, "is drained by admin/ada: old kernel");
    let held = request(&rig, "job").assignments.len();
    assert_eq!(held, 2, "assignments are sticky");
}

#[tokio::test]
async fn units_on_their_way_are_coming_until_the_node_is_ready_for_the_first_time() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(units(&request(&rig, "job")), (0, 1, 0, 0));
    let id = rig.cloud.alive("a")[0].clone();
    rig.join_with("a", &id, GPUS, |view| view.workloads = None)
        .await;
    rig.cycle().await;
    let found = request(&rig, "job");
    assert_eq!(units(&found), (0, 1, 0, 0));
    assert_eq!(
        found.assignments[0].state,
        UnitState::Coming(
            "has joined, is not ready yet: its agent has not told what runs there".to_owned()
        )
    );
}

#[tokio::test]
async fn a_request_whose_units_are_all_ready_is_served_in_the_same_cycle() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 2).await;
    rig.ask("job", 2, GPUS).await;
    rig.once_only().await;
    let found = request(&rig, "job");
    assert_eq!((found.shown.word(), found.units_ready), ("served", 2));
    assert!(
        found.reasons[0].starts_with("held until 2"),
        "{:?}",
        found.reasons
    );
}

#[tokio::test]
async fn a_launch_of_many_nodes_that_never_join_is_one_miss() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 5, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    rig.pass(Millis::minutes(40)).await;
    let misses = rig.view().pool("a").expect("a").misses + rig.view().pool("b").expect("b").misses;
    assert!(misses > 0, "some missed");
    let missed = rig.events("launch_missed").await.len();
    assert_eq!(usize::try_from(misses).expect("few"), missed);
    let lost = rig.events("lost").await;
    assert!(
        lost[0]
            .message
            .contains("5 units wait again: the nodes that they were to run on never joined"),
        "{}",
        lost[0].message
    );
}

#[tokio::test]
async fn status_and_pools_count_the_same_nodes_as_ready() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 3).await;
    rig.commands
        .cordon("admin/ada", "i-000", "")
        .await
        .expect("cordoned");
    rig.agent(&nodes[1], |agent| agent.silent = true);
    rig.pass(Millis::minutes(2)).await;
    let view = rig.view();
    let ready = view.nodes.iter().filter(|node| node.is_available()).count();
    assert_eq!(ready, 1);
    assert_eq!(view.pool("a").expect("a").ready, 1);
    assert_eq!(rig.node("i-000").lifecycle, Lifecycle::Ready);
}

#[tokio::test]
async fn the_smallest_fleet_loses_one_node_and_asks_about_the_next() {
    let text = two_pools().replace("breaker_fleet_percent = 50", "breaker_fleet_percent = 20");
    let mut rig = Rig::new(&text).await;
    fleet(&mut rig, 3).await;
    rig.pass(Millis::minutes(12)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2, "one of three");
    let view = rig.view();
    assert_eq!(
        view.approvals[0].message,
        "terminate 2 nodes of pool a (1 node of the fleet went within an hour, at most 1 may (20 %))"
    );
    // Work takes what waits back: nobody is asked about it any more.
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(rig.view().approvals[0].nodes.len(), 1);
}

#[tokio::test]
async fn a_stop_a_pause_and_a_hold_are_three_things_and_each_is_told_once() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 1).await;
    rig.commands
        .pause_pool("admin/ada", "a", "costs")
        .await
        .expect("paused");
    rig.clock
        .jump_to(rig.clock.wall().after(Millis::minutes(60)));
    rig.cycle().await;
    let view = rig.view();
    let pool = view.pool("a").expect("a");
    assert_eq!(pool.paused, ["paused by admin/ada: costs"]);
    assert!(pool.stopped.is_empty());
    assert!(
        pool.holds[0].starts_with("no removal: "),
        "{:?}",
        pool.holds
    );
    let other = view.pool("b").expect("b");
    assert!(other.paused.is_empty() && !other.holds.is_empty());
    let told = rig.commands.explain("a").await.expect("explained");
    let mut lines = told.lines.clone();
    lines.push(told.summary);
    let all = lines.len();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), all, "{lines:?}");
}

#[tokio::test]
async fn the_fleets_freeze_is_one_alarm_and_a_pools_own_is_another() {
    let mut rig = Rig::new(&two_pools()).await;
    for pool in [None, Some("b")] {
        rig.commands
            .freeze("admin/ada", pool, "careful")
            .await
            .expect("frozen");
    }
    rig.cycle().await;
    let view = rig.view();
    let frozen = view.alarms.iter().filter(|alarm| alarm.kind == "frozen");
    let subjects: Vec<&str> = frozen.map(|alarm| alarm.subject.as_str()).collect();
    assert_eq!(subjects, ["", "b"]);
}

#[tokio::test]
async fn an_instance_that_missed_its_deadline_says_so_and_what_becomes_of_it() {
    let text = two_pools().replace("breaker_pool = 100", "breaker_pool = 1");
    let mut rig = Rig::new(&text).await;
    rig.ask_with("job", 2, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    rig.pass(Millis::seconds(10)).await;
    let ids = rig.cloud.alive("a");
    assert_eq!(
        rig.node(&ids[0]).reason,
        "launched, its agent has not enrolled"
    );
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(16)).await;
    let reason = rig.node(&ids[0]).reason;
    assert!(
        reason.starts_with("missed its deadline at 2")
            && reason.contains("; is not removed before 2"),
        "{reason}"
    );
    let view = rig.view();
    assert_eq!(view.pool("a").expect("a").missed, 2);
    let alarm = view
        .alarms
        .iter()
        .find(|alarm| alarm.kind == "never_joined");
    let alarm = alarm.expect("an alarm");
    assert_eq!(
        alarm.message,
        "2 instances never joined and cost 28.80 USD/h"
    );
    rig.pass(Millis::minutes(16)).await;
    let left = rig.cloud.alive("a");
    assert_eq!(left.len(), 1);
    let reason = rig.node(&left[0]).reason;
    assert!(reason.contains("waits for `drover approve a-"), "{reason}");
}

#[tokio::test]
async fn what_an_agent_says_can_be_shown_before_the_next_cycle() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 1).await;
    rig.work(&nodes[0], "python train.py");
    let agent = rig.commands.agent(&nodes[0]).expect("an agent");
    assert_eq!(agent.workloads.as_ref().expect("a list").items.len(), 1);
    let seen = rig.node("i-000").agent.expect("as the cycle saw it");
    assert!(seen.workloads.as_ref().expect("a list").items.is_empty());
}

#[tokio::test]
async fn resuming_a_pool_that_runs_changes_nothing_and_is_not_audited() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cycle().await;
    let audits = rig.count("/audit/").await;
    rig.commands
        .resume_pool("admin/ada", "a")
        .await
        .expect("nothing to do");
    assert_eq!(rig.count("/audit/").await, audits);
    assert!(rig.events("resumed").await.is_empty());
}
