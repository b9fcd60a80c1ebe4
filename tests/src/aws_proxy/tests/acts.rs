//! What AWS does by itself.

use super::*;

fn unhealthy(instance: Option<&str>) -> Deed {
    Deed::Unhealthy {
        instance: instance.map(str::to_owned),
    }
}

async fn suspend(proxy: &AwsProxy, group: &str, process: &str) {
    let form = [
        ("AutoScalingGroupName", group),
        ("ScalingProcesses.member.1", process),
    ];
    proxy
        .asg("SuspendProcesses", &form)
        .await
        .expect("is suspended");
}

#[tokio::test]
async fn zones_are_rebalanced_despite_protection_unless_suspended() {
    let group = NewGroup::new("act-az", "g5.xlarge", &["us-east-1a", "us-east-1b"]);
    let proxy = field_of(group, Scenario::default()).await;
    let (ids, _) = proxy.launch("act-az", 3, "t").await;
    suspend(&proxy, "act-az", "AZRebalance").await;
    let deed = Deed::AzRebalance {
        from: "us-east-1a".into(),
        to: "us-east-1b".into(),
        count: 1,
    };
    let held = proxy.act(EAST, "act-az", deed.clone()).await;
    assert!(held.refused.is_some() && proxy.ledger().ends.is_empty());
    let group = proxy.group("act-az").await.expect("is there");
    let reason = group.child("SuspendedProcesses").expect("a list").children[0]
        .text_of("SuspensionReason")
        .to_owned();
    assert!(reason.starts_with("User suspended at 20"), "{reason}");
    proxy
        .act(
            EAST,
            "act-az",
            Deed::Resume {
                process: "AZRebalance".into(),
            },
        )
        .await;
    let done = proxy.act(EAST, "act-az", deed).await;
    assert_eq!(done.instances, [ids[0].clone()]);
    let members = proxy.members("act-az").await;
    assert_eq!(members.len(), 3);
    assert_eq!(members.iter().filter(|m| m.2 == "us-east-1b").count(), 1);
    assert_eq!(proxy.ledger().victims().len(), 1);
    assert_eq!(proxy.desired("act-az").await, "3");
    proxy.at_peace();
}

#[tokio::test]
async fn an_unhealthy_member_is_replaced_unless_suspended() {
    let proxy = field("act-ill", Scenario::default()).await;
    let (ids, _) = proxy.launch("act-ill", 2, "t").await;
    suspend(&proxy, "act-ill", "ReplaceUnhealthy").await;
    proxy.act(EAST, "act-ill", unhealthy(Some(&ids[1]))).await;
    let group = proxy.group("act-ill").await.expect("is there");
    let health: Vec<String> = group
        .child("Instances")
        .expect("a list")
        .children
        .iter()
        .map(|m| m.text_of("HealthStatus").to_owned())
        .collect();
    assert_eq!(health, ["Healthy", "Unhealthy"]);
    let form = [
        ("AutoScalingGroupName", "act-ill"),
        ("ScalingProcesses.member.1", "ReplaceUnhealthy"),
    ];
    proxy
        .asg("ResumeProcesses", &form)
        .await
        .expect("is resumed");
    let members = wait::until_async("the replacement", SOON, async || {
        let members = proxy.members("act-ill").await;
        (members.len() == 2 && !members.iter().any(|m| m.0 == ids[1])).then_some(members)
    })
    .await;
    assert!(members.iter().any(|m| m.0 == ids[0]));
    assert_eq!(
        proxy.ledger().ends.last().expect("an end").cause,
        Cause::Unhealthy
    );
    assert_eq!(proxy.in_ec2(&ids[1]).await, "terminated");
    proxy.at_peace();
}

#[tokio::test]
async fn what_ends_in_ec2_stays_a_member_until_somebody_removes_it() {
    let proxy = field("act-ec2", Scenario::default()).await;
    let (ids, _) = proxy.launch("act-ec2", 2, "t").await;
    suspend(&proxy, "act-ec2", "ReplaceUnhealthy").await;
    proxy
        .call(
            EAST,
            Service::Ec2,
            "TerminateInstances",
            &[("InstanceId.1", &ids[0])],
        )
        .await
        .expect("ends");
    assert_eq!(proxy.in_ec2(&ids[0]).await, "terminated");
    let members = proxy.members("act-ec2").await;
    assert_eq!(members.len(), 2, "nobody replaces it: {members:?}");
    assert_eq!(proxy.desired("act-ec2").await, "2");
    proxy
        .terminate(&ids[0], true)
        .await
        .expect("goes with decrement");
    assert_eq!(proxy.members("act-ec2").await.len(), 1);
    assert_eq!(proxy.desired("act-ec2").await, "1");
    assert_eq!(proxy.ledger().launched(EAST, "act-ec2"), 2);
    let reason = Some((
        "Client.InternalError".to_owned(),
        "Client.InternalError: Client error on launch".to_owned(),
    ));
    proxy
        .act(
            EAST,
            "act-ec2",
            Deed::TerminateInEc2 {
                instance: None,
                reason,
            },
        )
        .await;
    let text = proxy
        .call(
            EAST,
            Service::Ec2,
            "DescribeInstances",
            &[("InstanceId.1", &ids[1])],
        )
        .await
        .expect("answers");
    assert!(text.contains("Client error on launch"), "{text}");
    proxy.at_peace();
}

