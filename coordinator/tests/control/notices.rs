//! What clouds tell of nodes, by agent and by queue.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::DrainWish;
use drover::ports::clock::Clock;
use drover::ports::notices::{CloudNotice, CloudWord};
use drover::records::{DesiredState, DrainPolicy, OrderRecord, Then};
use drover_core::model::{InstanceId, Lifecycle, Millis, NodeId, PoolId, UnixMs};
use drover_proto::v1;

fn with(keys: &str) -> String {
    two_pools().replacen(
        "removal_quota = \"100%\"\n",
        &format!("removal_quota = \"100%\"\n{keys}"),
        1,
    )
}

fn told(kind: &str, ends: Option<UnixMs>) -> v1::Notice {
    v1::Notice {
        id: format!("{kind}/1"),
        kind: kind.to_owned(),
        deadline_unix_ms: ends.map_or(0, |at| at.0),
        message: format!("{kind} of it"),
        ..v1::Notice::default()
    }
}

fn queued(id: &str, instance: &str, word: CloudWord) -> CloudNotice {
    CloudNotice {
        id: id.to_owned(),
        by: "eu/notices".to_owned(),
        region: "eu-west-1".to_owned(),
        instance: InstanceId::from(instance),
        word,
        message: "AWS tells".to_owned(),
        at: None,
    }
}

/// A node of pool a with a request's unit and a process on it.
async fn working(rig: &mut Rig) -> NodeId {
    rig.cloud.add("a", "i-1");
    let node = rig.join("a", "i-1").await;
    rig.ask_with("job", 1, GPUS, |spec| {
        spec.pools = vec![PoolId::from("a")];
        spec.duration = Some(Millis::minutes(600));
    })
    .await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    rig.work(&node, "python train.py");
    rig.cycle().await;
    node
}

fn order(rig: &Rig, node: &NodeId) -> Option<OrderRecord> {
    rig.link.desired.lock().expect("lock").get(node).cloned()
}

#[tokio::test]
async fn sc_90_the_work_of_an_interrupted_node_is_planned_in_the_same_cycle() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    let end = rig.clock.wall().after(Millis::minutes(2));
    rig.notice(&node, told("spot_interruption", Some(end)));
    rig.once_only().await;
    let order = order(&rig, &node).expect("an order");
    let drain = order.drain.expect("draining");
    assert_eq!(drain.policy, DrainPolicy::Force);
    assert!(drain.deadline.expect("a deadline") < end);
    assert_eq!(order.reason, "spot notice", "and no scale-in");
    assert_eq!(rig.cloud.asked(), 1, "one more in the very same cycle");
    assert_eq!(rig.events("lost").await.len(), 1);
    // The queue tells the same a moment later: nothing new.
    let word = CloudWord::Spot {
        ends: Some(end.after(Millis::seconds(2))),
    };
    rig.queues
        .messages
        .lock()
        .expect("lock")
        .push(queued("m-1", "i-1", word));
    rig.cycle().await;
    assert_eq!(rig.events("notice").await.len(), 1);
    assert_eq!(rig.events("drain_started").await.len(), 1);
    assert_eq!(rig.cloud.asked(), 1);
    assert!(rig.queues.messages.lock().expect("lock").is_empty());
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served", "elsewhere");
}

#[tokio::test]
async fn a_notice_from_the_queue_alone_does_the_same() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    let at = rig.clock.wall();
    let mut message = queued("m-1", "i-1", CloudWord::Spot { ends: None });
    message.at = Some(at);
    rig.queues.messages.lock().expect("lock").push(message);
    rig.once_only().await;
    let drain = order(&rig, &node)
        .and_then(|order| order.drain)
        .expect("draining");
    assert_eq!(drain.policy, DrainPolicy::Force);
    assert!(drain.deadline.expect("a deadline") < at.after(Millis::minutes(2)));
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn observe_changes_nothing_and_grow_only_keeps_work_off() {
    for (mode, ordered, asked) in [
        ("observe", None, 0),
        ("grow", Some(DesiredState::Cordoned), 1),
    ] {
        let mut rig = Rig::new(&two_pools()).await;
        let node = working(&mut rig).await;
        let text = two_pools().replacen("\"full\"", &format!("\"{mode}\""), 1);
        rig.push_config(&text).await;
        rig.cycle().await;
        let end = rig.clock.wall().after(Millis::minutes(2));
        rig.notice(&node, told("spot_interruption", Some(end)));
        rig.cycle().await;
        let order = order(&rig, &node);
        let desired = order.as_ref().map(|order| order.desired);
        assert_eq!(desired, ordered, "{mode}");
        assert!(order.is_none_or(|order| order.drain.is_none()), "{mode}");
        assert_eq!(rig.cloud.asked(), asked, "{mode}: room for its work");
        assert!(rig.link.notices.lock().expect("lock").is_empty(), "taken");
        let said = rig.node(node.as_str()).reason;
        assert!(said.contains("spot interruption"), "{mode}: {said}");
        // No supply in any mode.
        rig.work(&node, "");
        rig.cycle().await;
        let free = rig.view();
        let alarms: Vec<_> = free.alarms.iter().map(|alarm| alarm.kind).collect();
        assert!(alarms.contains(&"spot_interruption"), "{mode}: {alarms:?}");
    }
}

