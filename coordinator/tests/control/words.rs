//! What people read of pools and requests says what to do: where a stop is mended, what would be asked, and nothing that
//! does not concern them.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::view::PoolView;
use drover::ports::actuate::InstanceState;
use drover_core::model::{FailureKind, Millis, ReservedRoom, Stop};

fn pool(rig: &Rig, name: &str) -> PoolView {
    rig.view().pool(name).expect("a pool").clone()
}

fn alarm(rig: &Rig, kind: &str, subject: &str) -> Option<String> {
    let view = rig.view();
    let mut all = view.alarms.iter();
    let found = all.find(|alarm| alarm.kind == kind && alarm.subject == subject);
    found.map(|alarm| alarm.message.clone())
}

async fn explained(rig: &Rig, name: &str) -> Vec<String> {
    let told = rig.commands.explain(name).await.expect("explained");
    let mut all = vec![told.summary];
    all.extend(told.lines);
    all
}

#[tokio::test]
async fn resuming_is_advised_only_for_stops_that_it_ends() {
    let mut rig = Rig::new(&two_pools()).await;
    let suspended = Stop::Failed {
        failure: FailureKind::Suspended,
        why: "Launch is suspended in the group: ada".to_owned(),
    };
    rig.cloud
        .script("a", |script| script.stops = vec![suspended]);
    rig.cloud.script("b", |script| {
        script.launch_fails = Some(FailureKind::Config)
    });
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let shown = pool(&rig, "a").stopped;
    assert_eq!(shown.len(), 1, "{shown:?}");
    for text in [
        shown[0].clone(),
        alarm(&rig, "pool_stopped", "a").expect("an alarm"),
        explained(&rig, "a").await[0].clone(),
    ] {
        assert!(
            text.contains("ada; ") && text.contains("by itself"),
            "{text}"
        );
        assert!(!text.contains("pools resume"), "{text}");
    }
    let resumed = rig
        .commands
        .resume_pool("admin/ada", "a")
        .await
        .expect("nothing to do");
    let told = resumed.unchanged.expect("unchanged");
    assert!(told.contains("ada") && told.contains("by itself"), "{told}");

    let text = &pool(&rig, "b").stopped[0];
    assert!(text.contains("`drover pools resume b`"), "{text}");
    let event = &rig.events("pool_stopped").await[0];
    assert!(
        event.message.contains("`drover pools resume b`"),
        "{event:?}"
    );

    rig.cloud.script("a", |script| script.stops.clear());
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.cloud.alive("a").len(), 1, "it grew by itself");
}

#[tokio::test]
async fn a_refused_ask_is_over_once_a_reading_shows_launch_resumed() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Suspended)
    });
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    // The group was suspended between the reading and the ask; from then on readings say so.
    rig.once_only().await;
    let text = pool(&rig, "a").stopped[0].clone();
    assert!(text.contains("by itself once a reading shows"), "{text}");
    let stop = Stop::Failed {
        failure: FailureKind::Suspended,
        why: "Launch is suspended in the group: ada".to_owned(),
    };
    rig.cloud.script("a", |script| {
        script.stops = vec![stop];
        script.launch_fails = None;
    });
    rig.pass(Millis::minutes(5)).await;
    assert!(!pool(&rig, "a").stopped.is_empty());
    assert_eq!(rig.cloud.alive("a").len(), 0);
    rig.cloud.script("a", |script| script.stops.clear());
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.cloud.alive("a").len(), 1, "it grew by itself");
    assert!(pool(&rig, "a").stopped.is_empty());
    let clear = rig.events("pool_clear").await;
    assert_eq!(clear.len(), 1);
    assert!(
        clear[0]
            .message
            .contains("Launch is not suspended any more")
    );
}

