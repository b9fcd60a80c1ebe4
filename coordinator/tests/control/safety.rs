//! What must never happen: freeze, observe, silence, clocks, foreign machines, the breaker.

use crate::rig::{GPUS, Rig, START, two_pools};
use drover::ports::clock::Clock;
use drover::records::QuarantineRecord;
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

#[tokio::test]
async fn a_freeze_stops_growth_and_removal_until_it_is_thawed() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 2).await;
    rig.commands
        .freeze("admin/ada", None, "careful")
        .await
        .expect("frozen");
    rig.ask("job", 4, GPUS).await;
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.cloud.asked(), 0);
    assert_eq!(rig.cloud.alive("a").len(), 2);
    assert_eq!(rig.view().freezes.len(), 1);
    rig.restart().await;
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.cloud.asked(), 0, "durable");
    rig.commands.thaw("admin/ada", None).await.expect("thawed");
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 4);
}

#[tokio::test]
async fn observe_plans_and_changes_nothing() {
    let text = two_pools().replace("\"full\"", "\"observe\"");
    let mut rig = Rig::new(&text).await;
    fleet(&mut rig, 3).await;
    rig.ask("job", 9, GPUS).await;
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.cloud.asked(), 0);
    assert_eq!(rig.cloud.alive("a").len(), 3);
    assert_eq!(rig.count("/order/").await, 0);
    assert_eq!(rig.count("/drain/").await, 0);
    let view = rig.view();
    let plan = view.plan.as_ref().expect("a plan");
    assert!(!plan.1.plan.would.is_empty(), "would have");
    // Grow never removes.
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.commands
        .set_pool_mode("admin/ada", "a", drover_core::model::Mode::Grow, "")
        .await
        .expect("set");
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.cloud.alive("a").len(), 3);
}

#[tokio::test]
async fn two_hundred_running_instances_are_adopted_and_nothing_is_touched() {
    for mode in ["observe", "grow", "full"] {
        let text = two_pools().replace("\"full\"", &format!("\"{mode}\""));
        let mut rig = Rig::new(&text).await;
        for at in 0..200 {
            rig.cloud.add("a", &format!("i-old-{at:03}"));
        }
        rig.cycle().await;
        let before = rig.records().await;
        rig.pass(Millis::minutes(60)).await;
        assert_eq!(rig.cloud.alive("a").len(), 200, "{mode}");
        assert_eq!(rig.cloud.asked(), 0, "{mode}");
        assert_eq!(rig.records().await, before, "{mode}: not one record");
        assert_eq!(rig.view().pool("a").expect("a").unmanaged, 200);
        assert_eq!(rig.events("adopted").await.len(), 200);
    }
}

#[tokio::test]
async fn sc_26_a_silent_site_is_a_network_fault() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 5).await;
    for node in &nodes {
        rig.agent(node, |agent| agent.silent = true);
    }
    rig.pass(Millis::minutes(1)).await;
    rig.ask_with("job", 1, GPUS, |spec| spec.duration = None)
        .await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.pass(Millis::minutes(180)).await;

    assert_eq!(
        rig.cloud.alive("a").len(),
        5,
        "nothing removed, nothing bought there"
    );
    assert_eq!(rig.cloud.alive("b").len(), 1, "demand goes elsewhere");
    assert_eq!(rig.events("site_silent").await.len(), 1);
    assert!(
        rig.view()
            .nodes
            .iter()
            .filter(|node| node.joined.is_some() && node.unreachable)
            .count()
            >= 5
    );
    assert_eq!(rig.count("/order/").await, 0);
    for node in &nodes {
        rig.agent(node, |agent| agent.silent = false);
    }
    rig.pass(Millis::seconds(10)).await;
    assert!(nodes.iter().all(|node| {
        let found = rig.node(node.as_str());
        found.lifecycle == Lifecycle::Ready && !found.unreachable
    }));
    assert_eq!(rig.count("/order/").await, 0, "no new orders needed");

    // One box of five silent: no site alarm.
    rig.agent(&nodes[0], |agent| agent.silent = true);
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.events("site_silent").await.len(), 1);
    assert!(rig.node(nodes[0].as_str()).unreachable);
}

