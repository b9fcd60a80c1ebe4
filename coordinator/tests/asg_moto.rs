//! The asg adapter end to end: over the AWS SDK, through the fault proxy, against moto, in two regions.

use std::time::{Duration, Instant};

use asg_field::{Field, order};
use drover::adapters::actuate::asg::{Owner, UNCLAIMED};
use drover::ports::actuate::{Actuator, InstanceState, OUTCOME_UNKNOWN, Way, Withdrawal};
use drover_core::model::{FailureKind, InstanceId, PoolId, Steering, Stop};
use drover_tests::aws_proxy::{Cause, Deed, Effect, Fault, Ration, Scenario, Timing};
use drover_tests::moto::{Mixed, NewGroup};
use drover_tests::wait;

#[path = "asg/field.rs"]
mod asg_field;
#[path = "asg/peer.rs"]
mod peer;

const EAST: &str = "us-east-1";
const WEST: &str = "us-west-2";
/// Under a loaded machine.
const SOON: Duration = Duration::from_secs(60);

fn shortage(group: &str, left: u32) -> Scenario {
    Scenario {
        rations: vec![Ration {
            group: Some(group.into()),
            left,
            ..Ration::default()
        }],
        ..Scenario::default()
    }
}

fn denied(action: &str) -> Fault {
    let message = format!("User is not authorized to perform: autoscaling:{action}");
    Fault {
        action: Some(action.into()),
        effect: Effect::Error {
            status: 403,
            code: "AccessDenied".into(),
            message,
        },
        ..Fault::default()
    }
}

#[tokio::test]
async fn sc_03_a_dry_region_is_told_in_the_call_and_the_next_one_serves() {
    let east = NewGroup::new("e1-p4", "p4d.24xlarge", &["us-east-1a", "us-east-1b"]);
    let west = NewGroup::new("e1-p4w", "p4d.24xlarge", &["us-west-2a"]);
    let mut scenario = shortage("e1-p4", 0);
    scenario.rations[0].zone = Some("us-east-1b".into());
    let field = Field::new(&[(EAST, east), (WEST, west)], scenario).await;
    let asg = field.adapter().await;
    let read = field.read(&asg).await;
    assert!(
        read.iter()
            .all(|r| r.steering == Steering::Zone && r.stops.is_empty()),
        "{read:?}"
    );
    assert_eq!(read[0].offerings.len(), 2);
    assert_eq!(read[0].offerings[0].gpu_model, "a100");

    let dry = asg
        .launch(&order("e1-p4", "us-east-1b", "t1", 3))
        .await
        .expect("answers");
    assert_eq!((dry.way, dry.granted), (Way::LaunchInstances, 0));
    assert_eq!(
        (dry.failures.len(), dry.failures[0].kind),
        (1, FailureKind::Shortage)
    );
    assert!(
        dry.failures[0]
            .message
            .contains("do not have sufficient p4d.24xlarge capacity"),
        "{dry:?}"
    );
    // SC-98: a shortage of one zone closes no other.
    let open = asg
        .launch(&order("e1-p4", "us-east-1a", "t2", 1))
        .await
        .expect("launches");
    assert_eq!(open.granted, 1);
    let served = asg
        .launch(&order("e1-p4w", "us-west-2a", "t3", 3))
        .await
        .expect("launches");
    assert_eq!((served.granted, served.instances.len()), (3, 3));

    let read = field.read(&asg).await;
    let ids: Vec<_> = read[1].instances.iter().map(|i| i.id.clone()).collect();
    assert_eq!(ids.len(), 3);
    assert!(served.instances.iter().all(|id| ids.contains(id)));
    assert!(
        read[1]
            .instances
            .iter()
            .all(|i| i.state == InstanceState::Running && i.protected == Some(true))
    );
    assert!(
        read[1].instances.iter().all(|i| i.launched.is_some()),
        "EC2 tells when"
    );

    asg.leave(&PoolId::new("e1-p4w"), &served.instances[1])
        .await
        .expect("leaves");
    asg.leave(&PoolId::new("e1-p4w"), &served.instances[1])
        .await
        .expect("and has left");
    let ledger = field.proxy.ledger();
    assert_eq!(
        (
            ledger.launched(EAST, "e1-p4"),
            ledger.launched(WEST, "e1-p4w")
        ),
        (1, 3)
    );
    assert_eq!(
        (
            ledger.ends.len(),
            ledger.victims().len(),
            ledger.unprotected.len()
        ),
        (1, 0, 0)
    );
    assert_eq!(ledger.ends[0].instance, served.instances[1].as_str());
    assert_eq!(field.read(&asg).await[1].instances.len(), 2);
}