#[tokio::test]
async fn the_groups_own_maximum_is_told_as_that_and_makes_nothing_impossible() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.most = Some(0));
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    let shown = pool(&rig, "a");
    assert_eq!((shown.max, shown.config_max), (0, Some(200)));
    assert_eq!(
        (pool(&rig, "b").max, pool(&rig, "b").config_max),
        (200, None)
    );
    let told = explained(&rig, "a").await.join("\n");
    assert!(
        told.contains("0 to 0 allowed (the group's own maximum, below the 200 of its config)"),
        "{told}"
    );
    assert_eq!(rig.shown("job"), "pending");
    let view = rig.view();
    let why = &view.request("job").expect("a request").reasons[0];
    assert!(why.contains("raise the group's"), "{why}");
    // What even the config does not allow stays impossible.
    rig.ask_with("huge", 201, GPUS, |spec| {
        spec.pools = vec!["a".into()];
        spec.gang_min = Some(201);
    })
    .await;
    rig.cycle().await;
    assert_eq!(rig.shown("huge"), "impossible");
    rig.cloud.script("a", |script| script.most = Some(1));
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.cloud.alive("a").len(), 1, "one update lifts it");
}

#[tokio::test]
async fn a_node_that_is_gone_is_found_by_its_instance_for_as_long_as_events_are_kept() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.add("a", "i-old");
    let node = rig.join("a", "i-old").await;
    rig.pass(Millis::minutes(2)).await;
    assert!(rig.has_node(node.as_str()));
    rig.agent(&node, |agent| agent.silent = true);
    if let Some(machine) = rig.cloud.machines.lock().expect("lock").get_mut("i-old") {
        machine.state = InstanceState::Gone;
    }
    rig.pass(Millis::minutes(2)).await;
    assert!(!rig.has_node(node.as_str()));
    let told = rig.commands.explain("i-old").await.expect("known still");
    assert_eq!((told.kind, told.name.as_str()), ("node", node.as_str()));
    assert!(told.summary.starts_with("is gone since "), "{told:?}");
    assert!(
        told.lines.iter().any(|line| line.contains("joined pool a")),
        "{told:?}"
    );
    let subject = rig.commands.event_subject("i-old").await;
    assert_eq!(subject.expect("known still"), node.as_str());
    assert!(rig.commands.event_subject("i-never").await.is_err());
    rig.restart().await;
    rig.cycle().await;
    assert!(rig.commands.explain("i-old").await.is_ok());
}

#[tokio::test]
async fn an_instance_that_was_adopted_is_told_once_over_restarts() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.add("a", "i-foreign");
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.events("adopted").await.len(), 1);
    rig.restart().await;
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.events("adopted").await.len(), 1);
}

#[tokio::test]
async fn what_is_remembered_of_a_pool_that_cannot_be_read_is_not_the_first_reason() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.capacity = Some(0));
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    rig.cloud.script("a", |script| script.dark = true);
    rig.pass(Millis::seconds(10)).await;
    let view = rig.view();
    let why = &view.request("job").expect("a request").reasons[0];
    assert!(why.contains("cannot be read"), "{why}");
}

#[tokio::test]
async fn only_a_taint_in_the_way_is_the_reason_and_has_its_option() {
    let text = two_pools().replacen(
        "removal_quota",
        "labels = { disk = \"nvme\" }\ntaints = { dedicated = \"ml:NoSchedule\" }\nremoval_quota",
        1,
    );
    let mut rig = Rig::new(&text).await;
    rig.ask_with("job", 1, GPUS, |spec| {
        spec.labels.insert("disk".to_owned(), "nvme".to_owned());
    })
    .await;
    rig.cycle().await;
    let view = rig.view();
    let why = &view.request("job").expect("a request").reasons[0];
    assert!(why.contains("taint dedicated=ml"), "{why}");
    assert!(why.contains("`--toleration dedicated=ml`"), "{why}");
}

#[tokio::test]
async fn a_stop_by_a_permission_says_that_it_is_tried_again() {
    let mut rig = Rig::new(&two_pools()).await;
    for pool in ["a", "b"] {
        rig.cloud.script(pool, |script| {
            script.launch_fails = Some(FailureKind::Permission)
        });
    }
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let text = &pool(&rig, "a").stopped[0];
    assert!(text.contains("tried again after 60 min"), "{text}");
}

