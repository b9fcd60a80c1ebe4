//! A pool that is being adopted: what would have been done is kept beside what happened, over restarts, within bounds; the
//! pool leaves `observe` when its time is over, or when a person says so.

use crate::rig::{GPUS, Rig, two_pools};
use drover::control::commands::{AdoptWish, CommandError};
use drover::ports::store::Op;
use drover::ports::survey::GroupRef;
use drover::records::{AdoptionRecord, PoolRecord, keys};
use drover_core::model::{Millis, Mode, PoolId, UnixMs};

const BY: &str = "admin/ada";

/// Pool `a` alone, in `observe`.
fn watched() -> String {
    let text = two_pools().replacen("mode = \"full\"", "mode = \"observe\"", 1);
    let second = text.rfind("[[pool]]").expect("two pools");
    text[..second].to_owned()
}

/// Begins to watch pool `a`, which is no group of AWS here.
async fn begin(rig: &Rig, span: Millis) {
    let record = serde_json::json!({
        "region": "us-east-1", "group": "a", "by": BY, "since": 0, "span": span,
    });
    let store = rig.commands.journal().store().clone();
    let op = Op::Put(
        keys::named(keys::ADOPTION, "a"),
        serde_json::to_vec(&record).expect("JSON"),
    );
    store
        .commit(store.fence(), &[], &[op])
        .await
        .expect("written");
}

async fn record(rig: &Rig, pool: &str) -> AdoptionRecord {
    let mut all = rig.commands.adoptions().await.expect("read");
    all.remove(&PoolId::from(pool)).expect("an adoption")
}

#[tokio::test]
async fn what_would_have_been_done_is_kept_beside_what_happened() {
    let mut rig = Rig::new(&watched()).await;
    rig.cloud.add("a", "i-1");
    rig.join("a", "i-1").await;
    rig.cycle().await;
    begin(&rig, Millis::minutes(60)).await;
    rig.pass(Millis::minutes(20)).await;
    // Ten minutes until an idle node is due, and the rest of twenty.
    let seen = record(&rig, "a").await;
    let minute = 60_000;
    assert!(seen.watched >= Millis::minutes(18), "{seen:?}");
    let tally = &seen.tally;
    assert_eq!(tally.would_remove, 1, "{seen:?}");
    let gpus = u64::from(GPUS);
    assert!(
        (8 * minute * gpus..=11 * minute * gpus).contains(&tally.removable_gpu_ms),
        "{seen:?}"
    );
    assert!(tally.idle_gpu_ms >= 18 * minute * gpus, "{seen:?}");
    assert!(tally.idle_cost > tally.removable_cost, "{seen:?}");
    assert_eq!(
        (tally.would_ask, tally.came, tally.went),
        (0, 0, 0),
        "{seen:?}"
    );

    // Work that waits, and an instance that somebody else started.
    rig.ask("job", 3, GPUS).await;
    rig.pass(Millis::minutes(3)).await;
    rig.cloud.add("a", "i-2");
    rig.pass(Millis::minutes(3)).await;
    let seen = record(&rig, "a").await;
    assert!(seen.tally.would_ask >= 2, "{seen:?}");
    assert!(seen.tally.missing_node_ms > 0, "{seen:?}");
    assert_eq!(seen.tally.came, 1, "{seen:?}");
    assert!(seen.tally.blind_node_ms > 0, "i-2 has no agent: {seen:?}");
    assert_eq!(seen.samples.last().map(|s| s.size), Some(2), "{seen:?}");
    let words = format!("{:?}", seen.decisions);
    assert!(
        words.contains("drain") && words.contains("more nodes"),
        "{words}"
    );

    // Nothing of it was done.
    assert_eq!(rig.cloud.asked(), 0);
    assert_eq!(rig.cloud.alive("a"), ["i-1", "i-2"]);

    // A restart goes on with it, and does not count the time in between.
    rig.restart().await;
    rig.clock.advance(Millis::minutes(30));
    rig.cycle().await;
    rig.pass(Millis::minutes(2)).await;
    let after = record(&rig, "a").await;
    assert!(
        after.watched >= seen.watched && after.watched < seen.watched.plus(Millis::minutes(4)),
        "{after:?}"
    );
    rig.pass(Millis::minutes(60)).await;
    let done = record(&rig, "a").await;
    assert!(done.is_complete(), "{done:?}");
    assert_eq!(rig.events("watched").await.len(), 1);
    rig.pass(Millis::minutes(5)).await;
    assert_eq!(record(&rig, "a").await, done, "over is over");
}