#[tokio::test]
async fn a_rebalance_recommendation_keeps_new_work_off_until_it_expires() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    rig.notice(&node, told("rebalance", None));
    rig.cycle().await;
    let cordon = order(&rig, &node).expect("an order");
    assert_eq!(cordon.desired, DesiredState::Cordoned);
    assert!(
        cordon.reason.starts_with("notice: rebalance"),
        "{}",
        cordon.reason
    );
    assert_eq!(rig.cloud.asked(), 0, "its work goes on");
    rig.pass(Millis::minutes(29)).await;
    let now = order(&rig, &node).expect("an order").desired;
    assert_eq!(now, DesiredState::Cordoned);
    rig.pass(Millis::minutes(2)).await;
    let now = order(&rig, &node).expect("an order").desired;
    assert_eq!(now, DesiredState::Active, "expired");
    assert_eq!(rig.events("notice_over").await.len(), 1);
    assert_eq!(rig.cloud.alive("a"), ["i-1"], "nothing was ended");
}

#[tokio::test]
async fn an_empty_node_that_may_be_taken_leaves_and_a_persons_cordon_stays() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(4);
    let mut nodes = Vec::new();
    for id in ["i-1", "i-2"] {
        rig.cloud.add("a", id);
        nodes.push(rig.join("a", id).await);
    }
    rig.cycle().await;
    rig.commands
        .cordon("admin/ada", nodes[1].as_str(), "mine")
        .await
        .expect("cordoned");
    for node in &nodes {
        rig.notice(node, told("rebalance", None));
    }
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-2"], "long before its idle time");
    rig.pass(Millis::minutes(40)).await;
    let theirs = order(&rig, &nodes[1]).expect("an order");
    assert_eq!(
        (theirs.desired, theirs.by.as_str()),
        (DesiredState::Cordoned, "admin/ada")
    );
}

#[tokio::test]
async fn a_recommendation_is_ignored_or_answered_with_a_replacement_where_the_pool_says_so() {
    for (policy, cordoned, asked) in [("ignore", false, 0), ("replace", true, 1)] {
        let text = with(&format!("[pool.notices]\nrebalance = \"{policy}\"\n"));
        let mut rig = Rig::new(&text).await;
        let node = working(&mut rig).await;
        rig.notice(&node, told("rebalance", None));
        rig.cycle().await;
        let now = order(&rig, &node).is_some_and(|o| o.desired == DesiredState::Cordoned);
        assert_eq!(now, cordoned, "{policy}");
        assert_eq!(rig.cloud.asked(), asked, "{policy}");
        rig.boot_all().await;
        rig.pass(Millis::minutes(1)).await;
        assert_eq!(rig.cloud.asked(), asked, "{policy}: once");
        assert_eq!(rig.shown("job"), "served", "{policy}: its work goes on");
    }
}