#[tokio::test]
async fn a_spot_instance_is_announced_ended_and_replaced() {
    let mut group = NewGroup::new("act-spot", "", &["us-east-1a"]);
    group.mixed = Some(crate::moto::Mixed {
        types: vec!["g5.xlarge".into()],
        on_demand_percent: 0,
        weight: None,
    });
    let proxy = field_of(group, Scenario::default()).await;
    let queue = proxy.create_queue(EAST, "act-spot").await;
    proxy.set(from(json!({"queues": [{"url": queue, "kinds": ["spot_interruption", "rebalance", "health"]}]}))).await;
    let (ids, _) = proxy.launch("act-spot", 2, "t").await;
    let text = proxy
        .call(
            EAST,
            Service::Ec2,
            "DescribeInstances",
            &[("InstanceId.1", &ids[0])],
        )
        .await
        .expect("answers");
    assert_eq!(texts(&text, "instanceLifecycle"), ["spot"]);
    proxy
        .act(
            EAST,
            "act-spot",
            Deed::RebalanceRecommendation {
                instance: Some(ids[0].clone()),
            },
        )
        .await;
    proxy
        .act(
            EAST,
            "act-spot",
            Deed::ScheduledEvent {
                instance: Some(ids[0].clone()),
                code: "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED".into(),
                in_ms: 3_600_000,
            },
        )
        .await;
    proxy
        .act(
            EAST,
            "act-spot",
            Deed::SpotInterruption {
                instance: Some(ids[0].clone()),
                notice_ms: 100,
            },
        )
        .await;
    let events = proxy.messages(&queue).await;
    let kinds: Vec<&str> = events
        .iter()
        .map(|e| e["detail-type"].as_str().expect("a kind"))
        .collect();
    assert_eq!(
        kinds,
        [
            "EC2 Instance Rebalance Recommendation",
            "AWS Health Event",
            "EC2 Spot Instance Interruption Warning"
        ]
    );
    assert_eq!(events[2]["detail"]["instance-id"], ids[0].as_str());
    wait::until_async("the end", SOON, async || {
        (proxy.in_ec2(&ids[0]).await == "terminated").then_some(())
    })
    .await;
    let members = wait::until_async("the replacement", SOON, async || {
        let members = proxy.members("act-spot").await;
        (members.len() == 2 && !members.iter().any(|m| m.0 == ids[0])).then_some(members)
    })
    .await;
    assert!(members.iter().any(|m| m.0 == ids[1]));
    let text = proxy
        .call(
            EAST,
            Service::Ec2,
            "DescribeInstances",
            &[("InstanceId.1", &ids[0])],
        )
        .await
        .expect("answers");
    assert!(text.contains("Server.SpotInstanceTermination"), "{text}");
    proxy.at_peace();
}

#[tokio::test]
async fn a_group_with_capacity_rebalancing_replaces_what_is_at_risk() {
    let proxy = field("act-risk", Scenario::default()).await;
    let (ids, _) = proxy.launch("act-risk", 1, "t").await;
    let form = [
        ("AutoScalingGroupName", "act-risk"),
        ("CapacityRebalance", "true"),
        ("MaxInstanceLifetime", "864000"),
    ];
    proxy
        .asg("UpdateAutoScalingGroup", &form)
        .await
        .expect("is updated");
    let group = proxy.group("act-risk").await.expect("is there");
    assert_eq!(
        (
            group.text_of("CapacityRebalance"),
            group.text_of("MaxInstanceLifetime")
        ),
        ("true", "864000")
    );
    proxy
        .act(
            EAST,
            "act-risk",
            Deed::RebalanceRecommendation { instance: None },
        )
        .await;
    let members = proxy.members("act-risk").await;
    assert_eq!(members.len(), 1);
    assert_ne!(members[0].0, ids[0]);
    proxy.at_peace();
}

