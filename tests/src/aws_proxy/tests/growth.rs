//! Launches: tokens, limits, rations, texts, and time.

use super::*;

#[tokio::test]
async fn a_token_is_answered_again_and_its_launch_has_activities_by_instance() {
    let proxy = field("gr-tok", Scenario::default()).await;
    let (ids, _) = proxy.launch("gr-tok", 3, "same").await;
    assert_eq!(proxy.launch("gr-tok", 3, "same").await.0, ids);
    let form = [
        ("AutoScalingGroupName", "gr-tok"),
        ("RequestedCapacity", "4"),
        ("ClientToken", "same"),
    ];
    let text = proxy
        .asg("LaunchInstances", &form)
        .await
        .expect_err("another question");
    assert_eq!(texts(&text, "Code"), ["IdempotentParameterMismatch"]);
    let told: Vec<String> = proxy
        .activities("gr-tok")
        .await
        .into_iter()
        .map(|a| a.1)
        .collect();
    assert_eq!(told.len(), 3);
    assert!(
        ids.iter()
            .all(|id| told.contains(&format!("Launching a new EC2 instance: {id}"))),
        "{told:?}"
    );
    let form = [
        ("AutoScalingGroupName", "gr-tok"),
        ("RequestedCapacity", "18"),
        ("ClientToken", "more"),
    ];
    let text = proxy
        .asg("LaunchInstances", &form)
        .await
        .expect_err("above the maximum");
    assert!(text.contains("above max value 20"), "{text}");
    assert_eq!(proxy.ledger().launched(EAST, "gr-tok"), 3);
    proxy.at_peace();
}

#[tokio::test]
async fn refusals_have_awss_words_in_the_reply_and_in_the_activity() {
    let proxy = field("gr-why", from(json!({"rations": [{"group": "gr-why", "left": 1, "why": "vcpus"}], "retry_ms": 600_000}))).await;
    let (ids, codes) = proxy.launch("gr-why", 3, "t").await;
    assert_eq!(
        (ids.len(), codes),
        (1, vec!["VcpuLimitExceeded".to_owned()])
    );
    assert_eq!(
        proxy.desired("gr-why").await,
        "1",
        "what was refused is not left behind"
    );
    proxy.set_desired("gr-why", 2).await.expect("is taken");
    assert_eq!(proxy.desired("gr-why").await, "2");
    let newest = proxy.activities("gr-why").await.remove(0);
    assert_eq!(newest.0, "Failed");
    assert!(
        newest
            .2
            .starts_with("You have requested more vCPU capacity"),
        "{newest:?}"
    );
    assert!(
        newest
            .1
            .starts_with("Launching a new EC2 instance.  Status Reason: You have requested"),
        "{newest:?}"
    );
    proxy.set(Scenario::default()).await;
    wait::until_async("the second", SOON, async || {
        (proxy.members("gr-why").await.len() == 2).then_some(())
    })
    .await;
    proxy.at_peace();
}

#[tokio::test]
async fn what_is_late_is_pending_and_what_is_hidden_is_nowhere() {
    let proxy = field(
        "gr-late",
        from(json!({"timing": [{"pending_ms": 600_000, "terminating_ms": 600_000}]})),
    )
    .await;
    let (ids, _) = proxy.launch("gr-late", 2, "t").await;
    assert_eq!(
        proxy.state_of("gr-late", &ids[0]).await.as_deref(),
        Some("Pending")
    );
    assert_eq!(proxy.in_ec2(&ids[0]).await, "pending");
    assert_eq!(proxy.activities("gr-late").await[0].0, "InProgress");
    proxy.set_desired("gr-late", 1).await.expect("is lowered");
    let ends = proxy.ledger().ends;
    assert_eq!(
        (ends.len(), ends[0].cause),
        (1, Cause::ScaleIn),
        "a pending one is not protected yet"
    );
    assert_eq!(proxy.in_ec2(&ends[0].instance).await, "shutting-down");
    assert_eq!(
        proxy
            .state_of("gr-late", &ends[0].instance)
            .await
            .as_deref(),
        Some("Terminating")
    );
    let launch = format!("Launching a new EC2 instance: {}", ends[0].instance);
    let activities = proxy.activities("gr-late").await;
    assert!(
        activities
            .iter()
            .any(|a| a.0 == "Cancelled" && a.1 == launch),
        "{activities:?}"
    );
    let again = proxy
        .terminate(&ends[0].instance, true)
        .await
        .expect_err("it goes already");
    assert!(again.contains("Instance Id not found"), "{again}");
    proxy
        .set(from(json!({"timing": [{"hide_ms": 600_000}]})))
        .await;
    let (hidden, _) = proxy.launch("gr-late", 1, "h").await;
    assert_eq!(proxy.state_of("gr-late", &hidden[0]).await, None);
    assert_eq!(proxy.in_ec2(&hidden[0]).await, "");
    let form = [("InstanceIds.member.1", hidden[0].as_str())];
    let text = proxy
        .asg("DescribeAutoScalingInstances", &form)
        .await
        .expect("answers");
    assert!(texts(&text, "InstanceId").is_empty());
    proxy.at_peace();
}