#[tokio::test]
async fn the_fallback_asks_once_and_its_failures_are_read_from_activities() {
    let group = NewGroup::new("e2-g5", "g5.xlarge", &["us-east-1a"]);
    let mut scenario = shortage("e2-g5", 2);
    scenario.faults.push(denied("LaunchInstances"));
    let field = Field::new(&[(EAST, group)], scenario).await;
    let asg = field.adapter().await;
    field.read(&asg).await;
    let outcome = asg
        .launch(&order("e2-g5", "us-east-1a", "t1", 5))
        .await
        .expect("is taken");
    assert_eq!((outcome.way, outcome.granted), (Way::SetDesiredCapacity, 5));
    let read = field.read(&asg).await.remove(0);
    assert_eq!((read.instances.len(), read.steering), (2, Steering::Group));
    assert_eq!(read.failures.len(), 1, "{:?}", read.failures);
    assert_eq!(read.failures[0].kind, FailureKind::Shortage);
    assert_eq!(
        read.failures[0].offering.as_ref(),
        read.offerings.first().map(|o| &o.id)
    );
    // Nothing more is asked while three are to come; they come when there is room.
    let mut open = Scenario::default();
    open.faults.push(denied("LaunchInstances"));
    field.proxy.set(open).await;
    assert_eq!(field.read(&asg).await[0].instances.len(), 5);
    let more = asg
        .launch(&order("e2-g5", "us-east-1a", "t2", 1))
        .await
        .expect("is taken");
    assert_eq!((more.way, more.granted), (Way::SetDesiredCapacity, 1));
    let ledger = field.proxy.ledger();
    assert_eq!(ledger.launched(EAST, "e2-g5"), 6);
    assert_eq!(
        ledger.calls_of("LaunchInstances"),
        1,
        "a refusal of the way is remembered"
    );
    assert!(ledger.victims().is_empty());
}

#[tokio::test]
async fn mixed_on_demand_and_spot_grows_by_the_fallback() {
    let mut group = NewGroup::new("e3-mix", "", &["us-east-1a", "us-east-1b"]);
    group.mixed = Some(Mixed {
        types: vec!["g5.xlarge".into(), "g5.2xlarge".into()],
        on_demand_percent: 50,
        weight: None,
    });
    let field = Field::new(&[(EAST, group)], Scenario::default()).await;
    let asg = field.adapter().await;
    let read = field.read(&asg).await.remove(0);
    assert_eq!(read.steering, Steering::Group);
    assert_eq!(read.offerings.len(), 1);
    assert_eq!(
        read.offerings[0].instance_type, "g5.xlarge",
        "planned at the smallest"
    );
    assert_eq!(
        read.offerings[0].price.0, 1_212_000,
        "budgeted at the dearest"
    );
    let launch = drover::ports::actuate::LaunchOrder {
        offering: read.offerings[0].id.clone(),
        ..order("e3-mix", "", "t", 2)
    };
    assert_eq!(
        asg.launch(&launch).await.expect("is taken").way,
        Way::SetDesiredCapacity
    );
    assert_eq!(field.proxy.ledger().calls_of("LaunchInstances"), 0);
    assert_eq!(field.proxy.ledger().launched(EAST, "e3-mix"), 2);
}

