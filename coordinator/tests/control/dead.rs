//! What dies, stays silent or may not leave: refusals before and after the cordon, members that run no more, slow boots.

use crate::rig::{GPUS, Rig, two_pools};
use drover::ports::actuate::InstanceState;
use drover_core::model::{FailureKind, Lifecycle, Millis, NodeId};

async fn idle_nodes(rig: &mut Rig, ids: &[&str]) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for id in ids {
        rig.cloud.add("a", id);
        nodes.push(rig.join("a", id).await);
    }
    rig.cycle().await;
    nodes
}

#[tokio::test]
async fn sc_22_look_before_the_cordon() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.least = Some(2);
        script.no_removal = Some("Terminate is suspended in the group: audit".to_owned());
    });
    idle_nodes(&mut rig, &["i-1", "i-2"]).await;
    rig.pass(Millis::minutes(60)).await;
    assert!(rig.events("drain_started").await.is_empty(), "no cordon");
    assert!(
        rig.node("i-1").reason.contains("at minimum"),
        "{}",
        rig.node("i-1").reason
    );
    rig.cloud.script("a", |script| script.least = Some(0));
    rig.pass(Millis::minutes(1)).await;
    assert!(rig.events("drain_started").await.is_empty(), "no cordon");
    let reason = rig.node("i-1").reason;
    assert!(reason.contains("Terminate is suspended"), "{reason}");
    // Resumed: one goes, the minimum holds the other before its cordon.
    rig.cloud.script("a", |script| {
        script.least = Some(1);
        script.no_removal = None;
    });
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(rig.events("drain_started").await.len(), 1);
    assert_eq!(rig.cloud.alive("a").len(), 1);
}

#[tokio::test]
async fn sc_22_a_refusal_after_the_drain_rolls_it_back_and_is_tried_later() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(3);
    rig.cloud
        .script("a", |script| script.leave_fails = Some(FailureKind::Quota));
    idle_nodes(&mut rig, &["i-1"]).await;
    rig.pass(Millis::minutes(11)).await;
    let node = rig.node("i-1");
    assert_eq!(
        (node.lifecycle, node.cordon.is_some()),
        (Lifecycle::Ready, false)
    );
    assert!(
        node.reason.contains("refused to end an instance"),
        "{}",
        node.reason
    );
    assert_eq!(rig.events("leave_failed").await.len(), 1);
    rig.pass(Millis::minutes(8)).await;
    assert_eq!(
        rig.events("drain_started").await.len(),
        1,
        "not again and again"
    );
    // Growth goes on meanwhile.
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 2);
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.cloud.script("a", |script| script.leave_fails = None);
    rig.pass(Millis::minutes(15)).await;
    assert!(
        !rig.cloud.alive("a").contains(&"i-1".to_owned()),
        "it went later"
    );
}

#[tokio::test]
async fn dead_members_go_off_the_books_in_full_and_their_records_with_them() {
    let text = two_pools().replacen("mode = \"full\"", "mode = \"grow\"", 1);
    let mut rig = Rig::new(&text).await;
    let nodes = idle_nodes(&mut rig, &["i-ended", "i-stopped", "i-heard"]).await;
    for node in &nodes[..2] {
        rig.agent(node, |agent| agent.silent = true);
    }
    rig.work(&nodes[2], "python train.py");
    if let Some(machine) = rig.cloud.machines.lock().expect("lock").get_mut("i-ended") {
        machine.state = InstanceState::Gone;
    }
    rig.cloud.script("a", |script| {
        script.dead = vec![
            ("i-ended".to_owned(), false, None),
            ("i-stopped".to_owned(), true, None),
            // Its agent speaks: whatever the provider says, it lives.
            ("i-heard".to_owned(), false, None),
        ];
    });
    rig.pass(Millis::minutes(20)).await;
    let buried = |rig: &Rig| rig.cloud.buried.lock().expect("lock").clone();
    assert!(buried(&rig).is_empty(), "mode grow removes nothing");
    assert!(!rig.has_node("n-i-ended"), "no record without its instance");
    rig.commands
        .set_pool_mode("admin/ada", "a", drover_core::model::Mode::Full, "now")
        .await
        .expect("full");
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(
        buried(&rig),
        ["i-ended"],
        "what is only stopped may be started again"
    );
    assert!(rig.has_node("n-i-heard"));
    assert_eq!(rig.events("buried").await.len(), 1);
    assert_eq!(rig.cloud.asked(), 0, "nobody replaces them");
}

#[tokio::test]
async fn a_dead_member_that_the_group_holds_is_told_and_tried_ever_less_often() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.dead = vec![("i-1".to_owned(), false, None)];
        script.leave_fails = Some(FailureKind::Quota);
    });
    rig.pass(Millis::minutes(60)).await;
    let times = rig.cloud.buried.lock().expect("lock").len();
    assert!((5..=7).contains(&times), "{times} calls in an hour");
    let told = rig.view().pool("a").expect("a").reasons.join("; ");
    assert!(told.contains("1 member does not run any more"), "{told}");
}