#[tokio::test]
async fn maintenance_is_shown_or_drained_for_and_can_be_taken_back() {
    let text = with("[pool.notices]\nmaintenance = \"drain\"\nmaintenance_lead = \"2h\"\n");
    let mut rig = Rig::new(&text).await;
    let node = working(&mut rig).await;
    let begins = rig.clock.wall().after(Millis::minutes(180));
    let event = v1::Notice {
        subject: "e-1".into(),
        ..told("scheduled_event", Some(begins))
    };
    rig.notice(&node, event.clone());
    rig.cycle().await;
    assert!(order(&rig, &node).is_none(), "three hours ahead");
    let alarms = rig.view();
    assert!(alarms.alarms.iter().any(|a| a.kind == "scheduled_event"));
    rig.pass(Millis::minutes(61)).await;
    let now = order(&rig, &node).expect("an order");
    assert_eq!(now.desired, DesiredState::Cordoned);
    assert!(now.reason.contains("maintenance"), "{}", now.reason);
    rig.notice(
        &node,
        v1::Notice {
            id: "over".into(),
            withdrawn: true,
            deadline_unix_ms: 0,
            ..event
        },
    );
    rig.cycle().await;
    let now = order(&rig, &node).expect("an order").desired;
    assert_eq!(now, DesiredState::Active, "taken back");
}

#[tokio::test]
async fn i5_what_is_about_nobody_of_ours_is_ignored_and_a_deaf_queue_is_told_once() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    let strange = queued("m-1", "i-strange", CloudWord::Rebalance);
    rig.queues.messages.lock().expect("lock").push(strange);
    rig.cycle().await;
    assert_eq!(
        rig.queues.messages.lock().expect("lock").len(),
        1,
        "a reading may be older than the message"
    );
    rig.pass(Millis::minutes(3)).await;
    assert!(rig.queues.messages.lock().expect("lock").is_empty());
    assert_eq!(rig.count("/notice/").await, 0);
    assert!(order(&rig, &node).is_none());
    let trouble = ("eu/notices".to_owned(), "AccessDenied".to_owned());
    rig.queues.troubles.lock().expect("lock").push(trouble);
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.events("notices_unreadable").await.len(), 1);
    rig.queues.troubles.lock().expect("lock").clear();
    rig.cycle().await;
    assert_eq!(rig.events("notices_readable").await.len(), 1);
}

#[tokio::test]
async fn a_notice_survives_a_restart_and_goes_with_its_node() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    let end = rig.clock.wall().after(Millis::minutes(2));
    rig.notice(&node, told("spot_interruption", Some(end)));
    rig.cycle().await;
    rig.restart().await;
    rig.cycle().await;
    assert_eq!(rig.node(node.as_str()).lifecycle, Lifecycle::Draining);
    assert_eq!(
        rig.events("drain_started").await.len(),
        1,
        "not begun twice"
    );
    rig.cloud.machines.lock().expect("lock").remove("i-1");
    rig.agent(&node, |agent| agent.silent = true);
    rig.pass(Millis::minutes(12)).await;
    assert!(!rig.has_node(node.as_str()));
    assert_eq!(rig.count("/notice/").await, 0);
}

/// A capacity block: told ahead, kept free of new work, its work ended with grace before AWS does it.
#[tokio::test]
async fn a_capacity_block_is_drained_before_its_nodes_are_ended() {
    let mut rig = Rig::new(&with("[pool.notices]\nblock_lead = \"15m\"\n")).await;
    let node = working(&mut rig).await;
    let ends = rig.clock.wall().after(Millis::minutes(120));
    let set = |rig: &Rig, ends: Option<UnixMs>| {
        let mut machines = rig.cloud.machines.lock().expect("lock");
        machines.get_mut("i-1").expect("there").ends = ends;
    };
    set(&rig, Some(ends));
    rig.once_only().await;
    let desired = |rig: &Rig| order(rig, &node).map(|order| order.desired);
    assert_ne!(desired(&rig), Some(DesiredState::Cordoned), "far away");

    rig.pass(Millis::minutes(91)).await;
    rig.once_only().await;
    let cordon = order(&rig, &node).expect("an order");
    assert_eq!(cordon.desired, DesiredState::Cordoned, "{}", cordon.reason);
    assert!(
        cordon.reason.contains("capacity block"),
        "{}",
        cordon.reason
    );

    // Extended: all of it is taken back.
    set(&rig, Some(ends.after(Millis::minutes(600))));
    rig.once_only().await;
    assert_ne!(desired(&rig), Some(DesiredState::Cordoned), "extended");
    set(&rig, Some(ends));

    rig.pass(Millis::minutes(12)).await;
    assert_eq!(desired(&rig), Some(DesiredState::Cordoned));
    rig.clock.advance(Millis::minutes(2));
    rig.once_only().await;
    let order = order(&rig, &node).expect("an order");
    let drain = order.drain.expect("draining");
    assert_eq!(drain.policy, DrainPolicy::Force, "AWS does not wait");
    let deadline = drain.deadline.expect("a deadline");
    assert!(
        deadline < ends && deadline > rig.clock.wall().after(Millis::minutes(10)),
        "hooks and grace have time"
    );
    assert_eq!(order.reason, "its capacity block ends");
    assert!(rig.cloud.asked() >= 1, "room for its work elsewhere");
}

