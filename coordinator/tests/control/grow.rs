//! Growing: asked once, joined, assigned, served; shortage, fail-over, misses.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::view::UnitState;
use drover::ports::actuate::{InstanceState, NO_CREDENTIALS, NOT_ASKED};
use drover_core::model::{Bytes, FailureKind, Millis, NodeId};
use drover_proto::v1;
use std::sync::Arc;

#[tokio::test]
async fn a_token_without_a_pool_joins_by_instance_and_a_stranger_is_supply_that_nobody_touches() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let ids = rig.cloud.alive("a");
    let node = rig.join("", &ids[0]).await;
    rig.cycle().await;
    assert_eq!(rig.node(node.as_str()).pool, Some("a".into()));
    assert_eq!(
        rig.shown("job"),
        "served",
        "the launch's assignment became its node's"
    );
    // A host of no provider: shown, used for demand, never ordered or drained for idleness.
    let stranger = rig.join("", "nobody-knows-it").await;
    rig.cycle().await;
    let shown = rig.node(stranger.as_str());
    assert!(shown.pool.is_none() && shown.foreign, "{shown:?}");
    rig.ask("second", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.shown("second"), "served");
    assert_eq!(rig.cloud.alive("a").len(), 1, "nothing was bought for it");
    rig.commands
        .cancel_request("admin/ada", "second")
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(60)).await;
    assert!(rig.has_node(stranger.as_str()));
    assert_eq!(rig.count(&format!("/order/{stranger}")).await, 0);
}

#[tokio::test]
async fn the_whole_story_of_a_request() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(3);
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 3);
    assert_eq!(rig.shown("job"), "pending");
    let view = rig.view();
    let request = view.request("job").expect("there");
    assert_eq!(
        (
            request.units_ready,
            request.units_coming,
            request.units_missing
        ),
        (0, 3, 0)
    );
    // Coming ones are counted once.
    rig.pass(Millis::seconds(30)).await;
    assert_eq!(rig.cloud.alive("a").len(), 3);

    let ids = rig.cloud.alive("a");
    rig.join("a", &ids[0]).await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "partial");
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    let view = rig.view();
    let request = view.request("job").expect("there");
    assert!(
        request
            .assignments
            .iter()
            .all(|found| found.state == UnitState::Ready && found.units == 1)
    );
    assert_eq!(
        rig.count("/launch/").await,
        0,
        "every node of the launch has joined"
    );
    assert_eq!(rig.events("joined").await.len(), 3);
    assert_eq!(rig.events("served").await.len(), 1);

    // Held is not idle: nobody goes before the request ends.
    rig.pass(Millis::minutes(29)).await;
    assert_eq!(rig.cloud.alive("a").len(), 3);
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.shown("job"), "ended");
    assert_eq!(rig.cloud.alive("a").len(), 3, "idle only now");
    rig.pass(Millis::minutes(12)).await;
    assert_eq!(rig.cloud.alive("a"), Vec::<String>::new());
    for space in ["/node/", "/order/", "/drain/", "/idle/", "/launch/"] {
        assert_eq!(rig.count(space).await, 0, "{space} is empty again");
    }
    assert_eq!(rig.cloud.ended.lock().expect("lock").len(), 3);
    assert_eq!(
        rig.view()
            .nodes
            .iter()
            .filter(|node| node.joined.is_some())
            .count(),
        0
    );
}

#[tokio::test]
async fn sc_03_a_shortage_fails_over_at_once() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.capacity = Some(2));
    rig.ask("job", 5, GPUS).await;
    rig.cycle().await;
    assert_eq!(
        (rig.cloud.alive("a").len(), rig.cloud.alive("b").len()),
        (2, 3)
    );
    let failover = rig.events("failover").await;
    assert_eq!(failover.len(), 1);
    assert!(
        failover[0].message.contains("a/p2/a/on-demand"),
        "{}",
        failover[0].message
    );
    let view = rig.view();
    let memory = view.pool("a").expect("a").offerings[0]
        .1
        .clone()
        .expect("remembered");
    assert_eq!(memory.kind, FailureKind::Shortage);
    // Not asked again before the probe is due.
    let before = rig.cloud.asked();
    rig.ask("more", 1, GPUS).await;
    rig.pass(Millis::seconds(30)).await;
    let asked: Vec<String> = rig.cloud.launches.lock().expect("lock")[before..]
        .iter()
        .map(|order| order.pool.0.clone())
        .collect();
    assert_eq!(asked, ["b"]);
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!((rig.shown("job"), rig.shown("more")), ("served", "served"));
}

