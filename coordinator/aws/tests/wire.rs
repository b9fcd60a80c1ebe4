//! The SDK client over the wire: against moto through the fault proxy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drover_aws::{
    AwsApi, AwsEvents, AwsMend, AwsOffers, AwsSurvey, Budget, BudgetSettings, Budgeted, Call,
    ClientToken, Credentials, Endpoints, FailureKind, GroupName, GroupTemplate, InstanceId,
    InstanceState, LaunchAsk, LaunchPlace, MemberState, Region, SdkAws, SdkSettings, TokioClock,
};
use drover_tests::aws_proxy::{AwsProxy, Cause, Effect, Fault, Ration, Scenario, Timing};
use drover_tests::moto::{Moto, NewGroup};

const REGION: &str = "us-east-1";

async fn client(url: &str) -> SdkAws {
    let mut settings = SdkSettings::new(Region::from(REGION));
    settings.endpoints = Endpoints {
        default: Some(url.to_owned()),
        by_region: BTreeMap::new(),
    };
    settings.credentials = Credentials::Fixed {
        key_id: "x".into(),
        secret: "y".into(),
    };
    // moto on a busy machine is slower than AWS.
    settings.attempt_timeout = Duration::from_secs(20);
    SdkAws::new(settings).await
}

async fn set_up(group: NewGroup, scenario: Scenario) -> (AwsProxy, SdkAws, Region, GroupName) {
    let moto = Moto::shared().await;
    moto.create_group(REGION, &group).await;
    let proxy = AwsProxy::start(moto.url(), scenario)
        .await
        .expect("a proxy");
    let aws = client(&proxy.url()).await;
    (proxy, aws, Region::from(REGION), GroupName::new(group.name))
}

fn ask(group: &GroupName, count: u32, zone: &str, token: &str) -> LaunchAsk {
    LaunchAsk {
        group: group.clone(),
        count,
        place: Some(LaunchPlace::Zone(zone.to_owned())),
        token: ClientToken::from(token),
    }
}

