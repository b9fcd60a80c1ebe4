//! What the peer gives that moto does not, met by the adapter: answers that do not come, tokens, refusals of every kind in
//! AWS's words, hooks, members that take their time to come and to go.

use super::*;
use drover::ports::actuate::LaunchOrder;
use drover_tests::aws_proxy::{Service, Why};

/// What is launched of an ask whose answers are lost in each way, by the count of the proxy: what was asked for.
#[tokio::test]
async fn sc_30_no_way_of_getting_no_answer_launches_twice() {
    let ways = [
        ("p1-drop", Effect::Drop),
        ("p1-page", Effect::Html { status: 502 }),
        ("p1-lost", Effect::ReplyLost),
        // Longer than the adapter waits for an answer.
        ("p1-late", Effect::ReplyLate { ms: 16_000 }),
    ];
    let groups = ways
        .clone()
        .map(|(name, _)| (EAST, NewGroup::new(name, "g5.xlarge", &["us-east-1a"])));
    let faults = ways.clone().map(|(name, effect)| Fault {
        action: Some("LaunchInstances".into()),
        group: Some(name.into()),
        times: Some(1),
        effect,
        ..Fault::default()
    });
    let scenario = Scenario {
        faults: faults.to_vec(),
        ..Scenario::default()
    };
    let field = Field::new(&groups, scenario).await;
    let asg = field.adapter().await;
    field.read(&asg).await;
    for (name, _) in ways {
        let asked = order(name, "us-east-1a", "t1", 2);
        let outcome = match asg.launch(&asked).await {
            Err(failed) if failed.code == OUTCOME_UNKNOWN => {
                asg.settle(&asked, &[], field.now()).await
            }
            answered => answered,
        };
        let outcome = outcome.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((outcome.granted, outcome.instances.len()), (2, 2), "{name}");
        let ledger = field.proxy.ledger();
        assert_eq!(
            ledger.launched(EAST, name),
            2,
            "{name}: {:?}",
            ledger.mutations
        );
    }
    let ledger = field.proxy.ledger();
    assert_eq!(
        ledger.calls_of("LaunchInstances"),
        8,
        "each twice, with its token"
    );
    assert!(ledger.ends.is_empty());
}

/// Two processes with the same intent, one of which comes while the call of the other is still at work.
#[tokio::test]
async fn i4_a_call_that_is_still_at_work_is_not_made_a_second_time() {
    let group = NewGroup::new("p2-work", "g5.xlarge", &["us-east-1a"]);
    let scenario = Scenario {
        timing: vec![Timing {
            launch_ms: 3_000,
            ..Timing::default()
        }],
        ..Scenario::default()
    };
    let field = Field::new(&[(EAST, group)], scenario).await;
    let (first, second) = (field.adapter().await, field.adapter().await);
    let asked = order("p2-work", "us-east-1a", "t1", 3);
    let begin = async {
        field.read(&first).await;
        first.launch(&asked).await.expect("launches")
    };
    let meanwhile = async {
        wait::until_async("the first is at work", SOON, async || {
            (field.proxy.ledger().calls_of("LaunchInstances") > 0).then_some(())
        })
        .await;
        second.launch(&asked).await
    };
    let (outcome, other) = tokio::join!(begin, meanwhile);
    let other = match other {
        Ok(same) => same,
        Err(failed) => {
            assert_eq!(failed.code, OUTCOME_UNKNOWN, "{failed}");
            second
                .settle(&asked, &[], field.now())
                .await
                .expect("settles")
        }
    };
    assert_eq!(other.instances, outcome.instances, "the same ones");
    let ledger = field.proxy.ledger();
    assert_eq!(
        ledger.launched(EAST, "p2-work"),
        3,
        "{:?}",
        ledger.mutations
    );
    assert!(ledger.calls_of("LaunchInstances") > 1, "both have called");
}

/// A token that AWS knows for another ask is an error, and launches nothing.
#[tokio::test]
async fn a_token_of_another_ask_launches_nothing() {
    let group = NewGroup::new("p3-token", "g5.xlarge", &["us-east-1a"]);
    let field = Field::new(&[(EAST, group)], Scenario::default()).await;
    let asg = field.adapter().await;
    field.read(&asg).await;
    let asked = order("p3-token", "us-east-1a", "t1", 1);
    asg.launch(&asked).await.expect("launches");
    let anew = field.adapter().await;
    let other = LaunchOrder { count: 2, ..asked };
    anew.launch(&other).await.expect_err("AWS refuses it");
    assert_eq!(field.proxy.ledger().launched(EAST, "p3-token"), 1);
}

