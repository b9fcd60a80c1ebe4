//! Lifecycle hooks that hold.

use super::*;

async fn hook(
    proxy: &AwsProxy,
    group: &str,
    name: &str,
    launching: bool,
    seconds: &str,
    result: &str,
) {
    let word = if launching {
        "LAUNCHING"
    } else {
        "TERMINATING"
    };
    let transition = format!("autoscaling:EC2_INSTANCE_{word}");
    let form = [
        ("AutoScalingGroupName", group),
        ("LifecycleHookName", name),
        ("LifecycleTransition", &transition),
        ("HeartbeatTimeout", seconds),
        ("DefaultResult", result),
    ];
    proxy.asg("PutLifecycleHook", &form).await.expect("is put");
}

async fn say(
    proxy: &AwsProxy,
    action: &str,
    group: &str,
    hook: &str,
    id: &str,
) -> Result<String, String> {
    let form = [
        ("AutoScalingGroupName", group),
        ("LifecycleHookName", hook),
        ("InstanceId", id),
        ("LifecycleActionResult", "CONTINUE"),
    ];
    proxy.asg(action, &form).await
}

#[tokio::test]
async fn a_terminating_hook_holds_until_it_is_completed() {
    let proxy = field("hk-end", from(json!({}))).await;
    let queue = proxy.create_queue(EAST, "hk-end").await;
    proxy
        .set(from(
            json!({"queues": [{"url": queue, "kinds": ["lifecycle"]}]}),
        ))
        .await;
    hook(&proxy, "hk-end", "drain", false, "300", "CONTINUE").await;
    let (ids, _) = proxy.launch("hk-end", 2, "t").await;
    proxy.terminate(&ids[0], true).await.expect("goes");
    assert_eq!(
        proxy.state_of("hk-end", &ids[0]).await.as_deref(),
        Some("Terminating:Wait")
    );
    assert_eq!(
        proxy.in_ec2(&ids[0]).await,
        "running",
        "it lives on while the hook holds"
    );
    assert_eq!(proxy.desired("hk-end").await, "1");
    assert_eq!(
        proxy.activities("hk-end").await[0].0,
        "MidTerminatingLifecycleAction"
    );
    let events = proxy.messages(&queue).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        events[0]["detail-type"],
        "EC2 Instance-terminate Lifecycle Action"
    );
    assert_eq!(events[0]["detail"]["EC2InstanceId"], ids[0].as_str());
    assert_eq!(events[0]["detail"]["LifecycleHookName"], "drain");
    say(
        &proxy,
        "RecordLifecycleActionHeartbeat",
        "hk-end",
        "drain",
        &ids[0],
    )
    .await
    .expect("beats");
    say(
        &proxy,
        "CompleteLifecycleAction",
        "hk-end",
        "drain",
        &ids[0],
    )
    .await
    .expect("completes");
    assert_eq!(proxy.state_of("hk-end", &ids[0]).await, None);
    assert_eq!(proxy.in_ec2(&ids[0]).await, "terminated");
    let late = say(
        &proxy,
        "CompleteLifecycleAction",
        "hk-end",
        "drain",
        &ids[0],
    )
    .await
    .expect_err("is over");
    assert!(late.contains("No active Lifecycle Action found"), "{late}");
    let ledger = proxy.ledger();
    assert_eq!(
        ledger.hook_story(&ids[0], "drain"),
        ["began", "heartbeat", "completed", "refused"]
    );
    assert!(ledger.victims().is_empty());
    assert_eq!(proxy.activities("hk-end").await[0].0, "Successful");
    proxy.at_peace();
}

#[tokio::test]
async fn heartbeats_put_the_time_out_off_but_not_for_ever() {
    // 30 s become 150 ms; the whole is 100 times that.
    let proxy = field("hk-beat", from(json!({"hook_second_ms": 5}))).await;
    hook(&proxy, "hk-beat", "slow", false, "30", "ABANDON").await;
    let (ids, _) = proxy.launch("hk-beat", 1, "t").await;
    proxy.terminate(&ids[0], true).await.expect("goes");
    let story = wait::until_async("the time-out", SOON, async || {
        let story = proxy.ledger();
        let story: Vec<String> = story
            .hook_story(&ids[0], "slow")
            .iter()
            .map(|s| (*s).to_owned())
            .collect();
        if story.len() < 6 {
            let _ = say(
                &proxy,
                "RecordLifecycleActionHeartbeat",
                "hk-beat",
                "slow",
                &ids[0],
            )
            .await;
        }
        story.contains(&"timed_out".to_owned()).then_some(story)
    })
    .await;
    assert_eq!(story.first().map(String::as_str), Some("began"));
    assert_eq!(story.last().map(String::as_str), Some("timed_out"));
    let ledger = proxy.ledger();
    let (began, over) = (
        ledger.lifecycle.first().expect("began"),
        ledger.lifecycle.last().expect("ended"),
    );
    assert!(
        over.at_unix_ms - began.at_unix_ms > 150,
        "heartbeats gave it more than one time-out"
    );
    assert_eq!(over.result.as_deref(), Some("ABANDON"));
    wait::until_async("the end", SOON, async || {
        (proxy.in_ec2(&ids[0]).await == "terminated").then_some(())
    })
    .await;
    proxy.at_peace();
}