#[tokio::test]
async fn sc_30_lost_replies_launch_nothing_twice() {
    let group = NewGroup::new("e4-g5", "g5.xlarge", &["us-east-1a"]);
    let lost = |action: &str, times| Fault {
        action: Some(action.into()),
        times: Some(times),
        effect: Effect::ReplyLost,
        ..Fault::default()
    };
    let field = Field::new(
        &[(EAST, group)],
        Scenario {
            faults: vec![lost("LaunchInstances", 2)],
            ..Scenario::default()
        },
    )
    .await;
    let asg = field.adapter().await;
    field.read(&asg).await;
    let outcome = asg
        .launch(&order("e4-g5", "us-east-1a", "t1", 4))
        .await
        .expect("the third reply comes through");
    assert_eq!(outcome.instances.len(), 4);
    assert_eq!(field.proxy.ledger().launched(EAST, "e4-g5"), 4);
    // Every reply is lost: the outcome is unknown, and a process that starts anew settles it.
    field
        .proxy
        .set(Scenario {
            faults: vec![lost("LaunchInstances", 4)],
            ..Scenario::default()
        })
        .await;
    let failed = asg
        .launch(&order("e4-g5", "us-east-1a", "t2", 3))
        .await
        .expect_err("no reply");
    assert_eq!(failed.code, OUTCOME_UNKNOWN, "{failed}");
    let anew = field.adapter().await;
    let settled = anew
        .settle(
            &order("e4-g5", "us-east-1a", "t2", 3),
            &outcome.instances,
            field.now(),
        )
        .await
        .expect("settles");
    assert_eq!(settled.instances.len(), 3);
    // A termination whose reply is lost is looked up and not repeated.
    field
        .proxy
        .set(Scenario {
            faults: vec![lost("TerminateInstanceInAutoScalingGroup", 9)],
            ..Scenario::default()
        })
        .await;
    anew.leave(&PoolId::new("e4-g5"), &settled.instances[0])
        .await
        .expect("has left");
    let ledger = field.proxy.ledger();
    assert_eq!(ledger.launched(EAST, "e4-g5"), 7);
    assert_eq!(ledger.calls_of("TerminateInstanceInAutoScalingGroup"), 1);
    assert_eq!((ledger.ends.len(), ledger.victims().len()), (1, 0));
}

#[tokio::test]
async fn a_dead_region_fails_alone_and_in_time() {
    let east = NewGroup::new("e5-g5", "g5.xlarge", &["us-east-1a"]);
    let west = NewGroup::new("e5-g5w", "g5.xlarge", &["us-west-2a"]);
    let slow = Fault {
        region: Some(WEST.into()),
        effect: Effect::Latency { ms: 600_000 },
        ..Fault::default()
    };
    let field = Field::new(
        &[(EAST, east), (WEST, west)],
        Scenario {
            faults: vec![slow],
            ..Scenario::default()
        },
    )
    .await;
    let asg = field.adapter().await;
    let begun = Instant::now();
    let read = asg.read(&field.pools()).await;
    assert!(read[0].1.is_ok(), "{:?}", read[0].1);
    let late = read[1].1.as_ref().expect_err("does not answer");
    assert_eq!(late.kind, FailureKind::Transient, "{late}");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "the dead region held the call for {:?}",
        begun.elapsed()
    );
    asg.launch(&order("e5-g5", "us-east-1a", "t", 1))
        .await
        .expect("the other region goes on");
}

