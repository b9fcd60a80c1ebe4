//! What a survey of a group reads.

use drover_aws::{
    AwsApi, AwsSurvey, DryRun, FailureKind, HookDefault, HookOn, MemberState, Permission,
    PolicyQuestion, TemplateRef,
};

use super::{here, reply, set_up};

#[tokio::test]
async fn hooks_with_their_defaults() {
    let (server, aws) = set_up().await;
    let hooks = "<LifecycleHooks>\
        <member><LifecycleHookName>drain</LifecycleHookName><AutoScalingGroupName>g</AutoScalingGroupName>\
        <LifecycleTransition>autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition><HeartbeatTimeout>300</HeartbeatTimeout>\
        <GlobalTimeout>30000</GlobalTimeout><DefaultResult>CONTINUE</DefaultResult>\
        <NotificationTargetARN>arn:aws:sqs:us-east-1:1:q</NotificationTargetARN></member>\
        <member><LifecycleHookName>warm-up</LifecycleHookName>\
        <LifecycleTransition>autoscaling:EC2_INSTANCE_LAUNCHING</LifecycleTransition></member>\
        <member><LifecycleHookName>new</LifecycleHookName><LifecycleTransition>autoscaling:SOMETHING</LifecycleTransition></member>\
        </LifecycleHooks>";
    server.says(
        "DescribeLifecycleHooks",
        200,
        &reply("DescribeLifecycleHooks", hooks),
    );
    let hooks = aws
        .lifecycle_hooks(&here(), &"g".into())
        .await
        .expect("reads");
    let seen: Vec<_> = hooks
        .iter()
        .map(|h| {
            (
                h.name.as_str(),
                h.on,
                h.heartbeat_seconds,
                h.global_seconds,
                h.default,
                h.target.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                "drain",
                Some(HookOn::Terminating),
                Some(300),
                Some(30_000),
                HookDefault::Continue,
                Some("arn:aws:sqs:us-east-1:1:q")
            ),
            (
                "warm-up",
                Some(HookOn::Launching),
                None,
                None,
                HookDefault::Abandon,
                None
            ),
            ("new", None, None, None, HookDefault::Abandon, None),
        ]
    );
}

#[tokio::test]
async fn a_warm_pool_over_two_pages_and_none() {
    let (server, aws) = set_up().await;
    let member = |id: &str| {
        format!(
            "<member><InstanceId>{id}</InstanceId><LifecycleState>Warmed:Stopped</LifecycleState>\
            <AvailabilityZone>us-east-1a</AvailabilityZone><HealthStatus>Healthy</HealthStatus>\
            <ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
        )
    };
    let configuration = "<WarmPoolConfiguration><MaxGroupPreparedCapacity>-1</MaxGroupPreparedCapacity><MinSize>2</MinSize>\
        <PoolState>Stopped</PoolState><InstanceReusePolicy><ReuseOnScaleIn>true</ReuseOnScaleIn></InstanceReusePolicy></WarmPoolConfiguration>";
    let page = |id: &str, next: &str| {
        let rest = format!("{configuration}<Instances>{}</Instances>{next}", member(id));
        reply("DescribeWarmPool", &rest)
    };
    server
        .says(
            "DescribeWarmPool",
            200,
            &page("i-1", "<NextToken>t2</NextToken>"),
        )
        .says("DescribeWarmPool", 200, &page("i-2", ""))
        .says(
            "DescribeWarmPool",
            200,
            &reply("DescribeWarmPool", "<Instances/>"),
        );
    let pool = aws
        .warm_pool(&here(), &"g".into())
        .await
        .expect("reads")
        .expect("has one");
    assert_eq!((pool.min, pool.max_prepared, pool.reuses), (2, None, true));
    assert_eq!(pool.state, "Stopped");
    let ids: Vec<_> = pool.members.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids, ["i-1", "i-2"]);
    assert_eq!(
        pool.members[0].state,
        MemberState::Warmed("Warmed:Stopped".into())
    );
    let asked = server.asked("DescribeWarmPool");
    assert!(asked[1].body.contains("NextToken=t2"), "{}", asked[1].body);
    assert_eq!(
        aws.warm_pool(&here(), &"g".into()).await.expect("reads"),
        None
    );
}