#[tokio::test]
async fn a_launching_hook_that_nobody_answers_ends_the_launch_and_another_comes() {
    let proxy = field("hk-new", from(json!({"hook_second_ms": 5}))).await;
    hook(&proxy, "hk-new", "boot", true, "40", "ABANDON").await;
    let (ids, _) = proxy.launch("hk-new", 1, "t").await;
    assert_eq!(
        proxy.state_of("hk-new", &ids[0]).await.as_deref(),
        Some("Pending:Wait")
    );
    assert_eq!(proxy.activities("hk-new").await[0].0, "MidLifecycleAction");
    let second = wait::until_async("the next one", SOON, async || {
        let others: Vec<_> = proxy
            .members("hk-new")
            .await
            .into_iter()
            .filter(|m| m.0 != ids[0])
            .collect();
        others.first().cloned()
    })
    .await;
    say(
        &proxy,
        "CompleteLifecycleAction",
        "hk-new",
        "boot",
        &second.0,
    )
    .await
    .expect("completes");
    assert_eq!(
        proxy.state_of("hk-new", &second.0).await.as_deref(),
        Some("InService")
    );
    let cancelled: Vec<_> = proxy
        .activities("hk-new")
        .await
        .into_iter()
        .filter(|a| a.0 == "Cancelled")
        .collect();
    assert_eq!(cancelled.len(), 1);
    assert!(
        cancelled[0].1.ends_with(&ids[0])
            && cancelled[0].2.contains("was abandoned: Heartbeat Timeout"),
        "{cancelled:?}"
    );
    assert_eq!(proxy.ledger().ends[0].cause, Cause::Abandoned);
    proxy.at_peace();
}

#[tokio::test]
async fn hooks_are_described_with_their_own_target_and_the_whole_time() {
    let proxy = field("hk-desc", from(json!({}))).await;
    let queue = proxy.create_queue(EAST, "hk-desc").await;
    let arn = "arn:aws:sqs:us-east-1:123456789012:hk-desc";
    let form = [
        ("AutoScalingGroupName", "hk-desc"),
        ("LifecycleHookName", "h"),
        ("HeartbeatTimeout", "120"),
        (
            "LifecycleTransition",
            "autoscaling:EC2_INSTANCE_TERMINATING",
        ),
        ("NotificationTargetARN", arn),
    ];
    proxy.asg("PutLifecycleHook", &form).await.expect("is put");
    hook(&proxy, "hk-desc", "plain", true, "7200", "CONTINUE").await;
    let text = proxy
        .asg(
            "DescribeLifecycleHooks",
            &[("AutoScalingGroupName", "hk-desc")],
        )
        .await
        .expect("answers");
    assert_eq!(texts(&text, "NotificationTargetARN"), [arn]);
    let mut whole = texts(&text, "GlobalTimeout");
    whole.sort();
    assert_eq!(whole, ["12000", "172800"]);
    let form = [
        ("AutoScalingGroupName", "hk-desc"),
        ("LifecycleHookName", "h"),
        ("HeartbeatTimeout", "10"),
        (
            "LifecycleTransition",
            "autoscaling:EC2_INSTANCE_TERMINATING",
        ),
    ];
    proxy
        .asg("PutLifecycleHook", &form)
        .await
        .expect_err("too short");
    let (ids, _) = proxy.launch("hk-desc", 1, "t").await;
    say(
        &proxy,
        "CompleteLifecycleAction",
        "hk-desc",
        "plain",
        &ids[0],
    )
    .await
    .expect("completes");
    proxy.terminate(&ids[0], true).await.expect("goes");
    let messages = proxy.messages(&queue).await;
    assert_eq!(messages[0]["Event"], "autoscaling:TEST_NOTIFICATION");
    assert_eq!(
        messages[1]["LifecycleTransition"],
        "autoscaling:EC2_INSTANCE_TERMINATING"
    );
    assert_eq!(messages[1]["EC2InstanceId"], ids[0].as_str());
    // Behind the token, as the message names it.
    let token = messages[1]["LifecycleActionToken"]
        .as_str()
        .expect("a token");
    let form = [
        ("AutoScalingGroupName", "hk-desc"),
        ("LifecycleHookName", "h"),
        ("LifecycleActionToken", token),
        ("LifecycleActionResult", "ABANDON"),
    ];
    proxy
        .asg("CompleteLifecycleAction", &form)
        .await
        .expect("completes");
    assert_eq!(proxy.in_ec2(&ids[0]).await, "terminated");
    proxy.at_peace();
}