#[tokio::test]
async fn i6_a_quarantined_node_is_left_alone_and_tells_nothing_of_its_site() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 2).await;
    rig.work(&nodes[1], "busy");
    for node in &nodes {
        rig.edit(node, |record| {
            record.quarantined = Some(QuarantineRecord {
                at: record.joined,
                why: "a second key claimed its instance".to_owned(),
            });
        })
        .await;
        // Its session was closed.
        rig.agent(node, |agent| agent.silent = true);
    }
    rig.pass(Millis::minutes(60 * 5)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        2,
        "nothing is ended, idle or not"
    );
    assert_eq!(rig.count("/drain/").await, 0);
    assert!(rig.events("site_silent").await.is_empty());
    let view = rig.view();
    for node in &nodes {
        let shown = rig.node(node.as_str());
        assert!(shown.unreachable && !shown.is_available());
        assert!(shown.reason.contains("in quarantine"), "{}", shown.reason);
        assert!(
            view.alarms
                .iter()
                .any(|alarm| alarm.kind == "node_quarantined" && alarm.subject == node.0),
            "{:?}",
            view.alarms
        );
    }
    // What is asked for goes elsewhere.
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.pass(Millis::minutes(2)).await;
    let request = rig.view().request("job").cloned().expect("asked");
    assert_eq!(request.units_ready, 1, "{:?}", request.reasons);
    let on = request.assignments[0].node.clone().expect("a node");
    assert!(!nodes.contains(&on));

    for node in &nodes {
        rig.edit(node, |record| record.quarantined = None).await;
        rig.agent(node, |agent| agent.silent = false);
    }
    rig.cycle().await;
    assert!(rig.node(nodes[1].as_str()).is_available());
    assert!(
        !rig.view()
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "node_quarantined")
    );
}

#[tokio::test]
async fn i6_silence_is_not_death() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 2).await;
    rig.work(&nodes[1], "busy");
    rig.agent(&nodes[0], |agent| agent.silent = true);
    rig.pass(Millis::minutes(60 * 5)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2);
}

#[tokio::test]
async fn i14_bounded_destruction_asks_a_person() {
    let text = two_pools().replace("breaker_pool = 100", "breaker_pool = 3");
    let mut rig = Rig::new(&text).await;
    fleet(&mut rig, 10).await;
    rig.pass(Millis::minutes(11)).await;
    assert_eq!(rig.cloud.alive("a").len(), 7, "three within ten minutes");
    let view = rig.view();
    assert_eq!(view.approvals.len(), 1);
    assert!(view.alarms.iter().any(|alarm| alarm.kind == "breaker_open"));
    let waiting = view.approvals[0].clone();
    let held = waiting.nodes.len();
    assert_eq!(held, 7, "drains went on: one question about all of them");
    assert!(
        waiting
            .message
            .starts_with("terminate 7 nodes of pool a (3 of a went"),
        "{}",
        waiting.message
    );
    let asks = format!("drover approve {}", waiting.id);
    let drained = view.nodes.iter().filter(|node| {
        node.lifecycle == Lifecycle::Drained
            && node.reason == format!("drained; its removal waits for `{asks}`")
    });
    assert_eq!(drained.count(), 7);
    let pool = view.pool("a").expect("a");
    assert!(pool.stopped.is_empty() && pool.paused.is_empty());
    assert!(pool.holds[0].starts_with("no removal: ") && pool.holds[0].contains(&asks));
    assert_eq!(rig.events("approval_needed").await.len(), 1);
    rig.commands
        .approve("admin/ada", &waiting.id)
        .await
        .expect("approved");
    rig.pass(Millis::seconds(30)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        7 - held,
        "exactly what was approved"
    );
}

#[tokio::test]
async fn i14_the_share_is_of_the_fleet_before_the_acts() {
    let text = two_pools().replace("breaker_fleet_percent = 50", "breaker_fleet_percent = 20");
    // All at once, and one by one: what is leaving is not counted again as still there.
    let mut rig = Rig::new(&text).await;
    fleet(&mut rig, 20).await;
    rig.pass(Millis::minutes(12)).await;
    assert_eq!(rig.cloud.alive("a").len(), 16, "a fifth of twenty at once");
    let text = text.replace("removal_quota = \"100%\"", "removal_quota = 1");
    let mut rig = Rig::new(&text).await;
    fleet(&mut rig, 20).await;
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        16,
        "a fifth of twenty one by one"
    );
}

#[tokio::test]
async fn a_clock_that_jumps_a_day_destroys_nothing_for_one_idle_period() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 3).await;
    rig.pass(Millis::minutes(1)).await;
    rig.clock
        .jump_to(rig.clock.wall().after(Millis::minutes(60 * 24)));
    rig.pass(Millis::minutes(9)).await;
    assert_eq!(rig.cloud.alive("a").len(), 3);
    assert_eq!(rig.events("clock_drift").await.len(), 1);
    assert!(
        rig.view()
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "clock_drift")
    );
    rig.pass(Millis::minutes(3)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        1,
        "half of the fleet, rounded up, within an hour"
    );
    rig.pass(Millis::minutes(60)).await;
    assert!(rig.cloud.alive("a").is_empty());
    assert!(rig.clock.wall() > START);
}

#[tokio::test]
async fn sc_12_trouble_with_one_pool_stays_there() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.dark = true);
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("b").len(), 2);
    assert_eq!(rig.events("unreadable").await.len(), 1);
    assert!(rig.view().pool("a").expect("a").read_error.is_some());
}