#[tokio::test]
async fn a_pool_leaves_observe_when_its_time_is_over_or_a_person_says_so() {
    let mut rig = Rig::new(&watched()).await;
    rig.cycle().await;
    begin(&rig, Millis::minutes(5)).await;
    rig.pass(Millis::minutes(2)).await;
    let early = rig.commands.set_pool_mode(BY, "a", Mode::Grow, "").await;
    let told = match early {
        Err(CommandError::Refused(told)) => told,
        other => panic!("{other:?}"),
    };
    assert!(
        told.contains("--yes") && told.contains("of 5 min"),
        "{told}"
    );
    // To stay in observe is nothing that waits.
    rig.commands
        .set_pool_mode(BY, "a", Mode::Observe, "")
        .await
        .expect("no change");
    rig.commands
        .change_pool_mode(BY, "a", Mode::Grow, "", true)
        .await
        .expect("sooner");
    assert!(record(&rig, "a").await.left.is_some());
    // Once it has left, nothing asks again.
    for mode in [Mode::Observe, Mode::Full] {
        rig.commands
            .set_pool_mode(BY, "a", mode, "")
            .await
            .expect("free");
    }
    rig.commands
        .set_pool_mode(BY, "a", Mode::Observe, "")
        .await
        .expect("free");
    begin(&rig, Millis::minutes(5)).await;
    rig.pass(Millis::minutes(7)).await;
    assert!(record(&rig, "a").await.is_complete());
    rig.commands
        .set_pool_mode(BY, "a", Mode::Grow, "")
        .await
        .expect("its time is over");
}

fn wish(name: Option<&str>, span: Millis) -> AdoptWish {
    AdoptWish {
        group: GroupRef {
            region: "us-east-1".to_owned(),
            role: None,
            group: "p5".to_owned(),
        },
        name: name.map(str::to_owned),
        span,
    }
}

#[tokio::test]
async fn a_group_is_adopted_before_it_is_a_pool_and_found_under_its_pools_name() {
    let mut rig = Rig::new(&watched()).await;
    rig.cycle().await;
    let hour = Millis::minutes(60);
    for (bad, field) in [
        (wish(None, Millis::ZERO), "for"),
        (wish(None, Millis::minutes(60 * 24 * 40)), "for"),
        (wish(Some("a"), hour), "name"),
        (wish(Some("no good"), hour), "name"),
    ] {
        match rig.commands.adopt(BY, &bad).await {
            Err(CommandError::Invalid { field: said, .. }) => assert_eq!(said, field),
            other => panic!("{bad:?}: {other:?}"),
        }
    }
    let first = rig
        .commands
        .adopt(BY, &wish(Some("new"), hour))
        .await
        .expect("adopted");
    assert_eq!((first.of.as_str(), first.unchanged), ("new", None));
    let again = rig
        .commands
        .adopt(BY, &wish(Some("new"), hour))
        .await
        .expect("adopted");
    assert!(again.unchanged.is_some());
    let longer = rig
        .commands
        .adopt(BY, &wish(Some("new"), Millis::minutes(120)))
        .await;
    assert_eq!(longer.expect("longer").unchanged, None);
    assert_eq!(record(&rig, "new").await.span, Millis::minutes(120));
    assert_eq!(rig.events("adopted").await.len(), 2);
    let audit = rig.commands.journal().audit(0, 100).await.expect("audit");
    assert!(
        audit
            .iter()
            .any(|line| line.verb == "pool.adopt" && line.actor == BY),
        "{audit:?}"
    );

    // It comes into the config under another name, and with a mode: it is watched, in observe.
    let pool = "[[pool]]\nname = \"east\"\nkind = \"asg\"\nsite = \"us-east-1\"\nregion = \"us-east-1\"\n\
                group = \"p5\"\nmode = \"full\"\nmax = 9\n";
    rig.push_config(&(watched() + pool)).await;
    rig.cycle().await;
    let moved = record(&rig, "east").await;
    assert_eq!(moved.span, Millis::minutes(120));
    let records = rig.records().await;
    assert!(
        !records.contains_key("/adoption/new"),
        "{:?}",
        records.keys()
    );
    let settings: PoolRecord = serde_json::from_slice(&records["/pool/east"]).expect("a record");
    assert_eq!(settings.mode, Some(Mode::Observe));
    let view = rig.view();
    assert_eq!(view.pool("east").map(|pool| pool.mode), Some(Mode::Observe));
    assert_eq!(moved.since, record(&rig, "east").await.since);
    assert!(moved.since > UnixMs(0));
}

/// A group without an owner is no orphan: it never was a pool.
#[tokio::test]
async fn a_group_that_is_not_owned_yet_says_so_and_what_it_needs() {
    let mut rig = Rig::new(&two_pools()).await;
    let wish = AdoptWish {
        group: GroupRef {
            region: "us-east-1".to_owned(),
            role: None,
            group: "p5".to_owned(),
        },
        name: None,
        span: Millis::minutes(60),
    };
    rig.commands.adopt(BY, &wish).await.expect("adopted");
    rig.cycle().await;
    let view = rig.view();
    let shown = view.pool("p5").expect("it is shown");
    assert!(!shown.orphaned && shown.kind.is_none(), "{shown:?}");
    let told = &shown.holds[0];
    for part in ["not owned yet", "p5 in us-east-1", "drover:owner=unclaimed"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(
        !view
            .alarms
            .iter()
            .any(|alarm| alarm.kind == "pool_orphaned")
    );
    assert!(rig.events("orphaned").await.is_empty());
    assert_eq!(
        record(&rig, "p5").await.last,
        None,
        "nothing is watched yet"
    );
}