/// Every refusal of a launch in AWS's code and words: in the reply where there is one, in an activity otherwise.
#[tokio::test]
async fn sc_72_each_refusal_is_told_apart_in_both_ways() {
    use FailureKind::{Config, Permission, Price, Quota, Shortage, Throttle, Transient};
    let table = [
        ("shortage", Why::Shortage, Shortage),
        ("unfulfillable", Why::Unfulfillable, Shortage),
        ("unsupported", Why::Unsupported, Shortage),
        ("reservation", Why::Reservation, Shortage),
        ("vcpus", Why::Vcpus, Quota),
        ("spot-count", Why::SpotCount, Quota),
        ("addresses", Why::Addresses, Quota),
        ("volumes", Why::Volumes, Quota),
        ("spot-price", Why::SpotPrice, Price),
        ("image", Why::Image, Config),
        ("template", Why::Template, Config),
        ("permission", Why::Permission, Permission),
        ("throttle", Why::Throttle, Throttle),
        ("internal", Why::Internal, Transient),
    ];
    let named = |way: &str, name: &str| format!("why-{way}-{name}");
    let mut scenario = Scenario::default();
    let mut groups = Vec::new();
    for (name, why, _) in table {
        for way in ["call", "wish"] {
            let group = named(way, name);
            groups.push((EAST, NewGroup::new(&group, "g5.xlarge", &["us-east-1a"])));
            if way == "wish" {
                let refused = denied("LaunchInstances");
                scenario.faults.push(Fault {
                    group: Some(group.clone()),
                    ..refused
                });
            }
            scenario.rations.push(Ration {
                group: Some(group),
                why: Some(why),
                ..Ration::default()
            });
        }
    }
    let field = Field::new(&groups, scenario).await;
    let asg = field.adapter().await;
    let places = field.pools();
    field.read(&asg).await;
    for (name, _, kind) in table {
        let (call, wish) = (named("call", name), named("wish", name));
        let told = asg.launch(&order(&call, "us-east-1a", "t", 1)).await;
        let told = told.unwrap_or_else(|e| panic!("{call}: {e}"));
        assert_eq!(
            (told.way, told.granted),
            (Way::LaunchInstances, 0),
            "{call}"
        );
        assert_eq!(told.failures[0].kind, kind, "{call}: {:?}", told.failures);
        let taken = asg.launch(&order(&wish, "us-east-1a", "t", 1)).await;
        let taken = taken.unwrap_or_else(|e| panic!("{wish}: {e}"));
        assert_eq!(
            (taken.way, taken.granted),
            (Way::SetDesiredCapacity, 1),
            "{wish}"
        );
    }
    let read = field.read(&asg).await;
    let mut wrong = Vec::new();
    for (name, _, kind) in table {
        let wish = PoolId::new(named("wish", name));
        let at = places.iter().position(|pool| *pool == wish);
        let failures = &read[at.expect("its pool")].failures;
        if failures.iter().map(|f| f.kind).ne([kind]) {
            wrong.push((name, failures));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(field.proxy.ledger().launches.is_empty());
}

/// A launching hook holds what comes; what goes takes its time. Neither is taken for more or for less than it is.
#[tokio::test]
async fn what_waits_at_a_hook_is_coming_and_what_ends_slowly_is_leaving() {
    let group = NewGroup::new("p5-slow", "g5.xlarge", &["us-east-1a"]);
    let scenario = Scenario {
        hook_second_ms: 100,
        timing: vec![Timing {
            terminating_ms: 3_000,
            ..Timing::default()
        }],
        ..Scenario::default()
    };
    let field = Field::new(&[(EAST, group)], scenario).await;
    let hook = [
        ("AutoScalingGroupName", "p5-slow"),
        ("LifecycleHookName", "in"),
        ("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING"),
        ("DefaultResult", "CONTINUE"),
        ("HeartbeatTimeout", "30"),
    ];
    let put = field
        .proxy
        .call(EAST, Service::AutoScaling, "PutLifecycleHook", &hook);
    put.await.expect("a hook");
    let asg = field.adapter().await;
    let pool = PoolId::new("p5-slow");
    field.read(&asg).await;
    let came = asg.launch(&order("p5-slow", "us-east-1a", "t", 1)).await;
    let id = came.expect("launches").instances.remove(0);
    let state = async || {
        let read = field.read(&asg).await.remove(0);
        let found = read.instances.iter().find(|i| i.id == id);
        (found.map(|i| i.state), read.unfilled)
    };
    assert_eq!(
        state().await,
        (Some(InstanceState::Pending), 0),
        "it is held"
    );
    wait::until_async("the hook lets it go on", SOON, async || {
        (state().await.0 == Some(InstanceState::Running)).then_some(())
    })
    .await;
    asg.leave(&pool, &id).await.expect("leaves");
    assert_eq!(
        state().await,
        (Some(InstanceState::Leaving), 0),
        "it takes its time"
    );
    asg.leave(&pool, &id).await.expect("is on its way");
    wait::until_async("it is gone", SOON, async || {
        matches!(state().await.0, None | Some(InstanceState::Gone)).then_some(())
    })
    .await;
    let ledger = field.proxy.ledger();
    let ends: Vec<_> = ledger.ends.iter().map(|end| end.cause).collect();
    assert_eq!(ends, [Cause::Decrement]);
    assert_eq!(ledger.launched(EAST, "p5-slow"), 1, "nobody made up for it");
}

/// Somebody lowers the group's maximum between the reading and the ask: nothing is launched beyond it, in either way.
#[tokio::test]
async fn a_maximum_that_was_lowered_meanwhile_holds_in_both_ways() {
    let names = ["p6-call", "p6-wish"];
    let groups = names.map(|name| (EAST, NewGroup::new(name, "g5.xlarge", &["us-east-1a"])));
    let refused = Fault {
        group: Some("p6-wish".into()),
        ..denied("LaunchInstances")
    };
    let scenario = Scenario {
        faults: vec![refused],
        ..Scenario::default()
    };
    let field = Field::new(&groups, scenario).await;
    let asg = field.adapter().await;
    field.read(&asg).await;
    for name in names {
        let deed = Deed::SetLimits {
            min: None,
            max: Some(1),
        };
        field.proxy.act(EAST, name, deed).await;
        let told = asg.launch(&order(name, "us-east-1a", "t", 3)).await;
        let kinds: Vec<_> = match &told {
            Ok(outcome) => outcome.failures.iter().map(|f| f.kind).collect(),
            Err(error) => vec![error.kind],
        };
        assert_eq!(kinds, [FailureKind::Quota], "{name}: {told:?}");
        assert!(field.proxy.ledger().launched(EAST, name) <= 1, "{name}");
    }
    assert!(field.proxy.ledger().victims().is_empty());
}