#[tokio::test]
async fn a_request_is_told_nothing_of_pools_that_do_not_fit_it() {
    let text = two_pools().replacen(
        "removal_quota",
        "labels = { disk = \"nvme\" }\nremoval_quota",
        1,
    );
    let mut rig = Rig::new(&text).await;
    rig.ask_with("fast", 2, GPUS, |spec| {
        spec.labels.insert("disk".to_owned(), "nvme".to_owned());
    })
    .await;
    rig.ask_with("slow", 1, GPUS, |spec| spec.pools = vec!["b".into()])
        .await;
    rig.cycle().await;
    assert_eq!(
        (rig.cloud.alive("a").len(), rig.cloud.alive("b").len()),
        (2, 1)
    );
    // All of it has a place.
    let told = explained(&rig, "fast").await.join("\n");
    assert!(told.contains(" a: asks for 2"), "{told}");
    assert!(!told.contains(" b: "), "{told}");
    // Some of it waits.
    rig.cloud.script("a", |script| script.capacity = Some(0));
    rig.ask_with("more", 2, GPUS, |spec| {
        spec.labels.insert("disk".to_owned(), "nvme".to_owned());
    })
    .await;
    rig.ask_with("other", 1, GPUS, |spec| spec.pools = vec!["b".into()])
        .await;
    rig.cycle().await;
    let told = explained(&rig, "more").await.join("\n");
    assert!(told.contains(" a: asks for 2"), "{told}");
    assert!(!told.contains(" b: asks"), "{told}");
    let told = explained(&rig, "other").await.join("\n");
    assert!(!told.contains(" a: asks"), "{told}");
}

#[tokio::test]
async fn the_words_of_a_failure_are_said_once() {
    let mut rig = Rig::new(&two_pools()).await;
    let words = "glass: Shortage of everything that a person could want";
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Shortage);
        script.words = words.to_owned();
    });
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.pass(Millis::minutes(5)).await;
    let failed = rig.events("launch_failed").await.len();
    assert!(failed >= 3, "{failed}");
    for name in ["a", "job"] {
        let told = explained(&rig, name).await;
        let times = told.iter().filter(|line| line.contains(words)).count();
        assert_eq!(times, 1, "{name}: {told:#?}");
    }
}

#[tokio::test]
async fn a_probe_that_is_due_waits_for_demand_and_is_not_told_with_a_past_time() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Shortage)
    });
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    let told = explained(&rig, "a").await.join("\n");
    assert!(told.contains("next probe at 2"), "{told}");
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(30)).await;
    let told = explained(&rig, "a").await.join("\n");
    assert!(!told.contains("next probe at"), "{told}");
    assert!(told.contains("probed with the next demand"), "{told}");
}

#[tokio::test]
async fn a_pool_of_an_unknown_type_names_itself_the_type_and_the_fix() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.unknown_type = true;
        script.kind = "x9.huge".to_owned();
    });
    rig.cloud.script("b", |script| script.dark = true);
    rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
        .await;
    rig.cycle().await;
    let told = alarm(&rig, "unknown_type", "a").expect("an alarm");
    let view = rig.view();
    let waits = &view.request("job").expect("a request").reasons;
    let waits = waits.iter().find(|reason| reason.contains("x9.huge"));
    for text in [
        told,
        waits.expect("a reason").clone(),
        pool(&rig, "a").reasons[0].clone(),
    ] {
        assert!(text.contains("a ") && text.contains("x9.huge"), "{text}");
        assert!(text.contains("name a type that is known"), "{text}");
    }
    rig.cloud.script("a", |script| script.unknown_type = false);
    rig.pass(Millis::seconds(5)).await;
    assert_eq!(alarm(&rig, "unknown_type", "a"), None);
}