#[tokio::test]
async fn sc_88_the_owner_tag_decides() {
    let groups = [
        ("e6-none", None),
        ("e6-other", Some("elsewhere/1")),
        ("e6-newer", Some("store-1/9")),
        ("e6-free", Some(UNCLAIMED)),
    ];
    let made: Vec<_> = groups
        .iter()
        .map(|(name, tag)| {
            let group = NewGroup::new(name, "g5.xlarge", &["us-east-1a"]);
            (
                EAST,
                tag.map_or(group.clone(), |tag| group.tag("drover:owner", tag)),
            )
        })
        .collect();
    let field = Field::untagged(&made, Scenario::default()).await;
    let asg = field.adapter().await;
    let read = field.read(&asg).await;
    for n in 0..3 {
        assert!(
            matches!(read[n].stops[..], [Stop::NotOurs { .. }]),
            "{}: {:?}",
            groups[n].0,
            read[n].stops
        );
        assert!(!read[n].removable);
        let refused = asg
            .launch(&order(groups[n].0, "us-east-1a", "t", 1))
            .await
            .expect_err("is not ours");
        assert_eq!(refused.kind, FailureKind::Permission, "{refused}");
    }
    assert!(read[3].stops.is_empty());
    assert!(field.proxy.ledger().mutations.is_empty());
    asg.launch(&order("e6-free", "us-east-1a", "t", 1))
        .await
        .expect("is claimed and launches");
    // The claim is in AWS: another store is refused, the same store opened again is not.
    let rival = field
        .adapter_of(Owner::new("store-2", 1).expect("an owner"))
        .await;
    let refused = rival
        .launch(&order("e6-free", "us-east-1a", "u", 1))
        .await
        .expect_err("is taken");
    assert!(refused.message.contains("another coordinator"), "{refused}");
    let later = field
        .adapter_of(Owner::new("store-1", 6).expect("an owner"))
        .await;
    later
        .guard(&PoolId::new("e6-free"))
        .await
        .expect("is ours still");
    let stale = asg
        .launch(&order("e6-free", "us-east-1a", "v", 1))
        .await
        .expect_err("this one is the old copy now");
    assert!(stale.message.contains("old copy"), "{stale}");
    assert_eq!(field.proxy.ledger().launches.len(), 1);
}

#[tokio::test]
async fn a_running_group_of_200_is_read_and_nothing_is_changed() {
    let mut group = NewGroup::new("e7-big", "g5.xlarge", &["us-east-1a"]);
    (group.max, group.desired, group.protects_new) = (200, 200, false);
    let field = Field::new(&[(EAST, group)], Scenario::default()).await;
    let asg = field.adapter().await;
    let read = field.read(&asg).await.remove(0);
    assert_eq!(read.instances.len(), 200);
    assert!(
        read.instances
            .iter()
            .all(|i| i.protected == Some(false) && i.launched.is_some())
    );
    assert!(
        read.warnings
            .iter()
            .any(|w| w.contains("200 members are not protected")),
        "{:?}",
        read.warnings
    );
    assert!(field.proxy.ledger().mutations.is_empty());
    asg.guard(&PoolId::new("e7-big")).await.expect("guards");
    assert!(
        field.read(&asg).await[0]
            .instances
            .iter()
            .all(|i| i.protected == Some(true))
    );
    assert_eq!(field.proxy.ledger().calls_of("SetInstanceProtection"), 4);
}

#[tokio::test]
async fn sc_02_the_minimum_holds_and_late_instances_are_pending() {
    let mut group = NewGroup::new("e8-min", "g5.xlarge", &["us-east-1a"]);
    (group.min, group.desired) = (1, 1);
    let timing = vec![Timing {
        pending_ms: 600_000,
        ..Timing::default()
    }];
    let field = Field::new(
        &[(EAST, group)],
        Scenario {
            timing,
            ..Scenario::default()
        },
    )
    .await;
    let asg = field.adapter().await;
    let only: InstanceId = field.read(&asg).await[0].instances[0].id.clone();
    let held = asg
        .leave(&PoolId::new("e8-min"), &only)
        .await
        .expect_err("the minimum holds it");
    assert_eq!(held.kind, FailureKind::Quota, "{held}");
    let new = asg
        .launch(&order("e8-min", "us-east-1a", "t", 1))
        .await
        .expect("launches")
        .instances
        .remove(0);
    let read = field.read(&asg).await.remove(0);
    let state = |id: &InstanceId| read.instances.iter().find(|i| i.id == *id).map(|i| i.state);
    assert_eq!(
        (state(&new), state(&only)),
        (Some(InstanceState::Pending), Some(InstanceState::Running))
    );
    assert!(field.proxy.ledger().ends.is_empty());
}