fn error(code: &str, message: &str) -> Effect {
    Effect::Error {
        status: 400,
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

#[tokio::test]
async fn a_launch_is_repeatable_and_lands_in_its_zone() {
    let group = NewGroup::new("wire-launch", "p4d.24xlarge", &["us-east-1a", "us-east-1b"])
        .tag("drover:owner", "s/1");
    let (proxy, aws, region, name) = set_up(group, Scenario::default()).await;
    let first = aws
        .launch_instances(&region, &ask(&name, 3, "us-east-1b", "t-1"))
        .await
        .expect("launches");
    let again = aws
        .launch_instances(&region, &ask(&name, 3, "us-east-1b", "t-1"))
        .await
        .expect("answers again");
    assert_eq!(first.instance_ids().len(), 3);
    assert_eq!(first, again);
    assert_eq!(first.launched[0].zone.as_deref(), Some("us-east-1b"));
    assert_eq!(proxy.ledger().launched(REGION, "wire-launch"), 3);

    let other = aws
        .launch_instances(&region, &ask(&name, 4, "us-east-1b", "t-1"))
        .await
        .expect_err("is refused");
    assert_eq!(other.kind, FailureKind::TokenMismatch);
    assert!(!other.may_have_applied);

    let groups = aws
        .describe_groups(&region, &[name.clone(), "wire-nothing".into()])
        .await
        .expect("describes");
    assert_eq!(groups.len(), 1, "an unknown group is absent");
    let seen = &groups[&name];
    assert_eq!((seen.min, seen.max, seen.desired), (0, 20, 3));
    assert_eq!(seen.tags["drover:owner"], "s/1");
    assert!(matches!(seen.template, GroupTemplate::Template(_)));
    assert!(
        seen.members
            .iter()
            .all(|m| m.zone.as_deref() == Some("us-east-1b") && m.protected)
    );

    let GroupTemplate::Template(template) = &seen.template else {
        unreachable!("checked above")
    };
    let facts = aws
        .describe_template(&region, template)
        .await
        .expect("describes")
        .expect("is there");
    assert_eq!(facts.instance_type.as_deref(), Some("p4d.24xlarge"));
    let types = aws
        .describe_instance_types(&region, &["p4d.24xlarge".to_owned()])
        .await
        .expect("describes");
    let p4 = &types["p4d.24xlarge"];
    assert_eq!((p4.vcpus, p4.memory_mib), (Some(96), Some(1_179_648)));
    assert_eq!((p4.gpus[0].model.as_str(), p4.gpus[0].count), ("A100", 8));

    let mut ids = first.instance_ids();
    ids.push(InstanceId::from("i-00000000000000000"));
    let instances = aws
        .describe_instances(&region, &ids)
        .await
        .expect("one unknown id does not fail the rest");
    assert_eq!(instances.len(), 3);
    assert!(
        instances
            .values()
            .all(|i| i.state == InstanceState::Running)
    );
}

#[tokio::test]
async fn a_shortage_is_in_the_reply_with_its_zone() {
    let group = NewGroup::new("wire-short", "p4d.24xlarge", &["us-east-1a", "us-east-1b"]);
    let rations = vec![Ration {
        zone: Some("us-east-1b".into()),
        left: 1,
        ..Ration::default()
    }];
    let (_proxy, aws, region, name) = set_up(
        group,
        Scenario {
            rations,
            ..Scenario::default()
        },
    )
    .await;
    let reply = aws
        .launch_instances(&region, &ask(&name, 3, "us-east-1b", "t"))
        .await
        .expect("answers");
    assert_eq!(reply.instance_ids().len(), 1);
    let refused = &reply.refused[0];
    assert_eq!(refused.class.kind, FailureKind::Shortage);
    assert_eq!(
        (refused.zone.as_deref(), refused.instance_type.as_deref()),
        (Some("us-east-1b"), Some("p4d.24xlarge"))
    );
    let other = aws
        .launch_instances(&region, &ask(&name, 3, "us-east-1a", "t2"))
        .await
        .expect("answers");
    assert_eq!(
        (other.instance_ids().len(), other.refused.len()),
        (3, 0),
        "the other zone is open"
    );
}

#[tokio::test]
async fn an_unfilled_wish_shows_as_desired_and_as_failed_activities() {
    let group = NewGroup::new("wire-wish", "g5.xlarge", &["us-east-1a"]);
    let rations = vec![Ration {
        group: Some("wire-wish".into()),
        left: 2,
        ..Ration::default()
    }];
    let (proxy, aws, region, name) = set_up(
        group,
        Scenario {
            rations,
            ..Scenario::default()
        },
    )
    .await;
    aws.set_desired_capacity(&region, &name, 5)
        .await
        .expect("is accepted");
    let seen = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes")
        .remove(&name)
        .expect("is there");
    assert_eq!((seen.desired, seen.live_count(), seen.coming()), (5, 2, 3));
    let activities = aws
        .describe_activities(&region, &name, 0)
        .await
        .expect("describes");
    assert!(activities.complete);
    let failed: Vec<_> = activities
        .items
        .iter()
        .filter_map(|a| a.class.as_ref())
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].kind, FailureKind::Shortage);
    assert_eq!(failed[0].zone.as_deref(), Some("us-east-1a"));
    let later = activities.items[0].started_unix_ms.expect("a time") + 60_000;
    assert!(
        aws.describe_activities(&region, &name, later)
            .await
            .expect("describes")
            .items
            .is_empty()
    );

    let above = aws
        .set_desired_capacity(&region, &name, 21)
        .await
        .expect_err("is above the maximum");
    assert_eq!(above.kind, FailureKind::GroupLimit);
    // Capacity comes back: the wish is filled without another ask.
    proxy.set(Scenario::default()).await;
    let seen = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes")
        .remove(&name)
        .expect("is there");
    assert_eq!((seen.live_count(), seen.coming()), (5, 0));
    assert_eq!(proxy.ledger().launched(REGION, "wire-wish"), 5);
}

