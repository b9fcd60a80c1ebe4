//! The calls that change something: one attempt each.
//!
//! Called by `sdk` only. The client given here never retries.

use aws_sdk_autoscaling::Client;
use aws_sdk_autoscaling::types::{RetryStrategy, Tag};

use super::convert;
use super::fault::fault;
use crate::{
    AwsError, Call, FailureKind, GroupName, InstanceId, LaunchAsk, LaunchPlace, LaunchReply, Region,
};

/// The most instances of one SetInstanceProtection call (AWS's limit).
const PROTECT_AT_ONCE: usize = 50;

/// The one process that Drover ever suspends.
const LAUNCH: &str = "Launch";

pub(super) async fn launch(
    client: &Client,
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
    let request = client
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
    let reply = request.send().await.map_err(|e| fault(call, region, e))?;
    Ok(convert::launch_reply(reply))
}

pub(super) async fn desired(
    client: &Client,
    region: &Region,
    group: &GroupName,
    desired: u32,
) -> Result<(), AwsError> {
    let call = Call::SetDesiredCapacity;
    client
        .set_desired_capacity()
        .auto_scaling_group_name(group.as_str())
        .desired_capacity(int(call, region, desired)?)
        .honor_cooldown(false)
        .send()
        .await
        .map_err(|e| fault(call, region, e))?;
    Ok(())
}

pub(super) async fn terminate(
    client: &Client,
    region: &Region,
    instance: &InstanceId,
) -> Result<(), AwsError> {
    client
        .terminate_instance_in_auto_scaling_group()
        .instance_id(instance.as_str())
        .should_decrement_desired_capacity(true)
        .send()
        .await
        .map_err(|e| fault(Call::TerminateInstanceInAutoScalingGroup, region, e))?;
    Ok(())
}

pub(super) async fn protect(
    client: &Client,
    region: &Region,
    group: &GroupName,
    instances: &[InstanceId],
) -> Result<(), AwsError> {
    for some in instances.chunks(PROTECT_AT_ONCE) {
        client
            .set_instance_protection()
            .auto_scaling_group_name(group.as_str())
            .set_instance_ids(Some(some.iter().map(|i| i.as_str().to_owned()).collect()))
            .protected_from_scale_in(true)
            .send()
            .await
            .map_err(|e| fault(Call::SetInstanceProtection, region, e))?;
    }
    Ok(())
}

pub(super) async fn suspend(
    client: &Client,
    region: &Region,
    group: &GroupName,
) -> Result<(), AwsError> {
    client
        .suspend_processes()
        .auto_scaling_group_name(group.as_str())
        .scaling_processes(LAUNCH)
        .send()
        .await
        .map_err(|e| fault(Call::SuspendProcesses, region, e))?;
    Ok(())
}

pub(super) async fn resume(
    client: &Client,
    region: &Region,
    group: &GroupName,
) -> Result<(), AwsError> {
    client
        .resume_processes()
        .auto_scaling_group_name(group.as_str())
        .scaling_processes(LAUNCH)
        .send()
        .await
        .map_err(|e| fault(Call::ResumeProcesses, region, e))?;
    Ok(())
}

pub(super) async fn tag(
    client: &Client,
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
    client
        .create_or_update_tags()
        .tags(tag)
        .send()
        .await
        .map_err(|e| fault(Call::CreateOrUpdateTags, region, e))?;
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
