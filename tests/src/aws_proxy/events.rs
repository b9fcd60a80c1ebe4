//! Events as EventBridge delivers them to a queue, and a lifecycle hook's own messages.
//!
//! Called by everything that happens by itself. The queues are moto's.

use serde_json::{Value, json};

use super::clock::{now_unix_ms, seconds};
use super::member::{Wait, uuid};
use super::scenario::{EventKind, concerns};
use super::server::Proxy;

pub(super) const ACCOUNT: &str = "123456789012";

/// Sends an event to every queue of the scenario that wants it.
pub(super) async fn send(
    proxy: &Proxy,
    region: &str,
    kind: EventKind,
    detail_type: &str,
    resource: String,
    detail: Value,
) -> Result<(), String> {
    let source = match kind {
        EventKind::Lifecycle => "aws.autoscaling",
        EventKind::Health => "aws.health",
        _ => "aws.ec2",
    };
    let event = json!({
        "version": "0",
        "id": uuid(rand::random()),
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": seconds(now_unix_ms()),
        "region": region,
        "resources": [resource],
        "detail": detail,
    });
    send_text(proxy, region, Some(kind), &event.to_string()).await
}

/// Sends a text as it is to the queues of the region that want that kind; without a kind, to all of them.
pub(super) async fn send_text(
    proxy: &Proxy,
    region: &str,
    kind: Option<EventKind>,
    body: &str,
) -> Result<(), String> {
    let queues: Vec<(String, String)> = proxy
        .scenario()
        .queues
        .iter()
        .filter(|q| concerns(q.region.as_ref(), region))
        .filter(|q| match (&q.kinds, kind) {
            (Some(kinds), Some(kind)) => kinds.contains(&kind),
            _ => true,
        })
        .map(|q| {
            let home = q.queue_region.clone().unwrap_or_else(|| region.to_owned());
            (home, q.url.clone())
        })
        .collect();
    for (home, url) in queues {
        put(proxy, &home, &url, body).await?;
    }
    Ok(())
}

async fn put(proxy: &Proxy, region: &str, url: &str, body: &str) -> Result<(), String> {
    let form = [("QueueUrl", url), ("MessageBody", body)];
    let sent = proxy
        .upstream()
        .call(region, "sqs", "2012-11-05", "SendMessage", &form);
    sent.await.map(|_| ())
}

pub(super) fn instance_arn(region: &str, id: &str) -> String {
    format!("arn:aws:ec2:{region}:{ACCOUNT}:instance/{id}")
}

fn group_arn(region: &str, group: &str) -> String {
    format!(
        "arn:aws:autoscaling:{region}:{ACCOUNT}:autoScalingGroup:00000000-0000-4000-8000-000000000000:\
         autoScalingGroupName/{group}"
    )
}

/// `EC2 Instance State-change Notification`.
pub(super) async fn state_change(
    proxy: &Proxy,
    region: &str,
    id: &str,
    state: &str,
) -> Result<(), String> {
    let detail = json!({"instance-id": id, "state": state});
    let name = "EC2 Instance State-change Notification";
    let arn = instance_arn(region, id);
    send(proxy, region, EventKind::StateChange, name, arn, detail).await
}

/// A hook begins to hold an instance: EventBridge's event, and the hook's own message where it has a queue.
pub(super) async fn lifecycle(
    proxy: &Proxy,
    region: &str,
    group: &str,
    id: &str,
    wait: &Wait,
    launching: bool,
) -> Result<(), String> {
    let (word, short, from, to) = if launching {
        ("LAUNCHING", "launch", "EC2", "AutoScalingGroup")
    } else {
        ("TERMINATING", "terminate", "AutoScalingGroup", "EC2")
    };
    let mut detail = json!({
        "LifecycleActionToken": wait.token,
        "AutoScalingGroupName": group,
        "LifecycleHookName": wait.hook.name,
        "EC2InstanceId": id,
        "LifecycleTransition": format!("autoscaling:EC2_INSTANCE_{word}"),
        "Origin": from,
        "Destination": to,
    });
    if !wait.hook.metadata.is_empty() {
        detail["NotificationMetadata"] = wait.hook.metadata.clone().into();
    }
    let name = format!("EC2 Instance-{short} Lifecycle Action");
    let arn = group_arn(region, group);
    send(
        proxy,
        region,
        EventKind::Lifecycle,
        &name,
        arn,
        detail.clone(),
    )
    .await?;
    detail["AccountId"] = ACCOUNT.into();
    detail["RequestId"] = uuid(rand::random()).into();
    detail["Service"] = "AWS Auto Scaling".into();
    detail["Time"] = seconds(now_unix_ms()).into();
    tell_target(proxy, region, &wait.hook.target, &detail).await
}

/// The message that a hook's queue gets when the hook is put.
pub(super) async fn hook_test(
    proxy: &Proxy,
    region: &str,
    group: &str,
    target: &str,
) -> Result<(), String> {
    let message = json!({
        "AccountId": ACCOUNT,
        "RequestId": uuid(rand::random()),
        "AutoScalingGroupARN": group_arn(region, group),
        "AutoScalingGroupName": group,
        "Service": "AWS Auto Scaling",
        "Event": "autoscaling:TEST_NOTIFICATION",
        "Time": seconds(now_unix_ms()),
    });
    tell_target(proxy, region, target, &message).await
}

/// Only queues are told; a topic is not.
async fn tell_target(
    proxy: &Proxy,
    region: &str,
    target: &str,
    message: &Value,
) -> Result<(), String> {
    // arn:aws:sqs:REGION:ACCOUNT:NAME
    let parts: Vec<&str> = target.split(':').collect();
    let [_, _, "sqs", home, _, name] = parts[..] else {
        return Ok(());
    };
    let home = if home.is_empty() { region } else { home };
    let found = proxy
        .upstream()
        .call(
            home,
            "sqs",
            "2012-11-05",
            "GetQueueUrl",
            &[("QueueName", name)],
        )
        .await?;
    let url = found
        .child("GetQueueUrlResult")
        .map_or("", |r| r.text_of("QueueUrl"));
    put(proxy, home, url, &message.to_string()).await
}
