//! Capacity that is asked for without being told ids: whose the instances are that appear, and what is remembered when the
//! way of asking changes.

use super::rig::{GPUS, Rig, offering, two_pools, whole};
use drover::records::keys;
use drover_core::model::{FailureKind, Millis, Stop};

/// Pool `a` by a raised capacity, and nobody else to be asked.
async fn alone() -> Rig {
    let text = two_pools().replace(
        "group = \"b\"\nmode = \"full\"",
        "group = \"b\"\nmode = \"observe\"",
    );
    let rig = Rig::new(&text).await;
    rig.cloud.script("a", |script| script.nameless = true);
    rig
}

/// What is in the store of launches.
async fn launches(rig: &Rig) -> usize {
    rig.count(keys::LAUNCH).await
}

#[tokio::test]
async fn sc_83_what_a_raised_capacity_brought_misses_is_reaped_and_stops_after_three() {
    let mut rig = alone().await;
    rig.cloud.add("a", "i-old");
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    rig.cycle().await;
    let ours: Vec<String> = rig.cloud.alive("a");
    let ours: Vec<&String> = ours.iter().filter(|id| *id != "i-old").collect();
    assert_eq!(ours.len(), 3);
    for id in &ours {
        assert_eq!(
            rig.node(id).reason,
            "launched, its agent has not enrolled",
            "{id}"
        );
    }
    let adopted = |rig: &Rig| rig.view().pool("a").expect("a").unmanaged;
    assert_eq!(adopted(&rig), 1, "the one that was there");
    for misses in 1..=3 {
        rig.pass(Millis::minutes(15)).await;
        rig.pass(Millis::seconds(10)).await;
        assert_eq!(rig.events("launch_missed").await.len(), misses);
    }
    assert!(rig.events("launch_failed").await.is_empty());
    rig.pass(Millis::minutes(20)).await;
    assert_eq!(rig.cloud.asked(), 3, "three misses stop it");
    let view = rig.view();
    assert!(view.alarms.iter().any(|alarm| alarm.kind == "pool_stopped"));
    let told = rig.events("adopted").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(!rig.cloud.ended.lock().expect("lock").is_empty());
    // The rest waits for a person.
    let wanted: Vec<String> = rig.view().approvals.iter().map(|a| a.id.clone()).collect();
    assert!(!wanted.is_empty());
    for _ in 0..20 {
        for asked in rig.view().approvals.clone() {
            let _known = rig.commands.approve("admin/ada", &asked.id).await;
        }
        rig.pass(Millis::minutes(1)).await;
    }
    assert_eq!(rig.cloud.alive("a"), ["i-old"]);
    assert_eq!(launches(&rig).await, 0);
}

#[tokio::test]
async fn what_a_raised_capacity_brings_late_has_its_own_time_before_it_is_reaped() {
    let mut rig = alone().await;
    rig.cloud.script("a", |script| {
        script.capacity = Some(1);
        script.nameless = true;
    });
    rig.ask("job", 1, GPUS).await;
    rig.cloud.script("a", |script| script.hides = true);
    rig.cycle().await;
    let id = rig.cloud.alive("a").remove(0);
    // It was started only after 14 minutes of the 15.
    rig.pass(Millis::minutes(14)).await;
    let now = rig.now();
    rig.cloud
        .machines
        .lock()
        .expect("lock")
        .get_mut(&id)
        .expect("it")
        .launched = now;
    rig.cloud.script("a", |script| script.hides = false);
    rig.pass(Millis::seconds(20)).await;
    assert_eq!(rig.node(&id).reason, "launched, its agent has not enrolled");
    rig.pass(Millis::minutes(20)).await;
    assert_eq!(rig.events("launch_missed").await.len(), 1);
    assert!(rig.cloud.leaves.lock().expect("lock").is_empty());
    rig.pass(Millis::minutes(11)).await;
    assert_eq!(*rig.cloud.leaves.lock().expect("lock"), [id]);
}

