//! A group that is deleted under our feet: what it had coming cannot come and goes elsewhere at once; only a positive
//! answer says so, and nothing is asked twice for what may still come.

use crate::rig::{GPUS, Rig, two_pools};
use drover::records::keys;
use drover_core::model::{FailureKind, Millis};

async fn told(rig: &Rig, name: &str) -> String {
    let told = rig.commands.explain(name).await.expect("explained");
    format!("{}\n{}", told.summary, told.lines.join("\n"))
}

/// A moment later: what was asked in the very moment in which it was looked might have come after.
async fn goes(rig: &mut Rig) {
    rig.cloud.script("a", |script| script.gone = true);
    rig.clock.advance(Millis::seconds(1));
    rig.cycle().await;
    rig.pass(Millis::seconds(40)).await;
}

fn coming(rig: &Rig, pool: &str) -> u32 {
    rig.view().pool(pool).expect("a pool").coming
}

#[tokio::test]
async fn what_a_deleted_group_had_coming_is_asked_of_another_pool_at_once() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.add("a", "i-old");
    let old = rig.join("a", "i-old").await;
    rig.work(&old, "python train.py");
    rig.cycle().await;
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    assert_eq!((rig.cloud.asked(), coming(&rig, "a")), (1, 2));

    goes(&mut rig).await;
    assert_eq!((coming(&rig, "a"), coming(&rig, "b")), (0, 2));
    assert_eq!(rig.cloud.asked(), 2, "once more, of the other pool");
    assert_eq!(rig.events("launch_lost").await.len(), 1);
    let why = "there is no group a in glass";
    for name in ["a", "job"] {
        let text = told(&rig, name).await;
        assert!(text.contains(why), "{name}: {text}");
    }
    let view = rig.view();
    let pool = view.pool("a").expect("a pool");
    assert!(pool.stopped[0].contains(why), "{pool:?}");
    assert!(pool.stopped[0].contains("by itself"), "{pool:?}");
    assert_eq!((pool.unmanaged, pool.missed), (0, 0), "{pool:?}");
    let alarms: Vec<_> = view.alarms.iter().filter(|a| a.subject == "a").collect();
    assert_eq!(alarms.len(), 1, "{alarms:?}");

    // Its node stays in the books; nobody is laid to anybody, and nothing is asked of it while it is gone.
    rig.pass(Millis::minutes(40)).await;
    assert!(rig.has_node(old.as_str()));
    assert!(rig.events("adopted").await.is_empty());
    assert!(rig.events("missed").await.is_empty());
    assert_eq!(rig.view().pool("a").expect("a pool").misses, 0);
    let of_a = |rig: &Rig| {
        let launches = rig.cloud.launches.lock().expect("lock");
        launches.iter().filter(|order| order.pool.0 == "a").count()
    };
    assert_eq!(of_a(&rig), 1);

    // It is made again: it grows by itself.
    rig.cloud.script("a", |script| script.gone = false);
    rig.cloud.script("b", |script| script.capacity = Some(0));
    rig.ask("next", 1, GPUS).await;
    rig.pass(Millis::minutes(3)).await;
    assert_eq!(of_a(&rig), 2);
}

/// What AWS lists is consistent only after a while.
#[tokio::test]
async fn i4_one_answer_without_the_group_means_nothing() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    for _ in 0..5 {
        rig.cloud.script("a", |script| script.gone = true);
        rig.pass(Millis::seconds(10)).await;
        assert!(!stopped(&rig).is_empty(), "it is said at once");
        rig.cloud.script("a", |script| script.gone = false);
        rig.pass(Millis::minutes(1)).await;
        assert!(stopped(&rig).is_empty(), "it is there");
    }
    assert_eq!((rig.cloud.asked(), coming(&rig, "a")), (1, 2));
    assert!(rig.events("launch_lost").await.is_empty());
}

#[tokio::test]
async fn a_group_that_cannot_be_read_keeps_what_it_has_coming() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    rig.cloud.script("a", |script| script.dark = true);
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(
        (rig.cloud.asked(), coming(&rig, "a")),
        (1, 2),
        "silence is not death"
    );
    assert!(rig.events("launch_lost").await.is_empty());
}

