//! The calls that change something: one attempt each.
//!
//! Called by `sdk` only.

use aws_sdk_autoscaling::types::{RetryStrategy, Tag};

use super::{SdkAws, convert};
use crate::{
    AwsError, Call, FailureKind, GroupName, InstanceId, LaunchAsk, LaunchPlace, LaunchReply, Region,
};

/// The most instances of one SetInstanceProtection call (AWS's limit).
const PROTECT_AT_ONCE: usize = 50;

/// The one process that Drover ever suspends.
const LAUNCH: &str = "Launch";

pub(super) async fn launch(
    aws: &SdkAws,
    region: &Region,
    ask: &LaunchAsk,
) -> Result<LaunchReply, AwsError> {
    let call = Call::LaunchInstances;
    if ask.count == 0 || ask.count > LaunchAsk::MAX_COUNT {
        let text = format!(
            "count {} is not within 1 to {}",
            ask.count,
            LaunchAsk::MAX_COUNT
        );
        return Err(AwsError::unreported(
            call,
            region,
            FailureKind::Config,
            text,
            false,
        ));
    }
    let clients = aws.clients(region).await;
    let request = clients
        .autoscaling
        .launch_instances()
        .auto_scaling_group_name(ask.group.as_str())
        .requested_capacity(int(call, region, ask.count)?)
        .client_token(ask.token.as_str())
        .retry_strategy(RetryStrategy::None);
    let request = match &ask.place {
        Some(LaunchPlace::Zone(zone)) => request.availability_zones(zone),
        Some(LaunchPlace::Subnet(subnet)) => request.subnet_ids(subnet),
        None => request,
    };
    let reply = aws.turn(region, call).once(request.send()).await?;
    Ok(convert::launch_reply(reply))
}

pub(super) async fn desired(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
    desired: u32,
) -> Result<(), AwsError> {
    let call = Call::SetDesiredCapacity;
    let clients = aws.clients(region).await;
    let request = clients
        .autoscaling
        .set_desired_capacity()
        .auto_scaling_group_name(group.as_str())
        .desired_capacity(int(call, region, desired)?)
        .honor_cooldown(false);
    aws.turn(region, call).once(request.send()).await?;
    Ok(())
}

pub(super) async fn terminate(
    aws: &SdkAws,
    region: &Region,
    instance: &InstanceId,
) -> Result<(), AwsError> {
    let clients = aws.clients(region).await;
    let request = clients
        .autoscaling
        .terminate_instance_in_auto_scaling_group()
        .instance_id(instance.as_str())
        .should_decrement_desired_capacity(true);
    aws.turn(region, Call::TerminateInstanceInAutoScalingGroup)
        .once(request.send())
        .await?;
    Ok(())
}

pub(super) async fn protect(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
    instances: &[InstanceId],
) -> Result<(), AwsError> {
    let clients = aws.clients(region).await;
    let mut turn = aws.turn(region, Call::SetInstanceProtection);
    for some in instances.chunks(PROTECT_AT_ONCE) {
        let request = clients
            .autoscaling
            .set_instance_protection()
            .auto_scaling_group_name(group.as_str())
            .set_instance_ids(Some(some.iter().map(|i| i.as_str().to_owned()).collect()))
            .protected_from_scale_in(true);
        turn.once(request.send()).await?;
    }
    Ok(())
}

pub(super) async fn suspend(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
) -> Result<(), AwsError> {
    let clients = aws.clients(region).await;
    let request = clients
        .autoscaling
        .suspend_processes()
        .auto_scaling_group_name(group.as_str())
        .scaling_processes(LAUNCH);
    aws.turn(region, Call::SuspendProcesses)
        .once(request.send())
        .await?;
    Ok(())
}

pub(super) async fn resume(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
) -> Result<(), AwsError> {
    let clients = aws.clients(region).await;
    let request = clients
        .autoscaling
        .resume_processes()
        .auto_scaling_group_name(group.as_str())
        .scaling_processes(LAUNCH);
    aws.turn(region, Call::ResumeProcesses)
        .once(request.send())
        .await?;
    Ok(())
}

pub(super) async fn tag(
    aws: &SdkAws,
    region: &Region,
    group: &GroupName,
    key: &str,
    value: &str,
) -> Result<(), AwsError> {
    let tag = Tag::builder()
        .resource_id(group.as_str())
        .resource_type("auto-scaling-group")
        .key(key)
        .value(value)
        .propagate_at_launch(false)
        .build();
    let clients = aws.clients(region).await;
    let request = clients.autoscaling.create_or_update_tags().tags(tag);
    aws.turn(region, Call::CreateOrUpdateTags)
        .once(request.send())
        .await?;
    Ok(())
}

fn int(call: Call, region: &Region, number: u32) -> Result<i32, AwsError> {
    i32::try_from(number).map_err(|_| {
        AwsError::unreported(
            call,
            region,
            FailureKind::Config,
            format!("{number} is more than AWS counts"),
            false,
        )
    })
}
