//! Ends that are asked for: TerminateInstanceInAutoScalingGroup with AWS's refusals, EC2's TerminateInstances, and the
//! watch over protection.
//!
//! Called by the server.

use super::desired;
use super::ending::{self, Ending};
use super::ledger::Cause;
use super::member::Phase;
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::RegionState;
use super::warm;

/// Answers a TerminateInstanceInAutoScalingGroup call.
pub(super) async fn terminate(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, id) = (query.region.as_str(), query.get("InstanceId"));
    let decrement = query.get("ShouldDecrementDesiredCapacity") == "true";
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    if let Some(group) = warm::group_of(&state, id) {
        let text = format!(
            "Instance {id} is in the warm pool of {group} and cannot be terminated by this call."
        );
        return Ok(Reply::invalid(query, &text));
    }
    let unknown = format!("Instance Id not found - No managed instance found for instance ID {id}");
    let Some(name) = group_of(proxy, &state, region, id).await? else {
        return Ok(Reply::invalid(query, &unknown));
    };
    let Some(group) = proxy.view(&mut state, region, &name).await? else {
        return Ok(Reply::no_group(query));
    };
    let dead = (state.instances.get(id)).is_some_and(|m| m.phase == Phase::Dead);
    if group.member(id).is_none() && !dead {
        return Ok(Reply::invalid(query, &unknown));
    }
    let live = group.count() + state.dead_count(&name);
    let wish = state.group(&name).wish.unwrap_or(live);
    if decrement && wish <= group.min {
        let text = format!(
            "Currently, desiredSize equals minSize ({}). Terminating instance without replacement will violate group's min \
             size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
            group.min
        );
        return Ok(Reply::invalid(query, &text));
    }
    if group.is_suspended("Terminate") {
        let text = format!("The Terminate process is suspended for AutoScalingGroup {name}.");
        return Ok(Reply::invalid(query, &text));
    }
    let (cause, shrinks) = if decrement {
        let text = format!(", shrinking the capacity from {wish} to {}", wish - 1);
        (Cause::Decrement, text)
    } else {
        (Cause::WithoutDecrement, String::new())
    };
    let ending = Ending {
        group: &name,
        id,
        cause,
        why: format!("was taken out of service in response to a user request{shrinks}."),
    };
    let activity = ending::begin(proxy, &mut state, region, &group, &ending).await?;
    state.group(&name).wish = Some(if decrement { wish - 1 } else { wish });
    let told = state
        .group(&name)
        .activities
        .by_id(&activity)
        .map(|row| row.element("Activity", &name));
    if !decrement {
        let after = proxy.view(&mut state, region, &name).await?;
        if let Some(after) = after {
            desired::fill(proxy, &mut state, region, &name, &after).await?;
        }
    }
    let result = told.into_iter().collect();
    Ok(Reply::result("TerminateInstanceInAutoScalingGroup", result))
}

/// The group that an instance is in.
async fn group_of(
    proxy: &Proxy,
    state: &RegionState,
    region: &str,
    id: &str,
) -> Result<Option<String>, String> {
    if let Some(known) = state.instances.get(id) {
        return Ok(Some(known.group.clone()));
    }
    let params = [("InstanceIds.member.1", id)];
    let reply = proxy
        .upstream()
        .autoscaling(region, "DescribeAutoScalingInstances", &params)
        .await?;
    Ok(reply
        .child("DescribeAutoScalingInstancesResult")
        .and_then(|r| r.child("AutoScalingInstances"))
        .and_then(|l| l.children.iter().find(|m| m.text_of("InstanceId") == id))
        .map(|m| m.text_of("AutoScalingGroupName").to_owned()))
}

/// Answers EC2's TerminateInstances: members of groups end behind their groups' backs.
pub(super) async fn in_ec2(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let region = query.region.as_str();
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    if query.get("DryRun") == "true" {
        return proxy.upstream().forward(query).await;
    }
    for id in query.plain_list("InstanceId") {
        if let Some(name) = group_of(proxy, &state, region, &id).await?
            && let Some(view) = proxy.view(&mut state, region, &name).await?
            && view.member(&id).is_some()
        {
            ending::outside(proxy, &mut state, region, &view, &name, &id, None).await?;
        }
    }
    proxy.upstream().forward(query).await
}

/// Forwards a SetInstanceProtection call and keeps account of protection taken off.
pub(super) async fn protect(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let ids = query.list("InstanceIds");
    if ids.len() > 50 {
        return Ok(Reply::invalid(
            query,
            "The number of instance ids that can be passed in is limited to 50.",
        ));
    }
    {
        let handle = proxy.region(&query.region);
        let state = handle.lock().await;
        if let Some(id) = ids.iter().find(|id| warm::group_of(&state, id).is_some()) {
            let text =
                format!("The instance {id} is not in InService or EnteringStandby or Standby.");
            return Ok(Reply::invalid(query, &text));
        }
    }
    if query.get("ProtectedFromScaleIn") != "true" {
        for id in ids {
            proxy.ledger().unprotect(id);
        }
    }
    proxy.upstream().forward(query).await
}

/// Forwards a SetInstanceHealth call; what is unhealthy is replaced as AWS does.
pub(super) async fn health(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let region = query.region.as_str();
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let id = query.get("InstanceId");
    let Some(name) = group_of(proxy, &state, region, id).await? else {
        let text =
            format!("Instance Id not found - No managed instance found for instance ID {id}");
        return Ok(Reply::invalid(query, &text));
    };
    let reply = proxy.upstream().forward(query).await?;
    if reply.is_ok() {
        if query.get("HealthStatus") == "Unhealthy" {
            ending::fail_health(proxy, &mut state, &name, id);
        } else {
            state.group(&name).unhealthy.remove(id);
        }
    }
    Ok(reply)
}