#[tokio::test]
async fn sc_30_an_unknown_outcome_is_settled_with_the_same_token() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.answer_lost = true);
    rig.ask("job", 4, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 4);
    rig.pass(Millis::seconds(60)).await;
    assert_eq!(
        rig.cloud.alive("a").len(),
        4,
        "asked again with the same token only"
    );
    assert_eq!(rig.cloud.alive("b").len(), 0, "the four are coming");
    rig.cloud.script("a", |script| script.answer_lost = false);
    rig.pass(Millis::seconds(10)).await;
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(rig.cloud.alive("a").len(), 4);
}

#[tokio::test]
async fn sc_09_misses_drop_assignments_and_three_stop_the_pool() {
    let text = two_pools().replace("name = \"b\"", "name = \"z\"").replace(
        "group = \"b\"\nmode = \"full\"",
        "group = \"b\"\nmode = \"observe\"",
    );
    let mut rig = Rig::new(&text).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    for misses in 1..=3 {
        rig.pass(Millis::minutes(15)).await;
        rig.pass(Millis::seconds(10)).await;
        assert_eq!(rig.events("launch_missed").await.len(), misses);
    }
    let asked = rig.cloud.asked();
    assert_eq!(asked, 3);
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(
        rig.cloud.asked(),
        3,
        "never a fourth before a success or a person"
    );
    assert!(
        rig.view()
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "pool_stopped")
    );
    // A late one is adopted, used, and clears the misses.
    let ids = rig.cloud.alive("a");
    rig.join("a", &ids[0]).await;
    rig.cycle().await;
    assert_eq!(rig.view().pool("a").expect("a").misses, 0);
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
}

#[tokio::test]
async fn sc_83_what_never_joined_is_reaped_bounded_and_only_what_we_launched() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.add("a", "i-theirs");
    rig.ask("job", 10, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 11);
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    rig.pass(Millis::minutes(29)).await;
    assert_eq!(rig.cloud.alive("a").len(), 11);
    assert_eq!(
        rig.view().pool("a").expect("a").misses,
        1,
        "one launch, however many nodes"
    );
    rig.pass(Millis::minutes(2)).await;
    assert_eq!(rig.cloud.alive("a").len(), 10, "one in twenty of a pool");
    let view = rig.view();
    assert_eq!(view.approvals.len(), 1, "the rest waits for a person");
    let id = view.approvals[0].id.clone();
    rig.commands
        .approve("admin/ada", &id)
        .await
        .expect("approved");
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.cloud.alive("a"), ["i-theirs"]);
}

#[tokio::test]
async fn a_config_failure_stops_the_pool_until_a_person_resumes_it() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.launch_fails = Some(FailureKind::Config)
    });
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("b").len(), 1, "the other pool serves it");
    rig.ask("more", 1, GPUS).await;
    rig.pass(Millis::minutes(5)).await;
    let asked = rig
        .cloud
        .launches
        .lock()
        .expect("lock")
        .iter()
        .filter(|order| order.pool.0 == "a")
        .count();
    assert_eq!(asked, 1);
    rig.commands
        .resume_pool("admin/ada", "a")
        .await
        .expect("resumed");
    rig.cloud.script("a", |script| script.launch_fails = None);
    rig.ask("third", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 1);
}

#[tokio::test]
async fn a_gang_is_all_or_nothing_and_what_is_impossible_says_so() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask_with("gang", 4, GPUS, |spec| spec.gang_min = Some(4))
        .await;
    rig.ask_with("never", 1, 1, |spec| spec.gpu_model = "h100".into())
        .await;
    rig.ask("huge", 1, 64).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len() + rig.cloud.alive("b").len(), 4);
    assert_eq!(rig.shown("never"), "impossible");
    assert_eq!(rig.shown("huge"), "impossible");
    let view = rig.view();
    assert!(!view.request("never").expect("there").reasons.is_empty());
    assert_eq!(rig.events("impossible").await.len(), 2);
    rig.boot_all().await;
    rig.cycle().await;
    assert_eq!(rig.shown("gang"), "served");
    rig.pass(Millis::seconds(60)).await;
    assert_eq!(rig.events("impossible").await.len(), 2, "told once");
}

