//! TerminateInstanceInAutoScalingGroup with AWS's refusals, and the look at what else changes a group.
//!
//! Called by the server.

use std::time::{Duration, Instant};

use super::clock::now_unix_ms;
use super::group_view::GroupView;
use super::ledger::{Cause, End};
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::Leaving;

/// Answers a TerminateInstanceInAutoScalingGroup call.
pub(super) async fn terminate(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, id) = (query.region.as_str(), query.get("InstanceId"));
    let decrement = query.get("ShouldDecrementDesiredCapacity") == "true";
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(name) = group_of(proxy, region, id).await? else {
        let text =
            format!("Instance Id not found - No managed instance found for instance ID {id}");
        return Ok(Reply::invalid(query, &text));
    };
    let Some(group) = GroupView::read(proxy.upstream(), region, &name).await? else {
        return Ok(Reply::invalid(
            query,
            &format!("AutoScalingGroup name not found - AutoScalingGroup {name} not found"),
        ));
    };
    let wish = state.group(&name).wish.unwrap_or_else(|| group.count());
    if decrement && wish <= group.min {
        let text = format!(
            "Currently, desiredSize equals minSize ({}). Terminating instance without replacement will violate group's min \
             size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
            group.min
        );
        return Ok(Reply::invalid(query, &text));
    }
    let member = group
        .xml
        .child("Instances")
        .and_then(|list| list.children.iter().find(|m| m.text_of("InstanceId") == id))
        .cloned();
    let reply = proxy.upstream().forward(query).await?;
    if !reply.is_ok() {
        return Ok(reply);
    }
    let timing = proxy.scenario().timing(region, &name);
    if let Some(mut member) = member.filter(|_| timing.terminating_ms > 0) {
        member.set_text("LifecycleState", "Terminating");
        let until = Instant::now() + Duration::from_millis(timing.terminating_ms);
        state.group(&name).leaving.push(Leaving { until, member });
    }
    if decrement {
        state.group(&name).wish = Some(wish - 1);
    }
    state.group(&name).note(
        false,
        &format!("Terminating EC2 instance: {id}"),
        "user request",
        "",
        "",
    );
    proxy.ledger().ends.push(End {
        at_unix_ms: now_unix_ms(),
        region: region.to_owned(),
        group: name,
        instance: id.to_owned(),
        cause: if decrement {
            Cause::Decrement
        } else {
            Cause::WithoutDecrement
        },
    });
    Ok(reply)
}

/// The group that moto has an instance in.
async fn group_of(proxy: &Proxy, region: &str, id: &str) -> Result<Option<String>, String> {
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

/// Forwards a call that makes or changes a group, after AWS's checks, and takes over the desired capacity in it.
pub(super) async fn put_group(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let name = query.group();
    let handle = proxy.region(&query.region);
    let mut state = handle.lock().await;
    let there = GroupView::read(proxy.upstream(), &query.region, name).await?;
    if query.action == "CreateAutoScalingGroup" && there.is_some() {
        let text = "AutoScalingGroup by this name already exists - A group with the given name already exists";
        return Ok(Reply::error(query, 400, "AlreadyExists", text));
    }
    let number = |key: &str| query.get(key).parse::<i64>().ok();
    let min = number("MinSize")
        .or(there.as_ref().map(|g| i64::from(g.min)))
        .unwrap_or(0);
    let max = number("MaxSize")
        .or(there.as_ref().map(|g| i64::from(g.max)))
        .unwrap_or(0);
    if min < 0 || max < min {
        return Ok(Reply::invalid(
            query,
            "Max bound must be greater than or equal to min bound",
        ));
    }
    if let Some(desired) = number("DesiredCapacity") {
        if desired < min || desired > max {
            let text = format!(
                "Desired capacity:{desired} must be between the specified min size:{min} and max size:{max}"
            );
            return Ok(Reply::invalid(query, &text));
        }
        state.group(name).wish = u32::try_from(desired).ok();
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
    if query.get("ProtectedFromScaleIn") != "true" {
        proxy.ledger().unprotected.extend(ids);
    }
    proxy.upstream().forward(query).await
}