#[tokio::test]
async fn an_instance_that_turns_up_after_all_is_adopted() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    let id = rig.cloud.alive("a")[0].clone();
    goes(&mut rig).await;
    assert_eq!((coming(&rig, "a"), coming(&rig, "b")), (0, 1));
    assert_eq!(
        rig.count(keys::LAUNCH).await,
        1,
        "only that of the other pool"
    );
    rig.cloud.script("a", |script| script.gone = false);
    rig.pass(Millis::minutes(3)).await;
    let node = rig.join("a", &id).await;
    rig.pass(Millis::minutes(1)).await;
    assert!(rig.has_node(node.as_str()));
    assert!(rig.cloud.ended.lock().expect("lock").is_empty());
}

#[tokio::test]
async fn i4_after_a_restart_nothing_is_asked_twice_of_a_group_that_is_gone() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.answer_lost = true);
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    rig.cloud.script("a", |script| script.gone = true);
    rig.restart().await;
    rig.pass(Millis::minutes(3)).await;
    let of_b = {
        let launches = rig.cloud.launches.lock().expect("lock");
        launches.iter().filter(|order| order.pool.0 == "b").count()
    };
    assert_eq!(of_b, 1);
    assert_eq!((coming(&rig, "a"), coming(&rig, "b")), (0, 1));
}

fn recipe(rig: &Rig, template: &str, group: &str) {
    rig.cloud.script("a", |script| {
        script.recipe = (template.to_owned(), group.to_owned());
    });
}

fn stopped(rig: &Rig) -> Vec<String> {
    rig.view().pool("a").expect("a pool").stopped.clone()
}

#[tokio::test]
async fn a_config_stop_ends_by_itself_when_the_template_or_the_group_is_another() {
    for (template, group, says) in [
        (
            "web version 2",
            "one",
            "web version 2 now, not from web version 1",
        ),
        ("web version 1", "two", "its group was changed"),
    ] {
        let mut rig = Rig::new(&two_pools()).await;
        recipe(&rig, "web version 1", "one");
        rig.cloud.script("a", |script| {
            script.launch_fails = Some(FailureKind::Config);
        });
        rig.ask_with("job", 1, GPUS, |spec| spec.pools = vec!["a".into()])
            .await;
        rig.pass(Millis::minutes(5)).await;
        assert_eq!(rig.cloud.asked(), 1);
        assert!(stopped(&rig)[0].contains("another version of its launch template"));
        // What is not known is no change.
        recipe(&rig, "", "");
        rig.pass(Millis::seconds(10)).await;
        assert_eq!(stopped(&rig).len(), 1);
        // One try for each recipe.
        recipe(&rig, template, group);
        rig.pass(Millis::minutes(5)).await;
        assert_eq!(rig.cloud.asked(), 2);
        let clear = rig.events("pool_clear").await;
        assert_eq!(clear.len(), 1);
        assert!(clear[0].message.contains(says), "{}", clear[0].message);
        recipe(&rig, "web version 3", group);
        rig.cloud.script("a", |script| script.launch_fails = None);
        rig.pass(Millis::seconds(10)).await;
        assert_eq!(rig.cloud.alive("a").len(), 1);
        assert!(stopped(&rig).is_empty());
    }
}

#[tokio::test]
async fn three_misses_are_forgiven_only_to_another_template() {
    let mut rig = Rig::new(&two_pools()).await;
    recipe(&rig, "web version 1", "one");
    rig.ask_with("job", 1, GPUS, |spec| {
        spec.pools = vec!["a".into()];
        spec.duration = None;
    })
    .await;
    rig.pass(Millis::minutes(60)).await;
    let asked = rig.cloud.asked();
    assert_eq!(asked, 3);
    recipe(&rig, "web version 1", "two");
    rig.pass(Millis::minutes(5)).await;
    assert_eq!((rig.cloud.asked(), stopped(&rig).len()), (3, 1));
    recipe(&rig, "web version 2", "two");
    rig.pass(Millis::seconds(10)).await;
    assert_eq!((rig.cloud.asked(), stopped(&rig).len()), (4, 0));
}