#[tokio::test]
async fn sc_08_gpus_that_never_come_make_a_node_faulty_after_the_deadline() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let id = rig.cloud.alive("a")[0].clone();
    rig.join_with("a", &id, GPUS - 1, |_| {}).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1, "waits for the GPU");
    assert_eq!(rig.node(&id).faulty, None);
    rig.pass(Millis::minutes(15)).await;
    assert!(rig.events("faulty").await.is_empty());
    rig.pass(Millis::minutes(1)).await;
    let told = &rig.events("faulty").await[0].message;
    assert!(told.ends_with("is faulty: 15 of 16 GPUs"), "{told}");
    assert_eq!(rig.cloud.asked(), 2, "another is asked for");
}

/// The instances of a warm pool are known and are no nodes: no supply, never late, nobody's stranger.
#[tokio::test]
async fn instances_of_a_warm_pool_are_no_nodes_and_never_join_late() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.add("a", "i-warm");
    {
        let mut machines = rig.cloud.machines.lock().expect("lock");
        machines.get_mut("i-warm").expect("there").state = InstanceState::Warm;
    }
    rig.pass(Millis::minutes(60)).await;
    assert!(!rig.has_node("instance/i-warm") && !rig.has_node("i-warm"));
    assert!(rig.events("missed").await.is_empty());
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1, "it is no supply");
    // It is taken into service: a node like any other, whoever started it.
    {
        let mut machines = rig.cloud.machines.lock().expect("lock");
        machines.get_mut("i-warm").expect("there").state = InstanceState::Running;
    }
    let node = rig.join("a", "i-warm").await;
    rig.cycle().await;
    assert!(rig.has_node(node.as_str()));
}

#[tokio::test]
async fn sc_35_throttled_asks_go_elsewhere_at_once_and_teach_nothing_about_capacity() {
    turned_away(FailureKind::Throttle, NOT_ASKED, "throttles").await;
}

/// Credentials say as little about a pool as a throttle does.
#[tokio::test]
async fn asks_without_credentials_go_elsewhere_at_once_and_stop_no_pool() {
    turned_away(FailureKind::Transient, NO_CREDENTIALS, "glass: Transient").await;
}

async fn turned_away(kind: FailureKind, code: &'static str, told: &str) {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.turned_away = Some((kind, code));
    });
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("b").len(), 2, "the other pool serves it");
    assert!(rig.view().pool("a").expect("a").offerings[0].1.is_none());
    // Asked ever less often, whatever is demanded.
    let of_a = |rig: &Rig| {
        let launches = rig.cloud.launches.lock().expect("lock");
        launches.iter().filter(|order| order.pool.0 == "a").count()
    };
    for n in 0..20 {
        rig.ask(&format!("more-{n}"), 1, GPUS).await;
        rig.pass(Millis::seconds(30)).await;
    }
    let asked = of_a(&rig);
    assert!((3..=10).contains(&asked), "{asked} asks in ten minutes");
    let said = rig.commands.explain("a").await.expect("explained");
    let text = format!("{} {}", said.summary, said.lines.join(" "));
    assert!(text.contains(told), "{text}");
    rig.cloud.script("a", |script| script.turned_away = None);
    rig.pass(Millis::minutes(3)).await;
    rig.ask("last", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.alive("a").len(), 1, "asked again by itself");
}

#[tokio::test]
async fn units_on_a_launch_are_told_together() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    let said = rig.commands.explain("job").await.expect("explained");
    let launch = rig.view().pool("a").expect("a").launches[0].id.clone();
    let of_it: Vec<&String> = said
        .lines
        .iter()
        .filter(|line| line.contains(&format!(" on {launch}")))
        .collect();
    assert_eq!(
        of_it,
        [&format!(
            "3 units on {launch}, which is asked for, has not joined"
        )]
    );
}

/// A node of a pool that is not what its template promises.
async fn boot_as(rig: &Rig, pool: &str, model: &str, gib: u64) {
    for id in rig.cloud.alive(pool) {
        let node = NodeId(format!("n-{id}"));
        let known = rig.link.agents.lock().expect("lock").contains_key(&node);
        if !known {
            rig.join_with(pool, &id, GPUS, |view| {
                let facts = Arc::make_mut(&mut view.facts);
                facts.memory_bytes = Some(gib << 30);
                for gpu in &mut facts.gpus {
                    gpu.name = model.to_owned();
                }
            })
            .await;
        }
    }
}

fn alarm(rig: &Rig, kind: &str) -> Option<String> {
    let view = rig.view();
    let found = view.alarms.iter().find(|alarm| alarm.kind == kind);
    found.map(|alarm| alarm.message.clone())
}