#[tokio::test]
async fn policies_actions_and_refreshes() {
    let (server, aws) = set_up().await;
    let policies = "<ScalingPolicies><member><PolicyName>cpu</PolicyName><PolicyType>TargetTrackingScaling</PolicyType>\
        <Enabled>false</Enabled></member><member><PolicyName>old</PolicyName></member></ScalingPolicies>";
    let actions = "<ScheduledUpdateGroupActions><member><ScheduledActionName>night</ScheduledActionName>\
        <StartTime>2026-12-01T22:00:00Z</StartTime><Recurrence>0 22 * * *</Recurrence><DesiredCapacity>0</DesiredCapacity></member>\
        </ScheduledUpdateGroupActions>";
    let refresh = |id: &str, status: &str| {
        format!(
            "<member><InstanceRefreshId>{id}</InstanceRefreshId><Status>{status}</Status></member>"
        )
    };
    let refreshes = [
        refresh("r4", "InProgress"),
        refresh("r3", "Cancelled"),
        refresh("r2", "Successful"),
    ];
    let refreshes = format!(
        "<InstanceRefreshes>{}</InstanceRefreshes>",
        refreshes.concat()
    );
    server
        .says(
            "DescribePolicies",
            200,
            &reply("DescribePolicies", policies),
        )
        .says(
            "DescribeScheduledActions",
            200,
            &reply("DescribeScheduledActions", actions),
        )
        .says(
            "DescribeInstanceRefreshes",
            200,
            &reply("DescribeInstanceRefreshes", &refreshes),
        );
    let group = "g".into();
    let policies = aws.scaling_policies(&here(), &group).await.expect("reads");
    assert_eq!(
        (policies[0].enabled, policies[1].enabled),
        (false, true),
        "AWS's default is on"
    );
    let actions = aws.scheduled_actions(&here(), &group).await.expect("reads");
    let night = &actions[0];
    assert_eq!(
        (night.min, night.max, night.desired),
        (None, None, Some(0)),
        "missing is not zero"
    );
    assert_eq!(night.next_unix_ms, Some(1_796_162_400_000));
    let refreshes = aws
        .instance_refreshes(&here(), &group)
        .await
        .expect("reads");
    let seen: Vec<_> = refreshes
        .iter()
        .map(|r| (r.id.as_str(), r.at_work))
        .collect();
    assert_eq!(
        seen,
        [("r4", true), ("r3", false)],
        "what is at work, and the newest that is over"
    );
}

#[tokio::test]
async fn a_dry_run_in_all_its_words() {
    let (server, aws) = set_up().await;
    let template = TemplateRef {
        id: Some("lt-1".into()),
        name: Some("gpu".into()),
        version: Some("7".into()),
    };
    server
        .refuses(
            "RunInstances",
            412,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
        )
        .refuses(
            "RunInstances",
            403,
            "UnauthorizedOperation",
            "You are not authorized to perform this operation.",
        )
        .refuses(
            "RunInstances",
            400,
            "InvalidAMIID.NotFound",
            "The image id '[ami-1]' does not exist",
        )
        .refuses(
            "RunInstances",
            400,
            "ExpiredToken",
            "The security token included in the request is expired",
        );
    let ask = async || aws.dry_run_launch(&here(), &template).await;
    assert_eq!(ask().await.expect("answers"), DryRun::Allowed);
    assert!(
        matches!(ask().await.expect("answers"), DryRun::Denied(words) if words.contains("not authorized"))
    );
    assert_eq!(
        ask().await.expect("answers"),
        DryRun::Wrong("InvalidAMIID.NotFound: The image id '[ami-1]' does not exist".into())
    );
    let expired = ask().await.expect_err("says nothing about the launch");
    assert!(expired.is_credentials(), "{expired}");
    for asked in server.asked("RunInstances") {
        let has = |part: &str| asked.body.contains(part);
        assert!(
            has("DryRun=true") && has("LaunchTemplate.LaunchTemplateId=lt-1") && has("MaxCount=1")
        );
        assert!(!has("LaunchTemplateName"), "AWS takes the id or the name");
    }
}