#[tokio::test]
async fn ends_without_decrement_are_replaced_and_a_suspended_process_refuses() {
    let proxy = field("gr-end", Scenario::default()).await;
    let (ids, _) = proxy.launch("gr-end", 1, "t").await;
    proxy.terminate(&ids[0], false).await.expect("goes");
    let members = proxy.members("gr-end").await;
    assert_eq!(members.len(), 1);
    assert_ne!(members[0].0, ids[0]);
    let form = [
        ("AutoScalingGroupName", "gr-end"),
        ("ScalingProcesses.member.1", "Terminate"),
    ];
    proxy
        .asg("SuspendProcesses", &form)
        .await
        .expect("is suspended");
    let held = proxy
        .terminate(&members[0].0, true)
        .await
        .expect_err("is held");
    assert!(held.contains("Terminate process is suspended"), "{held}");
    let form = [
        ("AutoScalingGroupName", "gr-end"),
        ("ScalingProcesses.member.1", "Launch"),
    ];
    proxy
        .asg("SuspendProcesses", &form)
        .await
        .expect("is suspended");
    proxy.set_desired("gr-end", 3).await.expect("is taken");
    assert_eq!(
        proxy.members("gr-end").await.len(),
        1,
        "nothing is launched"
    );
    proxy
        .asg("ResumeProcesses", &form)
        .await
        .expect("is resumed");
    assert_eq!(proxy.members("gr-end").await.len(), 3);
    proxy.at_peace();
}

#[tokio::test]
async fn the_next_type_of_a_policy_is_tried_and_each_refusal_told() {
    let mut group = NewGroup::new("gr-mix", "", &["us-east-1a"]);
    group.mixed = Some(crate::moto::Mixed {
        types: vec!["g5.xlarge".into(), "g5.2xlarge".into()],
        on_demand_percent: 100,
        weight: None,
    });
    let proxy = field_of(group, from(json!({"rations": [{"instance_type": "g5.xlarge", "left": 1}, {"instance_type": "g5.2xlarge", "left": 1}]}))).await;
    let (ids, codes) = proxy.launch("gr-mix", 3, "t").await;
    assert_eq!((ids.len(), codes.len()), (2, 2));
    let group = proxy.group("gr-mix").await.expect("is there");
    let types: Vec<String> = group
        .child("Instances")
        .expect("a list")
        .children
        .iter()
        .map(|m| m.text_of("InstanceType").to_owned())
        .collect();
    assert_eq!(types, ["g5.xlarge", "g5.2xlarge"]);
    proxy.at_peace();
}

#[tokio::test]
async fn hundreds_come_in_few_calls_and_leave_one_by_one() {
    let mut group = NewGroup::new("gr-many", "g5.xlarge", &["us-east-1a"]);
    group.max = 300;
    let proxy = field_of(group, from(json!({"timing": [{"pending_ms": 200}]}))).await;
    for n in 0..3 {
        let (ids, _) = proxy.launch("gr-many", 100, &format!("t{n}")).await;
        assert_eq!(ids.len(), 100);
    }
    let members = wait::until_async("all serve", SOON, async || {
        let members = proxy.members("gr-many").await;
        members
            .iter()
            .all(|m| m.1 == "InService")
            .then_some(members)
    })
    .await;
    assert_eq!(members.len(), 300);
    for (id, _, _) in members.iter().take(10) {
        proxy.terminate(id, true).await.expect("goes");
    }
    assert_eq!(proxy.desired("gr-many").await, "290");
    assert_eq!(proxy.ledger().launched(EAST, "gr-many"), 300);
    proxy.at_peace();
}