#[tokio::test]
async fn an_instance_leaves_by_id_and_never_below_the_minimum() {
    let mut group = NewGroup::new("wire-leave", "g5.xlarge", &["us-east-1a"]);
    (group.min, group.desired) = (1, 2);
    let timing = vec![Timing {
        terminating_ms: 600_000,
        ..Timing::default()
    }];
    let (proxy, aws, region, name) = set_up(
        group,
        Scenario {
            timing,
            ..Scenario::default()
        },
    )
    .await;
    let seen = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes")
        .remove(&name)
        .expect("is there");
    let (first, second) = (seen.members[0].id.clone(), seen.members[1].id.clone());
    aws.terminate_with_decrement(&region, &first)
        .await
        .expect("goes");
    let refused = aws
        .terminate_with_decrement(&region, &second)
        .await
        .expect_err("the minimum holds it");
    assert_eq!(refused.kind, FailureKind::GroupLimit, "{refused}");
    let gone = aws
        .terminate_with_decrement(&region, &first)
        .await
        .expect_err("it is gone already");
    assert_eq!(gone.kind, FailureKind::Gone, "{gone}");
    let seen = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes")
        .remove(&name)
        .expect("is there");
    let state = |id: &InstanceId| {
        seen.members
            .iter()
            .find(|m| m.id == *id)
            .map(|m| m.state.clone())
    };
    assert_eq!(state(&first), Some(MemberState::Terminating));
    assert_eq!(state(&second), Some(MemberState::InService));
    assert_eq!((seen.desired, seen.live_count()), (1, 1));
    let ends = proxy.ledger().ends;
    assert_eq!(ends.len(), 1);
    assert_eq!(
        (ends[0].instance.as_str(), ends[0].cause),
        (first.as_str(), Cause::Decrement)
    );
}

#[tokio::test]
async fn protection_suspension_and_tags_reach_the_group() {
    let mut group = NewGroup::new("wire-guard", "g5.xlarge", &["us-east-1a"]);
    (group.max, group.desired, group.protects_new) = (60, 55, false);
    let (proxy, aws, region, name) = set_up(group, Scenario::default()).await;
    let describe = async || {
        let all = aws
            .describe_groups(&region, std::slice::from_ref(&name))
            .await
            .expect("describes");
        all.into_values().next().expect("is there")
    };
    let ids: Vec<InstanceId> = describe()
        .await
        .members
        .iter()
        .map(|m| m.id.clone())
        .collect();
    aws.protect_from_scale_in(&region, &name, &ids)
        .await
        .expect("protects");
    assert_eq!(
        proxy.ledger().calls_of("SetInstanceProtection"),
        2,
        "at most 50 a call"
    );
    aws.suspend_launch(&region, &name).await.expect("suspends");
    aws.tag_group(&region, &name, "drover:owner", "store/7")
        .await
        .expect("tags");
    let seen = describe().await;
    assert!(seen.members.iter().all(|m| m.protected));
    assert_eq!(seen.suspended.keys().collect::<Vec<_>>(), ["Launch"]);
    assert_eq!(seen.tags["drover:owner"], "store/7");
    let refused = aws
        .launch_instances(&region, &ask(&name, 1, "us-east-1a", "t"))
        .await
        .expect_err("is suspended");
    assert_eq!(refused.kind, FailureKind::Suspended);
    aws.resume_launch(&region, &name).await.expect("resumes");
    assert!(describe().await.suspended.is_empty());
    assert!(proxy.ledger().unprotected.is_empty());
}