#[tokio::test]
async fn a_pool_that_cannot_be_read_says_that_first_and_once() {
    let mut rig = Rig::new(&two_pools().replace("mode = \"full\"", "mode = \"grow\"")).await;
    rig.cloud.script("a", |script| script.dark = true);
    rig.cloud.script("b", |script| script.dark = true);
    rig.ask("job", 1, GPUS).await;
    rig.pass(Millis::minutes(30)).await;
    let told = explained(&rig, "a").await;
    assert!(told[0].starts_with("cannot be read: "), "{told:#?}");
    let unread = told.iter().filter(|line| line.contains("be read: "));
    assert_eq!(unread.count(), 1, "{told:#?}");
    let view = rig.view();
    let why = &view.request("job").expect("a request").reasons[0];
    assert!(why.contains("cannot be read"), "{why}");
    let told = explained(&rig, "job").await.join("\n");
    assert!(told.contains("1 without a node"), "{told}");
}

#[tokio::test]
async fn a_pool_that_leaves_observe_is_told_what_is_open() {
    let mut rig = Rig::new(&two_pools()).await;
    let open = "AZRebalance is not suspended: AWS may end members by itself";
    rig.cloud
        .script("a", |script| script.warnings = vec![open.to_owned()]);
    rig.cycle().await;
    let told = rig.commands.open_of(&"a".into()).expect("a warning");
    assert!(
        told.contains(open) && told.contains("`drover pools doctor a`"),
        "{told}"
    );
    assert_eq!(rig.commands.open_of(&"b".into()), None);
    assert_eq!(rig.commands.open_of(&"c".into()), None);
}

#[tokio::test]
async fn a_node_that_has_just_enrolled_is_not_called_silent() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.pass(Millis::minutes(10)).await;
    rig.cloud.add("a", "i-new");
    let node = rig.join("a", "i-new").await;
    let agents = || rig.link.agents.lock().expect("lock");
    let agent = agents().remove(&node).expect("an agent");
    rig.cycle().await;
    assert!(rig.events("unreachable").await.is_empty());
    let agents = || rig.link.agents.lock().expect("lock");
    agents().insert(node.clone(), agent);
    rig.cycle().await;
    assert!(rig.events("returned").await.is_empty());
    // One that never speaks is told of after a while.
    rig.link.agents.lock().expect("lock").remove(&node);
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.events("unreachable").await.len(), 1);
}

#[tokio::test]
async fn in_observe_a_request_says_what_would_be_asked() {
    let text = two_pools().replace("mode = \"full\"", "mode = \"observe\"");
    let mut rig = Rig::new(&text).await;
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    let told = explained(&rig, "job").await.join("\n");
    assert!(
        told.contains("would ask a for 2; observe mode, `drover pools mode a grow` allows it"),
        "{told}"
    );
    assert_eq!(rig.cloud.asked(), 0);
}

/// Both are only watched, so nothing is planned for either.
#[tokio::test]
async fn a_reservation_that_two_pools_may_use_is_said_to_be_there_once() {
    let text = two_pools().replace("mode = \"full\"", "mode = \"observe\"");
    let mut rig = Rig::new(&text).await;
    let room = |id: &str, nodes| ReservedRoom {
        reservation: id.into(),
        nodes,
    };
    rig.cloud.script("a", |script| {
        script.reservations = vec![room("cr-both", 2), room("cr-own", 5)];
    });
    // Read a moment later.
    rig.cloud
        .script("b", |script| script.reservations = vec![room("cr-both", 1)]);
    rig.cycle().await;
    for (name, other) in [("a", "b"), ("b", "a")] {
        let said =
            format!("what is free of cr-both (1) is there once: it is shared with pool {other}");
        let told = explained(&rig, name).await;
        assert!(told.contains(&said), "{told:?}");
        assert!(pool(&rig, name).remarks.contains(&said));
        assert!(!told.iter().any(|line| line.contains("cr-own")), "{told:?}");
    }
    rig.cloud.script("b", |script| script.reservations.clear());
    rig.pass(Millis::seconds(10)).await;
    let told = explained(&rig, "a").await.join("\n");
    assert!(!told.contains("shared"), "{told}");
}