#[tokio::test]
async fn nothing_is_bought_or_removed_before_agents_could_return() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 2).await;
    rig.ask("job", 2, GPUS).await;
    for node in &nodes {
        rig.agent(node, |agent| agent.silent = true);
    }
    rig.restart().await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 0);
    for node in &nodes {
        rig.agent(node, |agent| agent.silent = false);
    }
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 0, "the two serve it");
    assert_eq!(rig.shown("job"), "served");
}

#[tokio::test]
async fn a_pool_gone_from_the_file_is_orphaned_never_drained() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 2).await;
    let text = two_pools()
        .replace("name = \"a\"", "name = \"c\"")
        .replace("group = \"a\"", "group = \"c\"");
    rig.with_config(&text).await;
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a").len(), 2);
    let view = rig.view();
    assert!(view.pool("a").expect("shown").orphaned);
    assert_eq!(rig.count("/order/").await, 0);
}

#[tokio::test]
async fn a_quiet_fleet_writes_nothing() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 5).await;
    for node in &nodes {
        rig.work(node, "busy");
    }
    rig.pass(Millis::seconds(20)).await;
    let before = rig.records().await;
    let events = rig.count("/event/").await;
    rig.pass(Millis::minutes(30)).await;
    assert_eq!(rig.records().await, before);
    assert_eq!(rig.count("/event/").await, events);
}

#[tokio::test]
async fn a_pushed_config_orphans_a_pool_that_it_no_longer_names_and_drains_nothing_for_a_lower_maximum()
 {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = fleet(&mut rig, 6).await;
    for node in &nodes {
        rig.work(node, "busy");
    }
    rig.cycle().await;
    // Half the maximum: nothing is drained, nothing is grown.
    rig.push_config(&two_pools().replace("max = 200", "max = 3"))
        .await;
    rig.cycle().await;
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a").len(), 6);
    assert_eq!(rig.count("/drain/").await, 0);
    assert_eq!(rig.view().pool("a").expect("a").max, 3);
    // Not in the file any more: reported, its nodes idle now, and still nothing is done to them.
    let two = two_pools();
    let (head, rest) = two.split_once("[[pool]]\nname = \"a\"").expect("pool a");
    let (_, b) = rest.split_once("[[pool]]").expect("pool b");
    rig.push_config(&format!("{head}[[pool]]{b}")).await;
    for node in &nodes {
        rig.work(node, "");
    }
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a").len(), 6);
    assert_eq!(rig.count("/drain/").await, 0);
    assert!(rig.view().pool("a").expect("still shown").orphaned);
    assert!(
        rig.view()
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "pool_orphaned")
    );
    assert_eq!(rig.events("config_taken").await.len(), 2);
    // And named again: as if nothing had been.
    rig.push_config(&two_pools()).await;
    rig.pass(Millis::minutes(15)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        3,
        "idle nodes of a pool in mode full go, half of the fleet within an hour"
    );
}

#[tokio::test]
async fn a_pool_that_discovery_loses_is_orphaned_never_drained_and_its_troubles_are_alarms() {
    let mut rig = Rig::new(&two_pools()).await;
    fleet(&mut rig, 4).await;
    rig.cycle().await;
    rig.push_discovered(&two_pools()).await;
    assert!(
        rig.events("pools_discovered").await.is_empty(),
        "the same pools are no news"
    );
    let two = two_pools();
    let (head, rest) = two.split_once("[[pool]]\nname = \"a\"").expect("pool a");
    let (_, b) = rest.split_once("[[pool]]").expect("pool b");
    rig.push_discovered(&format!("{head}[[pool]]{b}")).await;
    rig.pass(Millis::minutes(60)).await;
    assert_eq!(rig.cloud.alive("a").len(), 4);
    assert_eq!(rig.count("/drain/").await, 0);
    assert!(rig.view().pool("a").expect("still shown").orphaned);
    assert_eq!(rig.events("pools_discovered").await.len(), 1);
    assert!(rig.events("config_taken").await.is_empty());
    // What cannot be read is told once and is an alarm for as long as it holds.
    let dead = "groups cannot be looked for in us-west-2";
    rig.push_troubles(&[dead]).await;
    rig.push_troubles(&[dead]).await;
    rig.cycle().await;
    assert_eq!(rig.events("discovery_trouble").await.len(), 1);
    let alarms = |rig: &Rig| {
        let view = rig.view();
        let mine = view.alarms.iter().filter(|a| a.kind == "discovery_trouble");
        mine.count()
    };
    assert_eq!(alarms(&rig), 1);
    rig.push_troubles(&[]).await;
    rig.cycle().await;
    assert_eq!(alarms(&rig), 0);
}