#[tokio::test]
async fn i5_mine_only_where_somebody_else_raised_it_as_well_nothing_is_claimed() {
    let mut rig = alone().await;
    rig.ask("job", 3, GPUS).await;
    rig.cloud.script("a", |script| script.hides = true);
    rig.cycle().await;
    rig.commands
        .cancel_request("admin/ada", "job")
        .await
        .expect("cancelled");
    // Three of four are there, and it is anybody's guess which one is still to come.
    rig.cloud.script("a", |script| {
        script.hides = false;
        script.unfilled = 1;
    });
    rig.pass(Millis::seconds(20)).await;
    rig.cloud.script("a", |script| script.unfilled = 0);
    rig.cloud.add_now("a", "i-theirs");
    let ours = rig.cloud.alive("a");
    assert_eq!(ours.len(), 4);
    rig.pass(Millis::minutes(16)).await;
    assert!(
        rig.events("launch_failed").await.is_empty(),
        "as many came as were granted: no shortage"
    );
    assert_eq!(rig.events("launch_missed").await.len(), 1);
    assert_eq!(rig.view().pool("a").expect("a").misses, 1);
    assert_eq!(rig.events("adopted").await.len(), 4);
    rig.pass(Millis::minutes(60)).await;
    assert!(
        rig.cloud.leaves.lock().expect("lock").is_empty(),
        "never reaped"
    );
    assert!(rig.view().approvals.is_empty(), "nor is anybody asked to");
    // One that joins after all clears the misses.
    rig.join("a", &ours[0]).await;
    rig.cycle().await;
    assert_eq!(rig.view().pool("a").expect("a").misses, 0);
}

#[tokio::test]
async fn i5_mine_only_a_member_from_just_before_the_ask_is_not_its_own() {
    let mut rig = alone().await;
    rig.cloud.add_now("a", "i-0000");
    rig.pass(Millis::seconds(20)).await;
    rig.ask("job", 2, GPUS).await;
    rig.cycle().await;
    rig.cycle().await;
    let theirs = rig.node("i-0000").reason;
    assert!(theirs.contains("never touched"), "{theirs}");
    for id in rig.cloud.alive("a").iter().filter(|id| *id != "i-0000") {
        assert_eq!(rig.node(id).reason, "launched, its agent has not enrolled");
    }
    rig.pass(Millis::minutes(100)).await;
    assert!(rig.cloud.alive("a").contains(&"i-0000".to_owned()));
}

#[tokio::test]
async fn one_that_joins_after_the_deadline_is_the_launchs_and_clears_its_miss() {
    let mut rig = alone().await;
    rig.ask("job", 1, GPUS).await;
    rig.cycle().await;
    rig.pass(Millis::minutes(16)).await;
    assert_eq!(rig.view().pool("a").expect("a").misses, 1);
    let id = rig.cloud.alive("a").remove(0);
    rig.join("a", &id).await;
    rig.cycle().await;
    assert_eq!(rig.view().pool("a").expect("a").misses, 0);
    rig.cycle().await;
    assert_eq!(rig.shown("job"), "served");
    rig.pass(Millis::minutes(30)).await;
    assert!(rig.cloud.alive("a").contains(&id), "it has work");
}

#[tokio::test]
async fn a_shortage_is_remembered_when_the_way_of_asking_changes() {
    let mut rig = alone().await;
    rig.cloud.script("a", |script| script.hides = true);
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    assert_eq!(
        rig.cloud.launches.lock().expect("lock")[0].offering,
        offering("a")
    );
    rig.cloud.script("a", |script| script.whole = true);
    rig.pass(Millis::minutes(15)).await;
    rig.pass(Millis::seconds(10)).await;
    let failed = rig.events("launch_failed").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(rig.cloud.asked(), 1, "past no back-off");
    assert!(rig.events("failover").await.is_empty());
    // Back to its zones: the same.
    rig.cloud.script("a", |script| script.whole = false);
    rig.pass(Millis::seconds(20)).await;
    assert_eq!(rig.cloud.asked(), 1);
    rig.pass(Millis::minutes(2)).await;
    let asks: Vec<(String, u32)> = {
        let launches = rig.cloud.launches.lock().expect("lock");
        let all = launches.iter();
        all.map(|order| (order.offering.0.clone(), order.count))
            .collect()
    };
    assert_eq!(asks[1..], [(offering("a").0, 1)], "a probe of one");
    assert_ne!(offering("a"), whole("a"));
}