#[tokio::test]
async fn sc_29_an_orphan_whose_termination_fails_stays_on_the_books() {
    let mut group = NewGroup::new("e9-orphan", "g5.xlarge", &["us-east-1a"]);
    group.desired = 1;
    let effect = Effect::Error {
        status: 500,
        code: "InternalFailure".into(),
        message: "An internal error has occurred".into(),
    };
    let fault = Fault {
        action: Some("TerminateInstanceInAutoScalingGroup".into()),
        times: Some(2),
        effect,
        ..Fault::default()
    };
    let scenario = Scenario {
        faults: vec![fault],
        ..Scenario::default()
    };
    let field = Field::new(&[(EAST, group)], scenario).await;
    let asg = field.adapter().await;
    let orphan = field.read(&asg).await[0].instances[0].id.clone();
    let pool = PoolId::new("e9-orphan");
    for calls in 1..=2 {
        let failed = asg.leave(&pool, &orphan).await.expect_err("fails");
        assert_eq!(failed.kind, FailureKind::Transient, "{failed}");
        let made = field
            .proxy
            .ledger()
            .calls_of("TerminateInstanceInAutoScalingGroup");
        assert_eq!(made, calls, "a termination is sent once");
        let shown = field.read(&asg).await.remove(0);
        assert_eq!(shown.instances[0].id, orphan, "on the books");
        assert_eq!(shown.instances[0].state, InstanceState::Running);
    }
    asg.leave(&pool, &orphan).await.expect("leaves in the end");
    assert_eq!(field.proxy.ledger().ends.len(), 1);
}

#[tokio::test]
async fn sc_72_texts_of_activities_are_told_apart() {
    let table = [
        (
            "e10-quota",
            "You have requested more vCPU capacity than your current vCPU limit of 96 allows for the instance bucket.",
            FailureKind::Quota,
        ),
        (
            "e10-config",
            "The launch template lt-0abc does not exist. Launching EC2 instance failed.",
            FailureKind::Config,
        ),
        (
            "e10-new",
            "The moon is full (reference 0815), and so are we.",
            FailureKind::Transient,
        ),
    ];
    for (name, text, kind) in table {
        let group = NewGroup::new(name, "g5.xlarge", &["us-east-1a"]);
        let mut scenario = shortage(name, 0);
        scenario.rations[0].message = Some(text.into());
        scenario.faults.push(denied("LaunchInstances"));
        let field = Field::new(&[(EAST, group)], scenario).await;
        let asg = field.adapter().await;
        field.read(&asg).await;
        asg.launch(&order(name, "us-east-1a", "t1", 2))
            .await
            .expect("is taken");
        let read = field.read(&asg).await.remove(0);
        let found = &read.failures[0];
        assert_eq!(found.kind, kind, "{name}: {}", found.message);
        assert!(
            found.message.starts_with(text),
            "in AWS's words: {}",
            found.message
        );
        assert_eq!(read.unfilled, 2, "{name}");
    }
}

#[tokio::test]
async fn a_member_that_was_stopped_behind_our_back_is_told_and_taken_out() {
    let mut group = NewGroup::new("e11-dead", "g5.xlarge", &["us-east-1a"]);
    group.desired = 2;
    let field = Field::new(&[(EAST, group)], Scenario::default()).await;
    let asg = field.adapter().await;
    let read = field.read(&asg).await.remove(0);
    assert!(read.dead.is_empty());
    let victim = read.instances[0].id.clone();
    let form = [("InstanceId.1".to_owned(), victim.as_str().to_owned())];
    let moto = drover_tests::moto::Moto::shared().await;
    moto.ec2(EAST, "StopInstances", &form).await.expect("stops");
    // A process that starts anew sees it at its first look.
    let anew = field.adapter().await;
    let read = field.read(&anew).await.remove(0);
    let dead: Vec<_> = read
        .dead
        .iter()
        .map(|dead| (&dead.id, dead.stopped))
        .collect();
    assert_eq!(dead, [(&victim, true)]);
    anew.bury(&PoolId::new("e11-dead"), &victim)
        .await
        .expect("is taken out");
    let read = field.read(&anew).await.remove(0);
    assert_eq!(
        (read.instances.len(), read.dead.len(), read.unfilled),
        (1, 0, 0)
    );
    let ledger = field.proxy.ledger();
    assert_eq!((ledger.ends.len(), ledger.victims().len()), (1, 0));
    assert_eq!(ledger.launched(EAST, "e11-dead"), 0, "nobody replaces it");
}