/// Its work goes on: a node that only keeps off new work is no reason to say that something comes.
#[tokio::test]
async fn units_on_a_node_that_is_only_kept_from_new_work_are_ready() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    rig.notice(&node, told("rebalance", None));
    rig.cycle().await;
    let view = rig.view();
    let job = view.request("job").expect("there");
    assert_eq!((job.units_ready, job.units_coming), (1, 0));
    assert_eq!(job.shown.word(), "served");
    let said = rig.commands.explain("job").await.expect("explained");
    let text = format!("{} {}", said.summary, said.lines.join(" "));
    for words in [
        "1 unit is on host-i-1, which takes no new work: rebalance recommendation",
        "1 unit on host-i-1, which is ready and takes no new work",
    ] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("taken back"), "{text}");
    // It is drained all the same once somebody says so.
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
        .expect("drained");
    rig.cycle().await;
    let view = rig.view();
    let job = view.request("job").expect("there");
    assert_eq!((job.units_ready, job.units_unavailable), (0, 1));
}

#[tokio::test]
async fn units_whose_work_has_not_begun_when_their_node_is_cordoned_go_elsewhere() {
    let mut rig = Rig::new(&two_pools()).await;
    let node = working(&mut rig).await;
    rig.ask("other", 1, GPUS).await;
    rig.cycle().await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("other"), "served");
    let mut all = rig.cloud.alive("a").into_iter();
    let idle = all.find(|id| id != "i-1").expect("a second one");
    let idle = NodeId(format!("n-{idle}"));
    assert_ne!(idle, node);
    let asked = rig.cloud.asked();
    for node in [&node, &idle] {
        rig.notice(node, told("rebalance", None));
    }
    rig.once_only().await;
    assert_eq!(rig.cloud.asked(), asked + 1, "one of the two runs");
    let lost = rig.events("lost").await;
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0].subject, "other");
    assert!(
        lost[0].message.contains("takes no new work: rebalance"),
        "{}",
        lost[0].message
    );
    assert_eq!(rig.shown("job"), "served");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("other"), "served", "elsewhere");
}

/// A driver's name that no offering has, and a replacement that cannot take the work: asked once for a notice, told.
#[tokio::test]
async fn room_is_made_for_what_the_work_asks_and_asked_for_once() {
    let text = with("[pool.notices]\nrebalance = \"replace\"\n");
    let mut rig = Rig::new(&text).await;
    rig.bystanders(4);
    // The catalogue says one model, the driver another; the request asks for none.
    rig.cloud
        .script("a", |script| script.promises = "a10g".to_owned());
    let node = working(&mut rig).await;
    rig.notice(&node, told("rebalance", None));
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    let view = rig.view();
    let (input, _) = view.plan.as_deref().expect("a plan");
    let room = input
        .classes
        .iter()
        .find(|class| !class.labels.is_empty() && class.count > 0)
        .expect("a room");
    assert_eq!(room.constraints.gpu_model, "");
    assert_eq!(room.constraints.pools, [PoolId::from("a")].into());
    rig.boot_all().await;
    rig.pass(Millis::minutes(15)).await;
    assert_eq!(rig.cloud.asked(), 1, "it fits, and is kept for it");
    assert_eq!(rig.cloud.alive("a").len(), 2);
    // Somebody else comes and takes that room.
    rig.ask_with("guest", 1, GPUS, |spec| {
        spec.pools = vec![PoolId::from("a")];
        spec.priority = 9;
    })
    .await;
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.shown("guest"), "served");
    assert_eq!(rig.cloud.asked(), 1, "one replacement for a notice");
    let told = rig.events("warning").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.contains("no other node"), "{told:?}");
    rig.restart().await;
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.cloud.asked(), 1, "after a restart too");
}