#[tokio::test]
async fn failures_are_named_and_mutations_are_sent_once() {
    let group = NewGroup::new("wire-faults", "g5.xlarge", &["us-east-1a"]);
    let table = [
        (
            error("Throttling", "Rate exceeded"),
            FailureKind::Throttle,
            false,
        ),
        (
            error(
                "AccessDenied",
                "User is not authorized to perform: autoscaling:SetDesiredCapacity",
            ),
            FailureKind::Permission,
            false,
        ),
        (
            error("ScalingActivityInProgress", "busy"),
            FailureKind::Contention,
            false,
        ),
        (
            Effect::Error {
                status: 500,
                code: "InternalFailure".into(),
                message: "internal".into(),
            },
            FailureKind::Transient,
            true,
        ),
        (
            Effect::Html { status: 500 },
            FailureKind::UnparsableReply,
            true,
        ),
        (Effect::Drop, FailureKind::Transient, true),
        (Effect::ReplyLost, FailureKind::Transient, true),
    ];
    let (proxy, aws, region, name) = set_up(group, Scenario::default()).await;
    for (n, (effect, kind, applied)) in table.into_iter().enumerate() {
        let fault = Fault {
            action: Some("SetDesiredCapacity".into()),
            effect: effect.clone(),
            ..Fault::default()
        };
        proxy
            .set(Scenario {
                faults: vec![fault],
                ..Scenario::default()
            })
            .await;
        let failed = aws
            .set_desired_capacity(&region, &name, 1)
            .await
            .expect_err("fails");
        assert_eq!(failed.kind, kind, "{effect:?}: {failed}");
        assert_eq!(failed.may_have_applied, applied, "{effect:?}: {failed}");
        assert_eq!(
            proxy.ledger().calls_of("SetDesiredCapacity"),
            n as u64 + 1,
            "{effect:?} was sent more than once"
        );
    }
    assert_eq!(
        proxy.ledger().launched(REGION, "wire-faults"),
        1,
        "the lost reply was of a call that took effect"
    );

    // Reads are repeated: two failures in a row are not seen.
    let fault = Fault {
        action: Some("DescribeAutoScalingGroups".into()),
        times: Some(2),
        effect: Effect::Error {
            status: 500,
            code: "InternalFailure".into(),
            message: "internal".into(),
        },
        ..Fault::default()
    };
    proxy
        .set(Scenario {
            faults: vec![fault],
            ..Scenario::default()
        })
        .await;
    assert_eq!(
        aws.describe_groups(&region, &[name])
            .await
            .expect("describes")
            .len(),
        1
    );
}

#[tokio::test]
async fn a_slow_answer_ends_at_the_time_out() {
    let group = NewGroup::new("wire-slow", "g5.xlarge", &["us-east-1a"]);
    let late = Fault {
        action: Some("LaunchInstances".into()),
        times: Some(1),
        effect: Effect::ReplyLate { ms: 60_000 },
        ..Fault::default()
    };
    let (proxy, _, region, name) = set_up(
        group,
        Scenario {
            faults: vec![late],
            ..Scenario::default()
        },
    )
    .await;
    let mut settings = SdkSettings::new(region.clone());
    settings.endpoints.default = Some(proxy.url());
    settings.credentials = Credentials::Fixed {
        key_id: "x".into(),
        secret: "y".into(),
    };
    settings.attempt_timeout = Duration::from_secs(2);
    let aws = SdkAws::new(settings).await;
    let failed = aws
        .launch_instances(&region, &ask(&name, 2, "us-east-1a", "slow"))
        .await
        .expect_err("no answer in time");
    assert_eq!(failed.kind, FailureKind::Transient, "{failed}");
    assert!(failed.may_have_applied);
    // The same token gives what the first call gave, or says that it is still at work: never more instances.
    let patient = client(&proxy.url()).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    let reply = loop {
        match patient
            .launch_instances(&region, &ask(&name, 2, "us-east-1a", "slow"))
            .await
        {
            Ok(reply) => break reply,
            Err(e) => assert_eq!(e.kind, FailureKind::IdempotentInProgress, "{e}"),
        }
        assert!(
            std::time::Instant::now() < deadline,
            "the first call does not end"
        );
    };
    assert_eq!(reply.instance_ids().len(), 2);
    assert_eq!(proxy.ledger().launched(REGION, "wire-slow"), 2);
}