#[tokio::test]
async fn a_failover_is_told_of_the_pool_that_had_none() {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| script.capacity = Some(1));
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    let told = rig.commands.events(0, "a", usize::MAX).await;
    let told: Vec<_> = told.iter().filter(|e| e.what == "failover").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].kind, "pool");
    assert!(told[0].message.starts_with("2 go to b/"), "{told:?}");
}

/// Pool `a` by a size, which brings one of three.
async fn one_of_three() -> Rig {
    let mut rig = Rig::new(&two_pools()).await;
    rig.cloud.script("a", |script| {
        script.sized = true;
        script.capacity = Some(1);
    });
    rig.ask("job", 3, GPUS).await;
    rig.cycle().await;
    rig.cycle().await;
    assert_eq!(rig.cloud.asked(), 1);
    rig
}

/// How many were asked of each pool, in order.
fn asks(rig: &Rig) -> Vec<(String, u32)> {
    let launches = rig.cloud.launches.lock().expect("lock");
    let all = launches.iter();
    all.map(|order| (order.pool.0.clone(), order.count))
        .collect()
}

#[tokio::test]
async fn what_a_size_brought_only_in_part_teaches_a_shortage_and_no_fault_of_the_template() {
    let mut rig = one_of_three().await;
    let id = rig.cloud.alive("a").remove(0);
    rig.join("a", &id).await;
    rig.pass(Millis::minutes(14)).await;
    assert!(
        rig.events("launch_failed").await.is_empty(),
        "still waited for"
    );
    rig.pass(Millis::minutes(1)).await;
    rig.pass(Millis::seconds(10)).await;
    let failed = rig.events("launch_failed").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    let told = &failed[0].message;
    assert!(
        told.contains("shortage (accepted, but only 1 of 3 appeared)"),
        "{told}"
    );
    assert!(failed[0].launch.is_some());
    let pool = rig.view().pool("a").expect("a").clone();
    assert_eq!(pool.misses, 0, "one of it joined");
    assert!(pool.offerings[0].1.is_some(), "remembered: {pool:?}");
    assert_eq!(
        asks(&rig),
        [("a".to_owned(), 3), ("b".to_owned(), 2)],
        "the rest is asked elsewhere"
    );
    let over = rig.events("failover").await;
    assert!(over[0].message.starts_with("2 go to b/"), "{over:?}");
    // Given back: nothing of it is waited for any more.
    rig.cloud.script("a", |script| script.unfilled = 0);
    rig.pass(Millis::seconds(10)).await;
    rig.boot_all().await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(launches(&rig).await, 0);
    assert_eq!(rig.shown("job"), "served");
}

#[tokio::test]
async fn what_came_and_never_joined_is_a_miss_beside_the_shortage_of_what_never_came() {
    let mut rig = one_of_three().await;
    rig.pass(Millis::minutes(15)).await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.view().pool("a").expect("a").misses, 1);
    let failed = rig.events("launch_failed").await;
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].message.contains("only 1 of 3 appeared"));
    assert_eq!(asks(&rig)[1], ("b".to_owned(), 3), "{:?}", asks(&rig));
}

#[tokio::test]
async fn what_does_not_come_while_launches_are_suspended_is_no_shortage() {
    let mut rig = one_of_three().await;
    let id = rig.cloud.alive("a").remove(0);
    rig.join("a", &id).await;
    let suspended = Stop::Failed {
        failure: FailureKind::Suspended,
        why: "Launch is suspended in the group: ada".to_owned(),
    };
    rig.cloud
        .script("a", |script| script.stops = vec![suspended]);
    rig.pass(Millis::minutes(15)).await;
    rig.pass(Millis::seconds(10)).await;
    assert_eq!(rig.events("launch_missed").await.len(), 1);
    assert!(rig.events("launch_failed").await.is_empty());
    assert_eq!(asks(&rig)[1], ("b".to_owned(), 2), "elsewhere all the same");
    assert!(rig.view().pool("a").expect("a").offerings[0].1.is_none());
}