#[tokio::test]
async fn what_joins_with_another_gpu_than_asked_serves_nobody_and_is_not_asked_for_again() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(4);
    rig.cloud.script("a", |script| {
        script.promises = "a10g".to_owned();
        script.recipe = ("lt-1:1".to_owned(), "g".to_owned());
    });
    rig.ask_with("job", 2, GPUS, |spec| spec.gpu_model = "A10G".into())
        .await;
    rig.cycle().await;
    assert_eq!((rig.cloud.asked(), rig.cloud.alive("a").len()), (1, 2));
    boot_as(&rig, "a", "Tesla K80", 732).await;
    rig.cycle().await;
    let lost = rig.events("lost").await;
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert_eq!(
        lost[0].message,
        "1 unit waits again: host-i-0001 has Tesla K80, the request asks for A10G"
    );
    assert_eq!(rig.shown("job"), "impossible");
    let told = alarm(&rig, "template_mismatch").expect("an alarm");
    assert!(
        told.starts_with("host-i-0001 has Tesla K80 where p2 should have a10g; "),
        "{told}"
    );
    assert_eq!(
        rig.events("template_mismatch").await.len(),
        1,
        "once a pool"
    );
    let view = rig.view();
    let reasons = view.request("job").expect("there").reasons.join(" ");
    assert!(reasons.contains("should have a10g"), "{reasons}");
    // What has no wish is served by them, and nothing goes round in a circle, after a restart neither.
    rig.ask("any", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.shown("any"), "served");
    rig.pass(Millis::minutes(20)).await;
    rig.restart().await;
    rig.pass(Millis::minutes(20)).await;
    assert_eq!(rig.cloud.asked(), 1, "one launch");
    assert!(alarm(&rig, "template_mismatch").is_some());
    // Another version of the template: it is asked again, and is what it should be.
    rig.cloud
        .script("a", |script| script.recipe.0 = "lt-1:2".to_owned());
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.cloud.asked(), 2);
    assert_eq!(alarm(&rig, "template_mismatch"), None);
    boot_as(&rig, "a", "NVIDIA A10G", 732).await;
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(rig.cloud.asked(), 2);
    assert_eq!(rig.events("lost").await.len(), 2);
}

/// A driver says more than a catalogue, and GPUs that are not there yet are no other GPUs.
#[tokio::test]
async fn a_node_that_has_not_told_its_gpus_or_names_them_longer_is_no_mismatch() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud
        .script("a", |script| script.promises = "a10g".to_owned());
    rig.ask_with("job", 1, GPUS, |spec| spec.gpu_model = "a10g".into())
        .await;
    rig.cycle().await;
    let id = rig.cloud.alive("a")[0].clone();
    let node = rig.join_with("a", &id, 0, |_| {}).await;
    rig.pass(Millis::seconds(30)).await;
    assert!(rig.events("lost").await.is_empty());
    rig.agent(&node, |agent| {
        let gpu = |index| v1::GpuFacts {
            uuid: format!("GPU-{index}"),
            name: "NVIDIA A10G".into(),
            index,
            ..v1::GpuFacts::default()
        };
        Arc::make_mut(&mut agent.view.facts).gpus = (0..GPUS).map(gpu).collect();
    });
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    assert_eq!(alarm(&rig, "template_mismatch"), None);
    assert_eq!(rig.cloud.asked(), 1);
}

#[tokio::test]
async fn what_joins_with_less_memory_than_asked_is_planned_with_what_it_has() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.bystanders(4);
    rig.ask_with("big", 1, GPUS, |spec| {
        spec.unit.memory = Bytes(600 << 30);
        spec.pools = vec!["a".into()];
    })
    .await;
    rig.cycle().await;
    boot_as(&rig, "a", "Tesla K80", 500).await;
    rig.cycle().await;
    let lost = rig.events("lost").await;
    assert_eq!(
        lost[0].message,
        "1 unit waits again: host-i-0001 has 500.0 GiB of memory, the request asks for 600.0 GiB there"
    );
    rig.pass(Millis::minutes(20)).await;
    assert_eq!(rig.cloud.asked(), 1, "one launch");
    let told = alarm(&rig, "template_mismatch").expect("an alarm");
    assert!(told.contains("500.0 GiB of memory, less than"), "{told}");
    // A person says that it is mended.
    rig.commands
        .resume_pool("admin/ada", "a")
        .await
        .expect("resumed");
    rig.pass(Millis::minutes(1)).await;
    assert_eq!(rig.cloud.asked(), 2);
    boot_as(&rig, "a", "Tesla K80", 732).await;
    rig.cycle().await;
    assert_eq!(rig.shown("big"), "served");
    assert_eq!(alarm(&rig, "template_mismatch"), None);
}
