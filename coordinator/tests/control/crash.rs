//! Crash after every durable step and carry on: asked exactly once, left exactly once (I4).

use crate::rig::{GPUS, Rig, two_pools};
use drover_core::model::Millis;

#[tokio::test]
async fn i4_ask_once_whatever_step_the_coordinator_dies_after() {
    let mut crashes = 0;
    for at in 1..200 {
        let mut rig = Rig::new(&two_pools()).await;
        rig.cloud.script("a", |script| script.capacity = Some(3));
        rig.ask("job", 5, GPUS).await;
        rig.crash.arm(at);
        let crashed = rig.cycle_or_crash().await;
        rig.crash.disarm();
        if crashed {
            crashes += 1;
            rig.restart().await;
        }
        // One more unit is demanded meanwhile, and the cloud hides what it has.
        rig.ask("more", 1, GPUS).await;
        rig.cloud.script("a", |script| script.hides = true);
        rig.cloud.script("b", |script| script.hides = true);
        rig.pass(Millis::seconds(30)).await;
        rig.cloud.script("a", |script| script.hides = false);
        rig.cloud.script("b", |script| script.hides = false);
        rig.pass(Millis::seconds(60)).await;
        let all = rig.cloud.alive("a").len() + rig.cloud.alive("b").len();
        assert_eq!(all, 6, "crash after step {at}");
        rig.boot_all().await;
        rig.pass(Millis::seconds(20)).await;
        assert_eq!(
            (rig.shown("job"), rig.shown("more")),
            ("served", "served"),
            "crash after step {at}"
        );
        if !crashed {
            assert!(crashes >= 4, "only {crashes} crash points");
            return;
        }
    }
    panic!("never ran through");
}

#[tokio::test]
async fn a_drain_and_its_leaving_survive_a_crash_after_every_step() {
    let mut crashes = 0;
    for at in 1..200 {
        let mut rig = Rig::new(&two_pools()).await;
        rig.bystanders(2);
        for id in ["i-1", "i-2"] {
            rig.cloud.add("a", id);
            rig.join("a", id).await;
        }
        rig.cycle().await;
        rig.clock.advance(Millis::minutes(10));
        rig.crash.arm(at);
        let mut crashed = false;
        for _ in 0..20 {
            rig.clock.advance(Millis(200));
            if rig.cycle_or_crash().await {
                crashed = true;
                break;
            }
        }
        rig.crash.disarm();
        if crashed {
            crashes += 1;
            rig.restart().await;
        }
        rig.pass(Millis::minutes(3)).await;
        let ended = rig.cloud.ended.lock().expect("lock").clone();
        assert!(
            rig.cloud.alive("a").is_empty(),
            "crash after step {at}: {ended:?}"
        );
        for space in ["/node/", "/order/", "/drain/", "/idle/"] {
            assert_eq!(rig.count(space).await, 0, "{space}, crash after step {at}");
        }
        if !crashed {
            assert!(crashes >= 8, "only {crashes} crash points");
            return;
        }
    }
    panic!("never ran through");
}

#[tokio::test]
async fn a_stale_leader_stops() {
    let mut old = Rig::new(&two_pools()).await;
    old.cycle().await;
    let mut rig = Rig::new(&two_pools()).await;
    rig.cycle().await;
    // A second coordinator opens the same store.
    let newer = drover::adapters::store::memory::MemoryStore::open(&rig.disk);
    drop(newer);
    let wish = rig.commands.freeze("admin/ada", None, "x").await;
    assert!(wish.is_err(), "a stale leader changes nothing");
}
