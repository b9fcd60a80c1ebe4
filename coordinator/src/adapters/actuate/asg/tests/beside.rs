//! Several LaunchInstances calls of one group at work at once, and nothing else beside them.

use drover_aws::{Call, MemberState};
use drover_core::model::{FailureKind, InstanceId, PoolId};
use futures::future::join_all;

use super::fake::{Fake, error, group, member};
use super::{adapter, order};
use crate::ports::actuate::{Actuator, NOT_ASKED, Way};

#[tokio::test]
async fn a_thousand_from_zero_are_ten_calls_of_which_four_are_at_work_at_once() {
    let mut p4 = group("p4", &["a"]);
    p4.max = 1_000;
    let fake = Fake::of(vec![p4]);
    let adapter = adapter(&fake);
    let orders: Vec<_> = (0..10).map(|n| order(100, "a", &format!("t{n}"))).collect();
    let all = join_all(orders.iter().map(|order| adapter.launch(order))).await;
    for outcome in all {
        let outcome = outcome.expect("launches");
        assert_eq!(
            (outcome.way, outcome.instances.len()),
            (Way::LaunchInstances, 100)
        );
    }
    let mut asked = fake.mutations();
    asked.sort();
    let expect: Vec<String> = (0..10).map(|n| format!("launch 100 a t{n}")).collect();
    assert_eq!(
        asked, expect,
        "each once, and the desired capacity is left to AWS"
    );
    let world = fake.world();
    assert_eq!(world.launching, (0, 4), "several at once, within the bound");
    let group = world.groups.values().next().expect("the group");
    assert_eq!((group.members.len(), group.desired), (1_000, 1_000));
}

#[tokio::test]
async fn nothing_else_changes_a_group_while_launches_are_at_work() {
    let mut p4 = group("p4", &["a"]);
    p4.desired = 2;
    p4.members = vec![
        member("i-x", MemberState::InService, true),
        member("i-y", MemberState::InService, true),
    ];
    let fake = Fake::of(vec![p4]);
    let adapter = adapter(&fake);
    let pool = PoolId::new("p4");
    let gone = InstanceId::new("i-x");
    let (one, two, three) = (
        order(3, "a", "t1"),
        order(3, "a", "t2"),
        order(3, "a", "t3"),
    );
    let (first, left, second, third) = tokio::join!(
        adapter.launch(&one),
        adapter.leave(&pool, &gone),
        adapter.launch(&two),
        adapter.launch(&three),
    );
    left.expect("leaves");
    for outcome in [first, second, third] {
        assert_eq!(outcome.expect("launches").granted, 3);
    }
    let world = fake.world();
    assert!(world.amid.is_empty(), "{:?}", world.amid);
    let group = world.groups.values().next().expect("the group");
    assert_eq!((group.members.len(), group.desired), (10, 10));
}

#[tokio::test]
async fn the_way_that_is_refused_is_left_by_all_and_set_one_after_another() {
    let fake = Fake::of(vec![group("p4", &["a"])]);
    let denied = || Some(error(Call::LaunchInstances, 403, "AccessDenied", "no"));
    fake.fail(
        Call::LaunchInstances,
        vec![denied(), denied(), denied(), denied()],
    );
    let adapter = adapter(&fake);
    let orders: Vec<_> = (0..6).map(|n| order(2, "a", &format!("t{n}"))).collect();
    let all = join_all(orders.iter().map(|order| adapter.launch(order))).await;
    for outcome in all {
        let outcome = outcome.expect("is taken");
        assert_eq!((outcome.way, outcome.granted), (Way::SetDesiredCapacity, 2));
    }
    let world = fake.world();
    let desired: Vec<&String> = world
        .calls
        .iter()
        .filter(|c| c.starts_with("desired"))
        .collect();
    assert_eq!(
        desired,
        [
            "desired 2",
            "desired 4",
            "desired 6",
            "desired 8",
            "desired 10",
            "desired 12"
        ]
    );
}

#[tokio::test]
async fn sc_35_trouble_before_the_ask_is_no_unknown_outcome() {
    for (by_desired, code, kind) in [
        (false, "RequestLimitExceeded", FailureKind::Throttle),
        (true, "RequestLimitExceeded", FailureKind::Throttle),
        (false, "InternalFailure", FailureKind::Transient),
    ] {
        let mut p4 = group("p4", &["a"]);
        if by_desired {
            p4 = super::spread(p4, 50, None);
        }
        let fake = Fake::of(vec![p4]);
        let adapter = adapter(&fake);
        super::read(&adapter).await;
        let describe = Call::DescribeAutoScalingGroups;
        fake.fail(describe, vec![Some(error(describe, 503, code, "later"))]);
        let zone = if by_desired { "" } else { "a" };
        let failed = adapter
            .launch(&order(1, zone, "t"))
            .await
            .expect_err("nothing was asked");
        assert_eq!(
            (failed.kind, failed.code.as_str()),
            (kind, NOT_ASKED),
            "{failed}"
        );
        assert!(fake.mutations().is_empty());
    }
}