#[tokio::test]
async fn somebody_changes_deletes_and_tells_strange_things() {
    let proxy = field(
        "act-who",
        from(json!({"timing": [{"terminating_ms": 300}]})),
    )
    .await;
    let queue = proxy.create_queue(EAST, "act-who").await;
    let mut scenario = from(
        json!({"timing": [{"terminating_ms": 300}], "queues": [{"url": queue}], "acts": [
        {"region": "us-east-1", "group": "act-who", "after_ms": 50, "do": {"set_desired": {"desired": 3}}},
        {"region": "us-east-1", "do": {"event": {"body": "{\"no\": \"event\"}"}}}]}),
    );
    proxy.set(scenario.clone()).await;
    wait::until_async("three members", SOON, async || {
        (proxy.members("act-who").await.len() == 3).then_some(())
    })
    .await;
    assert!(
        proxy
            .messages(&queue)
            .await
            .iter()
            .any(|m| m["no"] == "event")
    );
    let over = proxy
        .act(EAST, "act-who", Deed::SetDesired { desired: 99 })
        .await;
    assert!(over.refused.expect("is refused").contains("above max"));
    let strange = Deed::Activity {
        status: "Failed".into(),
        description: "Pondering".into(),
        cause: String::new(),
        message: "The stars are wrong.".into(),
    };
    proxy.act(EAST, "act-who", strange).await;
    assert_eq!(
        proxy.activities("act-who").await[0].2,
        "The stars are wrong."
    );
    proxy
        .act(
            EAST,
            "act-who",
            Deed::SetLimits {
                min: Some(2),
                max: None,
            },
        )
        .await;
    proxy
        .set_desired("act-who", 1)
        .await
        .expect_err("below the new minimum");
    let suspended = Deed::Suspend {
        process: "Launch".into(),
        reason: Some("Administratively suspended".into()),
    };
    proxy.act(EAST, "act-who", suspended).await;
    let group = proxy.group("act-who").await.expect("is there");
    assert_eq!(
        group.child("SuspendedProcesses").expect("a list").children[0].text_of("SuspensionReason"),
        "Administratively suspended"
    );
    proxy
        .asg(
            "DeleteAutoScalingGroup",
            &[("AutoScalingGroupName", "act-who")],
        )
        .await
        .expect_err("is not empty");
    scenario.acts.clear();
    proxy.act(EAST, "act-who", Deed::DeleteGroup).await;
    let group = proxy.group("act-who").await.expect("is still shown");
    assert_eq!(group.text_of("Status"), "Delete in progress");
    wait::until_async("it is gone", SOON, async || {
        proxy.group("act-who").await.is_none().then_some(())
    })
    .await;
    assert_eq!(proxy.ledger().ends.len(), 3);
    proxy.at_peace();
}

#[tokio::test]
async fn an_update_neither_fills_behind_the_rations_nor_forgets_the_policy() {
    let mut group = NewGroup::new("act-upd", "", &["us-east-1a"]);
    group.mixed = Some(crate::moto::Mixed {
        types: vec!["g5.xlarge".into(), "g5.2xlarge".into()],
        on_demand_percent: 100,
        weight: None,
    });
    let proxy = field_of(group, from(json!({"rations": [{"instance_type": "g5.xlarge", "left": 1}, {"instance_type": "g5.2xlarge", "left": 0}]}))).await;
    let form = [
        ("AutoScalingGroupName", "act-upd"),
        ("MinSize", "2"),
        ("NewInstancesProtectedFromScaleIn", "false"),
    ];
    proxy
        .asg("UpdateAutoScalingGroup", &form)
        .await
        .expect("is updated");
    let group = proxy.group("act-upd").await.expect("is there");
    assert_eq!(group.text_of("DesiredCapacity"), "2");
    assert_eq!(group.child("Instances").expect("a list").children.len(), 1);
    let policy = group
        .child("MixedInstancesPolicy")
        .expect("a policy")
        .child("LaunchTemplate")
        .expect("a template");
    assert_eq!(
        policy.child("Overrides").expect("overrides").children.len(),
        2
    );
    let failed = proxy.activities("act-upd").await;
    assert_eq!(
        failed.iter().filter(|a| a.0 == "Failed").count(),
        2,
        "one for each type: {failed:?}"
    );
    proxy.at_peace();
}

#[tokio::test]
async fn policies_and_scheduled_actions_are_described() {
    let proxy = field("act-pol", Scenario::default()).await;
    let form = [
        ("AutoScalingGroupName", "act-pol"),
        ("PolicyName", "p"),
        ("PolicyType", "SimpleScaling"),
        ("AdjustmentType", "ChangeInCapacity"),
        ("ScalingAdjustment", "1"),
        ("Enabled", "false"),
    ];
    proxy.asg("PutScalingPolicy", &form).await.expect("is put");
    let text = proxy
        .asg("DescribePolicies", &[("AutoScalingGroupName", "act-pol")])
        .await
        .expect("answers");
    assert_eq!(
        (texts(&text, "PolicyName"), texts(&text, "Enabled")),
        (vec!["p".to_owned()], vec!["false".to_owned()])
    );
    assert_eq!(texts(&text, "PolicyType"), ["SimpleScaling"]);
    let form = [
        ("AutoScalingGroupName", "act-pol"),
        ("ScheduledActionName", "s"),
        ("Recurrence", "0 8 * * *"),
        ("DesiredCapacity", "4"),
        ("StartTime", "2030-01-01T08:00:00Z"),
    ];
    proxy
        .asg("PutScheduledUpdateGroupAction", &form)
        .await
        .expect("is put");
    let text = proxy
        .asg(
            "DescribeScheduledActions",
            &[("AutoScalingGroupName", "act-pol")],
        )
        .await
        .expect("answers");
    assert_eq!(texts(&text, "ScheduledActionName"), ["s"]);
    assert_eq!(texts(&text, "DesiredCapacity"), ["4"]);
    assert!(
        texts(&text, "StartTime")[0].starts_with("2030-01-01T08:00:00"),
        "{text}"
    );
}
