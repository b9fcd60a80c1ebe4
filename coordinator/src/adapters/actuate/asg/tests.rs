//! The edges of the adapter against a fake AWS: what is called, in which order, and what is never called.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drover_aws::{Call, Group, GroupTemplate, MemberState, MixedPolicy, Override};
use drover_core::model::{
    FailureKind, InstanceId, LaunchId, Millis, OfferingId, PoolId, Steering, Stop, UnixMs,
};

use self::fake::{Fake, error, group, member, timeout};
use super::{AsgActuator, AsgPool, Owner};
use crate::ports::actuate::{
    ActuateError, Actuator, LaunchOrder, NO_CREDENTIALS, NOT_ASKED, OUTCOME_UNKNOWN, PoolReading,
    Way,
};
use crate::ports::clock::Clock;

mod beside;
mod budget;
mod discover;
mod fake;
mod look;
mod paid;
mod templates;
mod withdraw;

/// Both clocks in one figure, milliseconds.
#[derive(Default)]
struct TestClock(AtomicU64);

const START: u64 = 1_800_000_000_000;

impl Clock for TestClock {
    fn wall(&self) -> UnixMs {
        UnixMs(START + self.0.load(Ordering::SeqCst))
    }
    fn mono(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

fn pool(name: &str, region: &str) -> AsgPool {
    AsgPool {
        pool: PoolId::new(name),
        region: region.into(),
        group: name.into(),
        prices: Default::default(),
        zones: vec![],
        instance_types: vec![],
    }
}

fn adapter(fake: &Fake) -> AsgActuator<Fake> {
    let owner = Owner::new("store", 7).expect("an owner");
    fake.world().now_ms = i64::try_from(START).expect("fits");
    AsgActuator::new(
        fake.clone(),
        owner,
        [pool("p4", "r1")],
        Arc::new(TestClock::default()),
    )
    .with_pause(Duration::ZERO)
}

fn order(count: u32, zone: &str, token: &str) -> LaunchOrder {
    LaunchOrder {
        id: LaunchId::new("l"),
        token: token.to_owned(),
        pool: PoolId::new("p4"),
        offering: OfferingId::new(format!("p4/p4d.24xlarge/{zone}/on-demand")),
        count,
        asked: UnixMs(START),
        hosts: vec![],
    }
}

async fn read(adapter: &AsgActuator<Fake>) -> PoolReading {
    let mut all = adapter.read(&[PoolId::new("p4")]).await;
    all.remove(0).1.expect("a reading")
}

fn spread(mut group: Group, share: u32, weight: Option<&str>) -> Group {
    group.template = GroupTemplate::Mixed(MixedPolicy {
        template: None,
        overrides: vec![Override {
            instance_type: Some("p4d.24xlarge".into()),
            weight: weight.map(str::to_owned),
            by_requirements: false,
        }],
        on_demand_base: None,
        on_demand_percent_above_base: Some(share),
    });
    group
}

#[tokio::test]
async fn sc_98_the_zone_that_was_asked() {
    let fake = Fake::of(vec![group("p4", &["a", "b"])]);
    let adapter = adapter(&fake);
    let reading = read(&adapter).await;
    assert_eq!(reading.steering, Steering::Zone);
    let zones: Vec<_> = reading
        .offerings
        .iter()
        .map(|o| (o.id.as_str(), o.zone.as_str()))
        .collect();
    assert_eq!(
        zones,
        [
            ("p4/p4d.24xlarge/a/on-demand", "a"),
            ("p4/p4d.24xlarge/b/on-demand", "b")
        ]
    );
    let offer = &reading.offerings[0];
    assert_eq!(
        (offer.gpu_model.as_str(), offer.price.0),
        ("a100", 21_957_642)
    );
    assert_eq!(
        offer.allocatable.as_ref().map(|r| (r.cpu.0, r.gpus)),
        Some((96_000, 8))
    );
    let outcome = adapter.launch(&order(2, "b", "t")).await.expect("launches");
    assert_eq!(
        (outcome.way, outcome.granted, outcome.instances.len()),
        (Way::LaunchInstances, 2, 2)
    );
    assert_eq!(fake.mutations(), ["launch 2 b t"]);
}

#[tokio::test]
async fn an_order_is_read_up_when_this_process_never_saw_its_offering() {
    let fake = Fake::of(vec![group("p4", &["a", "b"])]);
    adapter(&fake)
        .launch(&order(1, "b", "t"))
        .await
        .expect("launches");
    assert_eq!(fake.mutations(), ["launch 1 b t"]);
    let odd = adapter(&fake)
        .launch(&order(1, "z", "t2"))
        .await
        .expect_err("there is no such zone");
    assert_eq!(odd.code, NOT_ASKED, "{odd}");
    assert!(odd.message.contains("has no offering"), "{odd}");
}

#[tokio::test]
async fn large_orders_go_in_chunks_with_tokens_of_their_own() {
    let fake = Fake::of(vec![group("p4", &["a", "b"])]);
    let outcome = adapter(&fake)
        .launch(&order(250, "a", "t"))
        .await
        .expect("launches");
    assert_eq!(outcome.granted, 250);
    assert_eq!(
        fake.mutations(),
        ["launch 100 a t", "launch 100 a t-1", "launch 50 a t-2"]
    );
}

#[tokio::test]
async fn sc_01_protection_comes_before_any_write() {
    let mut p4 = group("p4", &["a"]);
    p4.desired = 3;
    p4.members = vec![
        member("i-a", MemberState::InService, true),
        member("i-b", MemberState::InService, false),
        member("i-c", MemberState::Pending, false),
    ];
    let fake = Fake::of(vec![p4]);
    let adapter = adapter(&fake);
    let warned = read(&adapter).await.warnings;
    assert!(
        warned
            .iter()
            .any(|w| w.contains("2 members are not protected")),
        "{warned:?}"
    );
    assert!(fake.mutations().is_empty(), "a reading changes nothing");
    adapter.launch(&order(1, "a", "t")).await.expect("launches");
    assert_eq!(fake.mutations(), ["protect i-b", "launch 1 a t"]);
    fake.fail(
        Call::SetInstanceProtection,
        vec![Some(error(
            Call::SetInstanceProtection,
            400,
            "AccessDenied",
            "no",
        ))],
    );
    fake.world()
        .groups
        .values_mut()
        .for_each(|g| g.members[0].protected = false);
    adapter
        .launch(&order(1, "a", "t2"))
        .await
        .expect_err("nothing is written while one is unprotected");
    assert_eq!(
        fake.mutations().last().map(String::as_str),
        Some("protect i-a")
    );
}

#[tokio::test]
async fn more_running_than_desired_is_raised_first_and_never_lowered() {
    let mut p4 = group("p4", &["a"]);
    p4.desired = 1;
    p4.members = (0..3)
        .map(|n| member(&format!("i-{n}"), MemberState::InService, true))
        .collect();
    let fake = Fake::of(vec![p4]);
    adapter(&fake)
        .guard(&PoolId::new("p4"))
        .await
        .expect("guards");
    assert_eq!(fake.mutations(), ["desired 3"]);
}

#[tokio::test]
async fn groups_that_are_not_ours_or_not_free_are_never_changed() {
    type Change = fn(&mut Group);
    let table: &[(&str, Change, FailureKind, &str)] = &[
        (
            "no tag",
            |g| g.tags.clear(),
            FailureKind::Permission,
            "no tag",
        ),
        (
            "foreign",
            |g| {
                g.tags
                    .insert("drover:owner".into(), "other/1".into())
                    .map_or((), drop)
            },
            FailureKind::Permission,
            "another coordinator",
        ),
        (
            "old copy",
            |g| {
                g.tags
                    .insert("drover:owner".into(), "store/8".into())
                    .map_or((), drop)
            },
            FailureKind::Permission,
            "old copy",
        ),
        (
            "frozen",
            |g| {
                g.tags
                    .insert("drover:freeze".into(), "audit".into())
                    .map_or((), drop)
            },
            FailureKind::Suspended,
            "audit",
        ),
        (
            "weighted",
            |g| *g = spread(g.clone(), 100, Some("8")),
            FailureKind::Config,
            "weighs",
        ),
        (
            "deleted",
            |g| g.status = Some("Delete in progress".into()),
            FailureKind::Config,
            "Delete",
        ),
    ];
    for (name, change, kind, text) in table {
        let mut p4 = group("p4", &["a"]);
        p4.members = vec![member("i-1", MemberState::InService, false)];
        change(&mut p4);
        let fake = Fake::of(vec![p4]);
        let adapter = adapter(&fake);
        let reading = read(&adapter).await;
        assert_eq!(reading.stops.len(), 1, "{name}: {:?}", reading.stops);
        let failed: Vec<ActuateError> = vec![
            adapter.launch(&order(1, "a", "t")).await.expect_err(name),
            adapter
                .settle(&order(1, "a", "t"), &[], UnixMs(START))
                .await
                .expect_err(name),
            adapter
                .leave(&PoolId::new("p4"), &InstanceId::new("i-1"))
                .await
                .expect_err(name),
            adapter.guard(&PoolId::new("p4")).await.expect_err(name),
        ];
        for error in failed {
            assert_eq!(error.kind, *kind, "{name}: {error}");
            assert!(error.message.contains(text), "{name}: {error}");
        }
        assert!(
            fake.mutations().is_empty(),
            "{name}: {:?}",
            fake.mutations()
        );
    }
}

#[tokio::test]
async fn an_open_group_is_claimed_and_a_lost_race_is_respected() {
    for open in ["unclaimed", "store/3"] {
        let mut p4 = group("p4", &["a"]);
        p4.tags.insert("drover:owner".into(), open.into());
        let fake = Fake::of(vec![p4.clone()]);
        let adapter = adapter(&fake);
        read(&adapter).await;
        assert!(fake.mutations().is_empty(), "reading claims nothing");
        adapter.launch(&order(1, "a", "t")).await.expect("launches");
        assert_eq!(
            fake.mutations(),
            ["tag drover:owner=store/7", "launch 1 a t"]
        );

        let fake = Fake::of(vec![p4]);
        fake.world().rival = Some("rival/1".into());
        let lost = self::adapter(&fake)
            .launch(&order(1, "a", "t"))
            .await
            .expect_err("the rival has it");
        assert_eq!(lost.kind, FailureKind::Permission);
        assert_eq!(fake.mutations(), ["tag drover:owner=store/7"]);
    }
}

#[tokio::test]
async fn sc_30_an_unknown_outcome_is_asked_again_with_the_same_token() {
    let fake = Fake::of(vec![group("p4", &["a"])]);
    fake.world().applied = true;
    fake.fail(
        Call::LaunchInstances,
        vec![Some(timeout(Call::LaunchInstances))],
    );
    let outcome = adapter(&fake)
        .launch(&order(100, "a", "t"))
        .await
        .expect("the second answer counts");
    assert_eq!(outcome.instances.len(), 100);
    assert_eq!(fake.mutations(), ["launch 100 a t", "launch 100 a t"]);
    assert_eq!(fake.world().instances.len(), 100);
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_is_said_to_be_so() {
    let late = || Some(timeout(Call::LaunchInstances));
    let throttled = || {
        Some(error(
            Call::LaunchInstances,
            400,
            "Throttling",
            "Rate exceeded",
        ))
    };
    let denied = || Some(error(Call::LaunchInstances, 400, "AccessDenied", "no"));
    // Whatever comes after a call without an answer, it says nothing about that call.
    for failures in [
        vec![late(), late(), late(), late()],
        vec![late(), throttled()],
        vec![late(), denied()],
    ] {
        let fake = Fake::of(vec![group("p4", &["a"])]);
        fake.world().applied = true;
        fake.fail(Call::LaunchInstances, failures);
        let failed = adapter(&fake)
            .launch(&order(2, "a", "t"))
            .await
            .expect_err("nobody knows");
        assert_eq!(failed.code, OUTCOME_UNKNOWN, "{failed}");
        assert!(
            fake.mutations().iter().all(|m| m == "launch 2 a t"),
            "{:?}",
            fake.mutations()
        );
        // The next process asks with the same token and gets the first call's instances.
        fake.fail(Call::LaunchInstances, vec![]);
        let settled = adapter(&fake)
            .settle(&order(2, "a", "t"), &[], UnixMs(START + 60_000))
            .await
            .expect("settles");
        assert_eq!(settled.instances.len(), 2);
        assert_eq!(fake.world().instances.len(), 2);
    }
}

#[tokio::test]
async fn sc_30_a_repeated_order_never_changes_its_way_or_asks_twice() {
    // LaunchInstances was taken, its answers are lost, and then the right to call it is gone.
    let late = || Some(timeout(Call::LaunchInstances));
    let denied = || Some(error(Call::LaunchInstances, 403, "AccessDenied", "no"));
    let fake = Fake::of(vec![group("p4", &["a"])]);
    fake.world().applied = true;
    fake.fail(
        Call::LaunchInstances,
        vec![late(), late(), late(), late(), denied()],
    );
    let adapter = adapter(&fake);
    for _ in 0..2 {
        let failed = adapter
            .launch(&order(2, "a", "t"))
            .await
            .expect_err("nobody knows");
        assert_eq!(
            (failed.kind, failed.code.as_str()),
            (FailureKind::Transient, OUTCOME_UNKNOWN),
            "{failed}"
        );
    }
    // Frozen meanwhile: the ask stays open, it is not dropped.
    let tag = |value: Option<&str>| {
        let mut world = fake.world();
        let tags = &mut world.groups.values_mut().next().expect("the group").tags;
        match value {
            Some(value) => drop(tags.insert("drover:freeze".into(), value.into())),
            None => drop(tags.remove("drover:freeze")),
        }
    };
    tag(Some("audit"));
    let frozen = adapter
        .launch(&order(2, "a", "t"))
        .await
        .expect_err("is frozen");
    assert_eq!(frozen.code, OUTCOME_UNKNOWN, "{frozen}");
    tag(None);
    let outcome = adapter
        .launch(&order(2, "a", "t"))
        .await
        .expect("the token answers");
    assert_eq!((outcome.way, outcome.granted), (Way::LaunchInstances, 2));
    assert!(
        fake.mutations().iter().all(|m| m == "launch 2 a t"),
        "{:?}",
        fake.mutations()
    );
    assert_eq!(fake.world().instances.len(), 2);
}

#[tokio::test]
async fn an_order_of_ten_minutes_is_not_repeated() {
    let fake = Fake::of(vec![group("p4", &["a"])]);
    let old = LaunchOrder {
        asked: UnixMs(START - 600_000),
        ..order(2, "a", "t")
    };
    let failed = adapter(&fake).launch(&old).await.expect_err("is too old");
    assert_eq!(failed.code, OUTCOME_UNKNOWN, "{failed}");
    assert!(fake.world().calls.is_empty());
}

/// No ids are told: what control ties to the ask by must be in the next reading.
#[tokio::test]
async fn what_a_raise_brings_shows_with_its_time_and_under_the_groups_own_name() {
    let fake = Fake::of(vec![group("p4", &["a", "b"])]);
    let denied = error(
        Call::LaunchInstances,
        403,
        "AccessDenied",
        "not authorized to perform: autoscaling:LaunchInstances",
    );
    fake.fail(Call::LaunchInstances, vec![Some(denied)]);
    let adapter = adapter(&fake);
    let before = read(&adapter).await;
    let raised = adapter
        .launch(&order(2, "a", "t"))
        .await
        .expect("falls back");
    assert_eq!((raised.granted, raised.instances.len()), (2, 0));
    let wished = read(&adapter).await;
    assert_eq!((wished.instances.len(), wished.unfilled), (0, 2));
    {
        let mut world = fake.world();
        for id in ["i-1", "i-2"] {
            world.run(&id.into(), &"p4".into(), "b");
        }
    }
    let after = read(&adapter).await;
    let shown: Vec<_> = after.instances.iter().map(|i| i.launched).collect();
    assert_eq!(shown, [Some(UnixMs(START)), Some(UnixMs(START))]);
    assert_eq!(after.unfilled, 0);
    let whole = OfferingId::new("p4/p4d.24xlarge//on-demand");
    let zones: Vec<_> = before.offerings.iter().map(|o| o.id.clone()).collect();
    assert_eq!(zones.len(), 2);
    for (reading, when) in [(&before, "before"), (&after, "after")] {
        for zone in &zones {
            assert_eq!(reading.parts.get(zone), Some(&whole), "{when}: {zone}");
        }
    }
    let own: Vec<_> = after.offerings.iter().map(|o| &o.id).collect();
    assert_eq!(own, [&whole]);
}

#[tokio::test]
async fn a_refusal_of_the_way_falls_back_and_is_shown() {
    let fake = Fake::of(vec![group("p4", &["a", "b"])]);
    let denied = error(
        Call::LaunchInstances,
        403,
        "AccessDenied",
        "not authorized to perform: autoscaling:LaunchInstances",
    );
    fake.fail(Call::LaunchInstances, vec![Some(denied)]);
    let adapter = adapter(&fake);
    let outcome = adapter
        .launch(&order(3, "a", "t"))
        .await
        .expect("falls back");
    assert_eq!(
        (outcome.way, outcome.granted, outcome.instances.len()),
        (Way::SetDesiredCapacity, 3, 0)
    );
    assert_eq!(
        fake.mutations(),
        ["launch 3 a t", "tag drover:ask=t 0 3", "desired 3"]
    );
    let reading = read(&adapter).await;
    assert_eq!(reading.steering, Steering::Group);
    assert!(
        reading
            .warnings
            .iter()
            .any(|w| w.contains("LaunchInstances")),
        "{:?}",
        reading.warnings
    );
    adapter
        .launch(&order(1, "", "t2"))
        .await
        .expect("goes the other way at once");
    assert_eq!(
        fake.mutations().last().map(String::as_str),
        Some("desired 4")
    );
}

#[tokio::test]
async fn mixed_markets_use_the_fallback_and_one_market_does_not() {
    for (share, way) in [
        (50, Way::SetDesiredCapacity),
        (100, Way::LaunchInstances),
        (0, Way::LaunchInstances),
    ] {
        let fake = Fake::of(vec![spread(group("p4", &["a"]), share, None)]);
        let adapter = adapter(&fake);
        let offering = read(&adapter).await.offerings[0].id.clone();
        let outcome = adapter
            .launch(&LaunchOrder {
                offering,
                ..order(1, "", "t")
            })
            .await
            .expect("launches");
        assert_eq!(outcome.way, way, "{share} % on demand");
    }
}

#[tokio::test]
async fn a_stale_describe_never_lowers_the_group() {
    let before = spread(group("p4", &["a"]), 50, None);
    let fake = Fake::of(vec![before.clone()]);
    let adapter = adapter(&fake);
    adapter.launch(&order(3, "", "t1")).await.expect("launches");
    fake.world().stale = [before.clone(), before].into();
    adapter.launch(&order(1, "", "t2")).await.expect("launches");
    let desired: Vec<_> = fake
        .mutations()
        .into_iter()
        .filter(|m| m.starts_with("desired"))
        .collect();
    assert_eq!(desired, ["desired 3", "desired 4"]);
}

#[tokio::test]
async fn sc_30_the_fallback_reads_again_and_asks_no_more() {
    let fake = Fake::of(vec![spread(group("p4", &["a"]), 50, None)]);
    fake.world().applied = true;
    fake.fail(
        Call::SetDesiredCapacity,
        vec![Some(timeout(Call::SetDesiredCapacity))],
    );
    let outcome = adapter(&fake)
        .launch(&order(100, "", "t"))
        .await
        .expect("is found");
    assert_eq!(outcome.granted, 100);
    assert_eq!(fake.mutations(), ["tag drover:ask=t 0 100", "desired 100"]);
}

#[tokio::test]
async fn the_fallback_is_settled_by_its_note_and_nothing_leaves_before() {
    let late = || Some(timeout(Call::SetDesiredCapacity));
    for applied in [true, false] {
        let mut p4 = spread(group("p4", &["a"]), 50, None);
        p4.desired = 2;
        p4.members = (0..2)
            .map(|n| member(&format!("i-{n}"), MemberState::InService, true))
            .collect();
        let fake = Fake::of(vec![p4.clone()]);
        fake.world().applied = applied;
        fake.fail(
            Call::SetDesiredCapacity,
            vec![late(), late(), late(), late()],
        );
        let adapter = adapter(&fake);
        read(&adapter).await;
        // The answers are lost and describes lag: nobody knows.
        let noted = |g: &Group| {
            let mut g = g.clone();
            g.tags.insert("drover:ask".into(), "t 2 5".into());
            g
        };
        fake.world().stale = [p4.clone(), noted(&p4), noted(&p4), noted(&p4), noted(&p4)].into();
        let failed = adapter
            .launch(&order(3, "", "t"))
            .await
            .expect_err("nobody knows");
        assert_eq!(failed.code, OUTCOME_UNKNOWN, "{failed}");
        let held = adapter
            .leave(&PoolId::new("p4"), &InstanceId::new("i-0"))
            .await
            .expect_err("is held");
        assert!(held.message.contains("not settled"), "{held}");
        let other = adapter
            .launch(&order(1, "", "t9"))
            .await
            .expect_err("one ask at a time");
        assert!(other.message.contains("not settled"), "{other}");

        fake.world().applied = false;
        fake.world().stale.clear();
        let before = fake.mutations().len();
        let settled = adapter
            .settle(&order(3, "", "t"), &[], UnixMs(START + 1_000))
            .await
            .expect("settles");
        assert_eq!((settled.way, settled.granted), (Way::SetDesiredCapacity, 3));
        let after: Vec<_> = fake.mutations().split_off(before);
        assert_eq!(
            after,
            if applied {
                vec![]
            } else {
                vec!["desired 5".to_owned()]
            }
        );
        assert_eq!(
            fake.world().groups.values().next().map(|g| g.desired),
            Some(5)
        );
        adapter
            .leave(&PoolId::new("p4"), &InstanceId::new("i-0"))
            .await
            .expect("leaves now");
        assert_eq!(
            fake.mutations().last().map(String::as_str),
            Some("terminate i-0")
        );
    }
}

#[tokio::test]
async fn an_old_intent_is_settled_by_describing_only() {
    let fake = Fake::of(vec![group("p4", &["a"])]);
    let first = adapter(&fake);
    fake.world().now_ms = i64::try_from(START - 3_600_000).expect("fits");
    let there = first
        .launch(&order(2, "a", "other"))
        .await
        .expect("launches")
        .instances;
    fake.world().now_ms = i64::try_from(START + 2_000).expect("fits");
    let ours = first
        .launch(&order(3, "a", "t"))
        .await
        .expect("launches")
        .instances;
    let before = fake.mutations();
    let old = UnixMs(START + 600_000);
    let settled = adapter(&fake)
        .settle(&order(3, "a", "t"), &there, old)
        .await
        .expect("settles");
    assert_eq!(settled.instances, ours);
    // Even without knowing the others: they were launched before the ask.
    let settled = adapter(&fake)
        .settle(&order(5, "a", "t"), &[], old)
        .await
        .expect("settles");
    assert_eq!(settled.granted, 3);
    let nothing = adapter(&fake)
        .settle(&order(3, "a", "t"), &[there, ours].concat(), old)
        .await
        .expect("settles");
    assert_eq!(nothing.granted, 0);
    assert_eq!(fake.mutations(), before, "no mutation at all");
}

#[tokio::test]
async fn an_ask_that_no_note_tells_of_was_never_made() {
    let fake = Fake::of(vec![spread(group("p4", &["a"]), 50, None)]);
    let settled = adapter(&fake)
        .settle(&order(3, "", "t"), &[], UnixMs(START))
        .await
        .expect("settles");
    assert_eq!((settled.granted, fake.mutations().len()), (0, 0));
}

#[tokio::test]
async fn leaving_is_by_id_and_only_once() {
    let mut p4 = group("p4", &["a"]);
    p4.desired = 2;
    p4.members = vec![
        member("i-1", MemberState::InService, true),
        member("i-2", MemberState::Terminating, true),
    ];
    let fake = Fake::of(vec![p4]);
    let adapter = adapter(&fake);
    let leave = async |id: &str| {
        adapter
            .leave(&PoolId::new("p4"), &InstanceId::new(id))
            .await
    };
    leave("i-2").await.expect("it is on its way");
    leave("i-9").await.expect("nobody knows it, so it is gone");
    assert!(fake.mutations().is_empty());
    // SC-51: a refusal is an error of its kind, and nothing else is tried.
    let denied = error(
        Call::TerminateInstanceInAutoScalingGroup,
        403,
        "AccessDenied",
        "not authorized",
    );
    fake.fail(
        Call::TerminateInstanceInAutoScalingGroup,
        vec![Some(denied)],
    );
    assert_eq!(
        leave("i-1").await.expect_err("is refused").kind,
        FailureKind::Permission
    );
    fake.fail(
        Call::TerminateInstanceInAutoScalingGroup,
        vec![Some(timeout(Call::TerminateInstanceInAutoScalingGroup))],
    );
    fake.world().applied = true;
    leave("i-1").await.expect("a lost reply is looked up");
    assert_eq!(fake.mutations(), ["terminate i-1", "terminate i-1"]);
    let desired = fake.world().groups.values().next().map(|g| g.desired);
    assert_eq!(desired, Some(1));
}

#[tokio::test]
async fn an_instance_that_was_detached_is_not_forgotten() {
    let mut p4 = group("p4", &["a"]);
    p4.max = 500;
    let fake = Fake::of(vec![p4]);
    let adapter = adapter(&fake);
    let id = adapter
        .launch(&order(1, "a", "t"))
        .await
        .expect("launches")
        .instances
        .remove(0);
    fake.world()
        .groups
        .values_mut()
        .for_each(|g| g.members.clear());
    let failed = adapter
        .leave(&PoolId::new("p4"), &id)
        .await
        .expect_err("it runs outside");
    assert_eq!(failed.code, "Detached");
}

#[tokio::test]
async fn one_regions_failure_is_its_own() {
    let fake = Fake::of(vec![group("p4", &["a"]), group("p4w", &["w"])]);
    let owner = Owner::new("store", 7).expect("an owner");
    let pools = [pool("p4", "r1"), pool("p4w", "r2"), pool("gone", "r2")];
    let adapter = AsgActuator::new(fake.clone(), owner, pools, Arc::new(TestClock::default()));
    let expired = error(
        Call::DescribeAutoScalingGroups,
        403,
        "ExpiredToken",
        "expired",
    );
    fake.fail(
        Call::DescribeAutoScalingGroups,
        vec![Some(expired.clone()), Some(expired)],
    );
    let ids = ["p4w", "nobody", "p4", "gone"].map(PoolId::new);
    let read = adapter.read(&ids).await;
    assert_eq!(
        read.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["p4w", "nobody", "p4", "gone"]
    );
    assert!(read[0].1.is_ok());
    let kinds: Vec<_> = read[1..]
        .iter()
        .map(|(_, r)| r.as_ref().expect_err("fails").kind)
        .collect();
    assert_eq!(
        kinds,
        [
            FailureKind::Config,
            FailureKind::Permission,
            FailureKind::Config
        ]
    );
    let why = read[3].1.as_ref().expect_err("fails").to_string();
    assert!(why.contains("no group gone in r2"), "{why}");
}

#[tokio::test]
async fn what_is_wrong_with_a_group_is_said() {
    let mut p4 = group("p4", &["a"]);
    p4.suspended.clear();
    p4.suspended
        .insert("Launch".into(), "User suspended at 2026-11-29".into());
    p4.protects_new = false;
    p4.max_lifetime_seconds = Some(86_400);
    p4.capacity_rebalance = Some(true);
    let fake = Fake::of(vec![p4]);
    let denied = error(
        Call::DescribeInstanceTypes,
        403,
        "UnauthorizedOperation",
        "no",
    );
    fake.fail(Call::DescribeInstanceTypes, vec![Some(denied)]);
    let adapter = adapter(&fake);
    let reading = read(&adapter).await;
    for word in [
        "AZRebalance",
        "ReplaceUnhealthy",
        "new members",
        "86400 s",
        "capacity rebalance",
    ] {
        assert!(
            reading.warnings.iter().any(|w| w.contains(word)),
            "{word}: {:?}",
            reading.warnings
        );
    }
    let Some(Stop::Failed {
        failure: FailureKind::Suspended,
        why,
    }) = reading.stops.first()
    else {
        panic!("{:?}", reading.stops);
    };
    assert!(why.contains("User suspended"), "{why}");
    let remarks = &reading.remarks;
    assert!(
        remarks.iter().any(|r| r.contains("from the built-in list")),
        "{remarks:?}"
    );
    let refused = adapter
        .launch(&order(1, "a", "t"))
        .await
        .expect_err("is suspended");
    assert_eq!(refused.kind, FailureKind::Suspended);
    assert_eq!(fake.mutations().len(), 0);
}

#[tokio::test]
async fn expired_credentials_stop_no_pool_and_pass_when_there_are_fresh_ones() {
    let expired = || {
        error(
            Call::DescribeAutoScalingGroups,
            403,
            "ExpiredToken",
            "expired",
        )
    };
    let fake = Fake::of(vec![group("p4", &["a"])]);
    let adapter = adapter(&fake);
    fake.fail(Call::DescribeAutoScalingGroups, vec![Some(expired())]);
    let ids = [PoolId::new("p4")];
    let read = adapter.read(&ids).await;
    let unread = read[0].1.as_ref().expect_err("cannot be read");
    assert_eq!(
        unread.kind,
        FailureKind::Permission,
        "no growth on an old reading"
    );

    fake.fail(Call::DescribeAutoScalingGroups, vec![Some(expired())]);
    let refused = adapter.launch(&order(1, "a", "t-1")).await.expect_err("no");
    assert_eq!(
        (refused.kind, refused.code.as_str()),
        (FailureKind::Transient, NO_CREDENTIALS),
        "{refused}"
    );
    let denied = error(Call::LaunchInstances, 403, "ExpiredToken", "expired");
    fake.fail(Call::LaunchInstances, vec![Some(denied)]);
    let refused = adapter.launch(&order(1, "a", "t-2")).await.expect_err("no");
    assert_eq!(refused.kind, FailureKind::Transient, "{refused}");
    fake.fail(Call::DescribeAutoScalingGroups, vec![Some(expired())]);
    let kept = adapter.leave(&ids[0], &InstanceId::new("i-1")).await;
    assert_eq!(kept.expect_err("no").kind, FailureKind::Transient);

    // Who may not look knows nothing of an ask that may have been taken.
    for code in ["ExpiredToken", "AccessDenied"] {
        let refused = error(Call::DescribeAutoScalingGroups, 403, code, "no");
        let twice = vec![Some(refused.clone()), Some(refused)];
        fake.fail(Call::DescribeAutoScalingGroups, twice);
        for now in [UnixMs(START + 60_000), UnixMs(START + 86_400_000)] {
            let open = adapter.settle(&order(1, "a", "t-3"), &[], now).await;
            let open = open.expect_err("not settled");
            assert_eq!(
                (open.kind, open.code.as_str()),
                (FailureKind::Transient, OUTCOME_UNKNOWN),
                "{open}"
            );
        }
    }
    assert!(adapter.launch(&order(1, "a", "t-1")).await.is_ok());
}