#[tokio::test]
async fn new_instances_can_be_hidden_and_pending() {
    let group = NewGroup::new("wire-late", "g5.xlarge", &["us-east-1a"]);
    let late = |hide_ms, pending_ms| Scenario {
        timing: vec![Timing {
            hide_ms,
            pending_ms,
            ..Timing::default()
        }],
        ..Scenario::default()
    };
    let (proxy, aws, region, name) = set_up(group, late(600_000, 600_000)).await;
    let hidden = aws
        .launch_instances(&region, &ask(&name, 2, "us-east-1a", "a"))
        .await
        .expect("launches")
        .instance_ids();
    proxy.set(late(0, 600_000)).await;
    let pending = aws
        .launch_instances(&region, &ask(&name, 1, "us-east-1a", "b"))
        .await
        .expect("launches")
        .instance_ids();
    let seen = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes")
        .remove(&name)
        .expect("is there");
    assert_eq!(seen.desired, 3);
    assert_eq!(seen.members.len(), 1, "two are hidden");
    assert_eq!(
        (&seen.members[0].id, &seen.members[0].state),
        (&pending[0], &MemberState::Pending)
    );
    assert!(
        aws.describe_instances(&region, &hidden)
            .await
            .expect("describes")
            .is_empty()
    );
    let instances = aws
        .describe_instances(&region, &pending)
        .await
        .expect("describes");
    assert_eq!(instances[&pending[0]].state, InstanceState::Pending);
}

#[tokio::test]
async fn a_survey_of_a_group_and_what_mends_it() {
    let mut group = NewGroup::new("wire-survey", "g5.xlarge", &["us-east-1a", "us-east-1b"])
        .tag("drover:found-here", "yes");
    group.protects_new = false;
    let (_proxy, aws, region, name) = set_up(group, Scenario::default()).await;
    let moto = Moto::shared().await;
    let form = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    };
    let of_group = ("AutoScalingGroupName", "wire-survey");
    for (action, rows) in [
        (
            "PutLifecycleHook",
            vec![
                of_group,
                ("LifecycleHookName", "drain"),
                (
                    "LifecycleTransition",
                    "autoscaling:EC2_INSTANCE_TERMINATING",
                ),
                ("HeartbeatTimeout", "300"),
                ("DefaultResult", "CONTINUE"),
            ],
        ),
        (
            "PutScalingPolicy",
            vec![
                of_group,
                ("PolicyName", "more"),
                ("PolicyType", "SimpleScaling"),
                ("AdjustmentType", "ChangeInCapacity"),
                ("ScalingAdjustment", "1"),
            ],
        ),
        (
            "PutScheduledUpdateGroupAction",
            vec![
                of_group,
                ("ScheduledActionName", "night"),
                ("Recurrence", "0 22 * * *"),
                ("DesiredCapacity", "0"),
            ],
        ),
        (
            "PutWarmPool",
            vec![of_group, ("MinSize", "2"), ("PoolState", "Stopped")],
        ),
    ] {
        moto.autoscaling(REGION, action, &form(&rows))
            .await
            .unwrap_or_else(|e| panic!("{action}: {e}"));
    }
    let tagged = aws
        .groups_tagged(&region, "drover:found-here")
        .await
        .expect("looks");
    assert_eq!(tagged.len(), 1);
    assert_eq!(tagged[0].name, name);
    let hooks = aws.lifecycle_hooks(&region, &name).await.expect("reads");
    assert_eq!(hooks.len(), 1);
    assert_eq!(
        (hooks[0].name.as_str(), hooks[0].heartbeat_seconds),
        ("drain", Some(300))
    );
    let policies = aws.scaling_policies(&region, &name).await.expect("reads");
    assert_eq!(policies[0].kind.as_deref(), Some("SimpleScaling"));
    let actions = aws.scheduled_actions(&region, &name).await.expect("reads");
    assert_eq!((actions[0].desired, actions[0].min), (Some(0), None));
    let pool = aws.warm_pool(&region, &name).await.expect("reads");
    let pool = pool.expect("has one");
    assert_eq!((pool.min, pool.state.as_str()), (2, "Stopped"));
    assert_eq!(
        aws.instance_refreshes(&region, &name).await.expect("reads"),
        []
    );
    aws.check_region(&region).await.expect("is there");
    let caller = aws.caller(&region).await.expect("is somebody");
    assert!(caller.starts_with("arn:aws:"), "{caller}");

    aws.protect_new(&region, &name).await.expect("mends");
    aws.suspend_own_removals(&region, &name)
        .await
        .expect("mends");
    aws.capacity_rebalance_off(&region, &name)
        .await
        .expect("mends");
    let all = aws
        .describe_groups(&region, std::slice::from_ref(&name))
        .await
        .expect("describes");
    let seen = &all[&name];
    assert!(seen.protects_new);
    assert_eq!(
        seen.suspended.keys().collect::<Vec<_>>(),
        ["AZRebalance", "ReplaceUnhealthy"]
    );
    assert_eq!(
        (seen.max, seen.desired),
        (20, 0),
        "nothing else was changed"
    );
    let zones = aws
        .zones_of(
            &region,
            &["p4d.24xlarge".to_owned(), "x9.nothing".to_owned()],
        )
        .await
        .expect("reads");
    assert!(!zones["p4d.24xlarge"].is_empty());
    assert!(!zones.contains_key("x9.nothing"), "it exists nowhere");
}