#[tokio::test]
async fn sc_09_metal_boots_slowly_and_is_waited_for() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud
        .script("a", |script| script.kind = "g4dn.metal".to_owned());
    rig.ask("job", 1, GPUS).await;
    rig.pass(Millis::minutes(22)).await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(
        (rig.cloud.asked(), rig.view().pool("a").expect("a").misses),
        (1, 0)
    );
}

#[tokio::test]
async fn sc_09_a_deadline_that_is_too_short_is_told() {
    let text = two_pools()
        .replacen("max = 200", "max = 200\nprovision_deadline = \"10m\"", 1)
        .replace(
            "name = \"b\"\nkind",
            "name = \"b\"\nlabels = { x = \"y\" }\nkind",
        )
        .replace(
            "group = \"b\"\nmode = \"full\"",
            "group = \"b\"\nmode = \"observe\"",
        );
    let mut rig = Rig::new(&text).await;
    rig.cloud
        .script("a", |script| script.kind = "g4dn.metal".to_owned());
    rig.ask("job", 1, GPUS).await;
    rig.pass(Millis::seconds(21 * 60)).await;
    assert_eq!(rig.cloud.asked(), 3, "replacements at 10 and 20 minutes");
    assert_eq!(rig.view().pool("a").expect("a").misses, 2);
    rig.pass(Millis::minutes(1)).await;
    let first = rig.cloud.alive("a")[0].clone();
    rig.join("a", &first).await;
    rig.cycle().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    let view = rig.view();
    let pool = view.pool("a").expect("a");
    assert_eq!(
        pool.misses, 0,
        "the late one is adopted and clears the misses"
    );
    let told = pool.reasons.join("; ");
    assert!(told.contains("provision_deadline is too short"), "{told}");
    // The other late ones are adopted and leave when idle.
    rig.bystanders(8);
    rig.boot_all().await;
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.view().pool("a").expect("a").nodes, 3);
    rig.pass(Millis::minutes(12)).await;
    assert_eq!(rig.cloud.alive("a"), [first], "only the one in use stays");
}

#[tokio::test]
async fn i11_launches_that_end_by_themselves_stop_the_pool_as_well() {
    let text = two_pools().replace("name = \"b\"", "name = \"z\"").replace(
        "group = \"b\"\nmode = \"full\"",
        "group = \"b\"\nmode = \"observe\"",
    );
    let mut rig = Rig::new(&text).await;
    rig.ask("job", 1, GPUS).await;
    for _ in 0..5 {
        rig.pass(Millis::minutes(1)).await;
        let alive = rig.cloud.alive("a");
        for id in &alive {
            let mut machines = rig.cloud.machines.lock().expect("lock");
            machines.get_mut(id).expect("it").state = InstanceState::Gone;
        }
        rig.cloud.script("a", |script| {
            script.dead = alive.iter().map(|id| (id.clone(), false, None)).collect();
        });
    }
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(
        rig.cloud.asked(),
        3,
        "never a fourth before a person or a success"
    );
    let view = rig.view();
    assert!(
        view.alarms.iter().any(|alarm| alarm.kind == "pool_stopped"),
        "{:?}",
        view.alarms
    );
}

#[tokio::test]
async fn silent_and_empty_for_half_an_hour_is_told_with_its_cost() {
    let mut rig = Rig::new(&two_pools()).await;
    let nodes = idle_nodes(&mut rig, &["i-1", "i-2", "i-3"]).await;
    rig.agent(&nodes[0], |agent| agent.silent = true);
    rig.agent(&nodes[1], |agent| agent.silent = true);
    rig.work(&nodes[2], "python train.py");
    rig.pass(Millis::minutes(29)).await;
    let alarm = |rig: &Rig| {
        let view = rig.view();
        let found = view
            .alarms
            .iter()
            .find(|alarm| alarm.kind == "silent_and_empty");
        found.map(|alarm| alarm.message.clone())
    };
    assert_eq!(alarm(&rig), None);
    rig.pass(Millis::minutes(3)).await;
    let told = alarm(&rig).expect("an alarm");
    assert!(
        told.starts_with("2 machines are silent") && told.ends_with("cost 28.80 USD/h"),
        "{told}"
    );
    assert_eq!(rig.events("silent_and_empty").await.len(), 1, "once");
    assert!(rig.view().pool("a").expect("a").reasons.contains(&told));
    assert_eq!(rig.cloud.alive("a").len(), 3, "silence is not death");
    rig.agent(&nodes[0], |agent| agent.silent = false);
    rig.agent(&nodes[1], |agent| agent.silent = false);
    rig.cycle().await;
    assert_eq!(alarm(&rig), None);
}