#[tokio::test]
async fn permissions_of_a_session_are_those_of_its_role() {
    let (server, aws) = set_up().await;
    let result = |action: &str, decision: &str| {
        format!(
            "<member><EvalActionName>{action}</EvalActionName><EvalDecision>{decision}</EvalDecision></member>"
        )
    };
    let page = |rows: &[String], rest: &str| {
        let rows = format!(
            "<EvaluationResults>{}</EvaluationResults>{rest}",
            rows.concat()
        );
        reply("SimulatePrincipalPolicy", &rows)
    };
    let role = "<Role><Path>/fleet/</Path><RoleName>Drover</RoleName><RoleId>AROA</RoleId>\
        <Arn>arn:aws:iam::123456789012:role/fleet/Drover</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate></Role>";
    let first = page(
        &[
            result("autoscaling:LaunchInstances", "allowed"),
            result("ec2:CreateFleet", "implicitDeny"),
        ],
        "<IsTruncated>true</IsTruncated><Marker>m2</Marker>",
    );
    let second = page(
        &[result("autoscaling:SetDesiredCapacity", "explicitDeny")],
        "<IsTruncated>false</IsTruncated>",
    );
    server
        .refuses(
            "SimulatePrincipalPolicy",
            404,
            "NoSuchEntity",
            "Role Drover does not exist.",
        )
        .says("SimulatePrincipalPolicy", 200, &first)
        .says("SimulatePrincipalPolicy", 200, &second)
        .says("GetRole", 200, &reply("GetRole", role));
    let question = PolicyQuestion {
        actions: vec![
            "autoscaling:LaunchInstances".into(),
            "ec2:CreateFleet".into(),
        ],
        ..PolicyQuestion::default()
    };
    let caller = "arn:aws:sts::123456789012:assumed-role/Drover/i-1";
    let found = aws
        .simulate_policy(&here(), caller, &question)
        .await
        .expect("answers");
    let seen: Vec<_> = found
        .iter()
        .map(|(action, p)| (action.as_str(), *p))
        .collect();
    assert_eq!(
        seen,
        [
            ("autoscaling:LaunchInstances", Permission::Allowed),
            ("autoscaling:SetDesiredCapacity", Permission::Denied),
            ("ec2:CreateFleet", Permission::NotGranted),
        ]
    );
    let asked = server.asked("SimulatePrincipalPolicy");
    let source = |n: usize| asked[n].body.contains("role/fleet/Drover");
    assert_eq!((asked.len(), source(0), source(1)), (3, false, true));
    assert!(asked[2].body.contains("Marker=m2"));
}

#[tokio::test]
async fn quotas_of_running_instances_only() {
    let (server, aws) = set_up().await;
    let page = |quotas: &str, next: &str| format!("{{\"Quotas\":[{quotas}]{next}}}");
    let first = r#"{"QuotaCode":"L-417A185B","QuotaName":"Running On-Demand P instances","Value":192.0},
        {"QuotaCode":"L-0263D0A3","QuotaName":"EC2-VPC Elastic IPs","Value":5.0}"#;
    let second = r#"{"QuotaCode":"L-7212CCBC","QuotaName":"All P4, P3 and P2 Spot Instance Requests","Value":64.0}"#;
    server
        .says(
            "ListServiceQuotas",
            200,
            &page(first, r#","NextToken":"n2""#),
        )
        .says("ListServiceQuotas", 200, &page(second, ""));
    let quotas = aws.ec2_quotas(&here()).await.expect("reads");
    let seen: Vec<_> = quotas.iter().map(|q| (q.code.as_str(), q.value)).collect();
    assert_eq!(seen, [("L-417A185B", 192), ("L-7212CCBC", 64)]);
    assert!(server.asked("ListServiceQuotas")[1].body.contains("n2"));
}

#[tokio::test]
async fn an_activity_text_never_seen_before_stays_as_it_is() {
    let (server, aws) = set_up().await;
    let words = "The moon stands in the seventh house (us-east-1a). Launching EC2 instance failed.";
    let activities = format!(
        "<Activities><member><ActivityId>a</ActivityId><StatusCode>Failed</StatusCode><StartTime>2026-11-30T08:00:00Z</StartTime>\
        <StatusMessage>{words}</StatusMessage><Description>Launching a new EC2 instance</Description><Cause>c</Cause></member></Activities>"
    );
    server.says(
        "DescribeScalingActivities",
        200,
        &reply("DescribeScalingActivities", &activities),
    );
    let found = aws
        .describe_activities(&here(), &"g".into(), 0)
        .await
        .expect("reads");
    let activity = &found.items[0];
    assert_eq!(activity.message.as_deref(), Some(words));
    let class = activity.class.as_ref().expect("failed");
    assert_eq!((class.kind, class.known), (FailureKind::Transient, false));
    assert_eq!(
        (&class.zone, &class.instance_type),
        (&None, &None),
        "it closes no place"
    );
}