#[tokio::test]
async fn another_account_is_asked_in_its_role_and_has_a_bucket_of_its_own() {
    // Without the proxy, which signs anew what it passes on.
    let moto = Moto::shared().await;
    let budget = Arc::new(Budget::new(
        BudgetSettings::default(),
        Arc::new(TokioClock::start()),
    ));
    let sdk = client(moto.url()).await.with_toll(budget.clone());
    let aws = Budgeted::new(sdk, budget.clone());
    let own = Region::from(REGION);
    let theirs = own
        .clone()
        .with_role("arn:aws:iam::210987654321:role/drover");
    let caller = aws.caller(&theirs).await.expect("is somebody");
    assert_eq!(
        caller,
        "arn:aws:sts::210987654321:assumed-role/drover/drover"
    );
    assert_ne!(aws.caller(&own).await.expect("is somebody"), caller);
    let seen: Vec<_> = budget
        .snapshot()
        .into_iter()
        .map(|f| (f.region, f.call, f.sent))
        .collect();
    assert_eq!(
        seen,
        [
            (own, Call::GetCallerIdentity, 1),
            (theirs, Call::GetCallerIdentity, 1)
        ]
    );
}

#[tokio::test]
async fn messages_of_a_queue_are_received_and_deleted() {
    let moto = Moto::shared().await;
    let aws = client(moto.url()).await;
    let region = Region::from(REGION);
    let form = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let made = moto
        .sqs(REGION, "CreateQueue", &[form("QueueName", "wire-notices")])
        .await
        .expect("a queue");
    let (_, rest) = made.split_once("<QueueUrl>").expect("its address");
    let queue = rest.split('<').next().unwrap_or_default().to_owned();
    assert_eq!(aws.receive(&region, &queue, 0).await.expect("asks"), []);
    let message = [
        form("QueueUrl", &queue),
        form("MessageBody", "{\"detail-type\":\"x\"}"),
    ];
    moto.sqs(REGION, "SendMessage", &message)
        .await
        .expect("is sent");
    let found = aws.receive(&region, &queue, 1).await.expect("asks");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].body, "{\"detail-type\":\"x\"}");
    let receipts = [found[0].receipt.clone()];
    aws.delete(&region, &queue, &receipts)
        .await
        .expect("deletes");
    let none = aws
        .receive(&region, &format!("{queue}-none"), 0)
        .await
        .expect_err("there is no such queue");
    assert_eq!(none.kind, FailureKind::Config, "{none}");
}