#[tokio::test]
async fn a_member_that_was_ended_behind_our_back_is_told_and_taken_out_by_nobody_else() {
    let mut group = NewGroup::new("e12-ended", "g5.xlarge", &["us-east-1a"]);
    group.desired = 2;
    // The group would replace it, and has not looked yet.
    let scenario = Scenario {
        health_check_ms: 3_600_000,
        ..Scenario::default()
    };
    let field = Field::new(&[(EAST, group)], scenario).await;
    let asg = field.adapter().await;
    let victim = field.read(&asg).await[0].instances[0].id.clone();
    let deed = Deed::TerminateInEc2 {
        instance: Some(victim.as_str().to_owned()),
        reason: Some((
            "Server.InternalError".to_owned(),
            "Server.InternalError: Internal error on launch".to_owned(),
        )),
    };
    let done = field.proxy.act(EAST, "e12-ended", deed).await;
    assert_eq!(done.refused, None);
    let anew = field.adapter().await;
    let read = field.read(&anew).await.remove(0);
    let dead: Vec<_> = read
        .dead
        .iter()
        .map(|dead| (&dead.id, dead.stopped))
        .collect();
    assert_eq!(dead, [(&victim, false)]);
    anew.bury(&PoolId::new("e12-ended"), &victim)
        .await
        .expect("is taken out");
    let read = field.read(&anew).await.remove(0);
    assert_eq!(
        (read.instances.len(), read.dead.len(), read.unfilled),
        (1, 0, 0)
    );
    // Once more changes nothing, and the group finds nothing to replace.
    anew.bury(&PoolId::new("e12-ended"), &victim)
        .await
        .expect("it is out");
    field.proxy.set(Scenario::default()).await;
    let read = field.read(&anew).await.remove(0);
    assert_eq!(read.instances.len(), 1);
    let ledger = field.proxy.ledger();
    let ends: Vec<_> = ledger.ends.iter().map(|end| end.cause).collect();
    assert_eq!(ends, [Cause::Outside, Cause::Decrement]);
    assert_eq!(ledger.launched(EAST, "e12-ended"), 0, "nobody replaces it");
}

/// Nine serve, three are to come and do not; before it is lowered two of them come after all, and show late.
#[tokio::test]
async fn sc_01_desired_is_never_lowered_on_an_old_reading() {
    let mut group = NewGroup::new("e13-old", "g5.xlarge", &["us-east-1a"]);
    group.desired = 9;
    let mut scenario = shortage("e13-old", 0);
    scenario.faults.push(denied("LaunchInstances"));
    scenario.timing.push(Timing {
        hide_ms: 4_000,
        describe_lag_ms: 1_000,
        ..Timing::default()
    });
    let field = Field::new(&[(EAST, group)], scenario.clone()).await;
    let asg = field.adapter().await;
    let pool = PoolId::new("e13-old");
    let order = order("e13-old", "us-east-1a", "t1", 3);
    asg.guard(&pool).await.expect("guards");
    let asked = asg.launch(&order).await.expect("is taken");
    assert_eq!((asked.way, asked.granted), (Way::SetDesiredCapacity, 3));
    wait::until_async("three are missing", SOON, async || {
        let read = field.read(&asg).await.remove(0);
        (read.instances.len() == 9 && read.unfilled == 3).then_some(())
    })
    .await;
    // After that reading, and before the write.
    scenario.rations[0].left = 2;
    field.proxy.set(scenario).await;
    let done = wait::until_async("it is withdrawn", SOON, async || {
        match asg.withdraw(&pool).await.expect("a step") {
            Withdrawal::Waits { .. } => None,
            done => Some(done),
        }
    })
    .await;
    assert_eq!(done, Withdrawal::Done { from: 12, to: 11 });
    let ledger = field.proxy.ledger();
    let lowered: Vec<_> = ledger
        .mutations
        .iter()
        .filter(|m| m.action == "SetDesiredCapacity")
        .map(|m| m.what.as_str())
        .collect();
    assert_eq!(lowered, ["12", "11"], "never to nine");
    assert!(ledger.ends.is_empty(), "{:?}", ledger.ends);
    wait::until_async("all eleven show", SOON, async || {
        let read = field.read(&asg).await.remove(0);
        (read.instances.len() == 11 && read.unfilled == 0).then_some(())
    })
    .await;
}
