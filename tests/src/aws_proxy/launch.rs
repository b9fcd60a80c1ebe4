//! LaunchInstances, which moto does not have: zone check, maximum, rations, ClientToken.
//!
//! Called by the server. AWS documents the call's shape; where it leaves behaviour open (a launch above the
//! maximum, a suspended Launch process), the words of the refusal are ours and the README says so.

use std::time::{Duration, Instant};

use super::group_view::GroupView;
use super::grow::{Growth, grow};
use super::query::Query;
use super::refusal::refusal;
use super::reply::Reply;
use super::server::{Proxy, internal};
use super::state::{Remembered, take_ration};
use super::xml::Element;

/// AWS's limit for one call.
const MAX_COUNT: u32 = 100;

/// Answers a LaunchInstances call.
pub(super) async fn launch_instances(proxy: &Proxy, query: &Query) -> Reply {
    let token = query.get("ClientToken").to_owned();
    let mut params = query.params.clone();
    params.remove("ClientToken");
    let asked = format!("{params:?}");
    let memory = proxy.scenario().token_memory_ms.map(Duration::from_millis);
    if !token.is_empty() {
        let region = proxy.region(&query.region);
        let mut state = region.lock().await;
        let known = state
            .token(&token)
            .filter(|r| memory.is_none_or(|m| r.at.elapsed() < m))
            .cloned();
        match known {
            Some(known) if known.asked != asked => {
                let text = "The request uses the same client token as a previous, but non-identical request.";
                return Reply::error(query, 400, "IdempotentParameterMismatch", text);
            }
            Some(Remembered {
                answer: Some(answer),
                ..
            }) => return answer,
            Some(_) => {
                let text = "A request with the same client token is still in progress.";
                return Reply::error(query, 409, "IdempotentCallInProgress", text);
            }
            None => {
                let row = Remembered {
                    asked,
                    at: Instant::now(),
                    answer: None,
                };
                state.remember_token(&token, row);
            }
        }
    }
    let timing = proxy.scenario().timing(&query.region, query.group());
    // sleeps: the scenario makes launches slow
    tokio::time::sleep(Duration::from_millis(timing.launch_ms)).await;
    let reply = launch(proxy, query, &token)
        .await
        .unwrap_or_else(|e| internal(query, &e));
    if !token.is_empty() {
        let region = proxy.region(&query.region);
        // A refused call launched nothing: the token is free again.
        let answer = reply.is_ok().then(|| reply.clone());
        region.lock().await.settle_token(&token, answer);
    }
    reply
}

/// The one zone that a launch goes to, or AWS's refusal.
fn place(query: &Query, group: &GroupView, wish: u32) -> Result<String, String> {
    let (name, count) = (
        query.group(),
        query.number("RequestedCapacity").unwrap_or(0),
    );
    let mut zones = query.list("AvailabilityZones");
    if zones.is_empty() && !query.list("SubnetIds").is_empty() {
        zones = group.zones.first().cloned().into_iter().collect();
    }
    if zones.is_empty() && group.zones.len() == 1 {
        zones.clone_from(&group.zones);
    }
    let templated = ["LaunchTemplate", "MixedInstancesPolicy"];
    if !(1..=MAX_COUNT).contains(&count) {
        return Err(format!(
            "RequestedCapacity must be between 1 and {MAX_COUNT}."
        ));
    }
    if !matches!(
        query.get("RetryStrategy"),
        "" | "none" | "retry-with-group-configuration"
    ) {
        return Err("RetryStrategy is not valid.".to_owned());
    }
    if !templated.iter().any(|t| group.xml.child(t).is_some()) {
        return Err("LaunchInstances requires a launch template.".to_owned());
    }
    if group.mixes_markets {
        let text = "LaunchInstances is not supported for groups that use both On-Demand and Spot Instances.";
        return Err(text.to_owned());
    }
    let zone = match zones.as_slice() {
        [zone] => zone.clone(),
        [] => {
            let text = "Availability Zones or subnets must be specified for a group with multiple Availability Zones.";
            return Err(text.to_owned());
        }
        _ => return Err("Only one Availability Zone can be specified.".to_owned()),
    };
    if !group.zones.contains(&zone) {
        return Err(format!(
            "Availability Zone {zone} is not enabled for the AutoScalingGroup {name}."
        ));
    }
    if group.is_suspended("Launch") {
        return Err(format!(
            "The Launch process is suspended for AutoScalingGroup {name}."
        ));
    }
    if wish.saturating_add(count) > group.max {
        return Err(format!(
            "New desired capacity {} is above max value {} for the AutoScalingGroup.",
            wish + count,
            group.max
        ));
    }
    Ok(zone)
}

async fn launch(proxy: &Proxy, query: &Query, token: &str) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(group) = proxy.view(&mut state, region, name).await? else {
        return Ok(Reply::no_group(query));
    };
    let live = group.count() + state.dead_count(name);
    let wish = state.group(name).wish.unwrap_or(live).max(live);
    let zone = match place(query, &group, wish) {
        Ok(zone) => zone,
        Err(refused) => return Ok(Reply::invalid(query, &refused)),
    };
    let can = group.launchable(proxy.upstream(), region).await?;
    let count = query.number("RequestedCapacity").unwrap_or(0);
    let market = if can.spot { "spot" } else { "on-demand" };
    let (mut left, mut now) = (count, (*group).clone());
    let (mut launched, mut errors) = (Vec::new(), Vec::new());
    let place = |instance_type: &str, more: Vec<Element>| {
        let mut all = vec![
            Element::leaf("InstanceType", instance_type),
            Element::leaf("MarketType", market),
            Element::leaf("AvailabilityZone", &zone),
        ];
        all.extend(more);
        Element::node("member", all)
    };
    for instance_type in &can.types {
        if left == 0 {
            break;
        }
        let (granted, short) = {
            let mut scenario = proxy.scenario();
            take_ration(&mut scenario, region, name, &zone, instance_type, left)
        };
        let growth = Growth {
            group: name,
            count: granted,
            zone: &zone,
            instance_type,
            spot: can.spot,
            way: "LaunchInstances",
            token,
            why: "an instance was launched in response to a LaunchInstances request.",
        };
        let ids = grow(proxy, &mut state, region, &now, &growth).await?;
        left -= granted;
        now.active += granted;
        now.ids.extend(ids.iter().cloned());
        if !ids.is_empty() {
            let list = ids.iter().map(|id| Element::leaf("member", id)).collect();
            launched.push(place(
                instance_type,
                vec![Element::node("InstanceIds", list)],
            ));
        }
        if let Some(row) = short {
            let refused = refusal(&row, instance_type, &zone, can.spot);
            let error = vec![
                Element::leaf("ErrorCode", refused.code),
                Element::leaf("ErrorMessage", refused.words),
            ];
            errors.push(place(instance_type, error));
        }
    }
    state.group(name).wish = Some(wish + count - left);
    Ok(Reply::result(
        "LaunchInstances",
        vec![
            Element::leaf("AutoScalingGroupName", name),
            Element::leaf("ClientToken", token),
            Element::node("Instances", launched),
            Element::node("Errors", errors),
        ],
    ))
}
