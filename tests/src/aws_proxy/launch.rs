//! LaunchInstances, which moto does not have: zone check, maximum, rations, ClientToken.
//!
//! Called by the server. AWS documents the call's shape; where it leaves behaviour open (a launch above the
//! maximum, a suspended Launch process), the words of the refusal are ours and the README says so.

use std::time::Duration;

use super::clock::now_unix_ms;
use super::group_view::GroupView;
use super::ledger::Launch;
use super::query::Query;
use super::reply::Reply;
use super::scenario::Ration;
use super::server::{Proxy, internal};
use super::state::{Remembered, refusal, take_ration};
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
    {
        let region = proxy.region(&query.region);
        let mut state = region.lock().await;
        if !token.is_empty() {
            let known = state
                .tokens
                .get(&token)
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
                    let at = std::time::Instant::now();
                    state.tokens.insert(
                        token.clone(),
                        Remembered {
                            asked,
                            at,
                            answer: None,
                        },
                    );
                }
            }
        }
    }
    let timing = proxy.scenario().timing(&query.region, query.group());
    // sleeps: the scenario makes launches slow
    tokio::time::sleep(Duration::from_millis(timing.launch_ms)).await;
    let reply = launch(proxy, query, &token)
        .await
        .unwrap_or_else(|e| internal(query, &e));
    let region = proxy.region(&query.region);
    let mut state = region.lock().await;
    if reply.is_ok() {
        if let Some(entry) = state.tokens.get_mut(&token) {
            entry.answer = Some(reply.clone());
        }
    } else {
        // A refused call launched nothing: the token is free again.
        state.tokens.remove(&token);
    }
    reply
}

async fn launch(proxy: &Proxy, query: &Query, token: &str) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(group) = GroupView::read(proxy.upstream(), region, name).await? else {
        return Ok(Reply::invalid(
            query,
            &format!("AutoScalingGroup name not found - AutoScalingGroup {name} not found"),
        ));
    };
    let count: u32 = query.get("RequestedCapacity").parse().unwrap_or(0);
    let mut zones = query.list("AvailabilityZones");
    if zones.is_empty() && !query.list("SubnetIds").is_empty() {
        zones = group.zones.first().cloned().into_iter().collect();
    }
    if zones.is_empty() && group.zones.len() == 1 {
        zones = group.zones.clone();
    }
    let wish = state
        .group(name)
        .wish
        .unwrap_or_else(|| group.count())
        .max(group.count());
    let problem = if count == 0 || count > MAX_COUNT {
        Some(format!(
            "RequestedCapacity must be between 1 and {MAX_COUNT}."
        ))
    } else if !matches!(
        query.get("RetryStrategy"),
        "" | "none" | "retry-with-group-configuration"
    ) {
        Some("RetryStrategy is not valid.".to_owned())
    } else if group.xml.child("LaunchTemplate").is_none()
        && group.xml.child("MixedInstancesPolicy").is_none()
    {
        Some("LaunchInstances requires a launch template.".to_owned())
    } else if group.mixes_markets {
        Some("LaunchInstances is not supported for groups that use both On-Demand and Spot Instances.".to_owned())
    } else if zones.is_empty() {
        Some("Availability Zones or subnets must be specified for a group with multiple Availability Zones.".to_owned())
    } else if zones.len() > 1 {
        Some("Only one Availability Zone can be specified.".to_owned())
    } else if !group.zones.contains(&zones[0]) {
        Some(format!(
            "Availability Zone {} is not enabled for the AutoScalingGroup {name}.",
            zones[0]
        ))
    } else if group.is_suspended("Launch") {
        Some(format!(
            "The Launch process is suspended for AutoScalingGroup {name}."
        ))
    } else if wish.saturating_add(count) > group.max {
        Some(format!(
            "New desired capacity {} is above max value {} for the AutoScalingGroup.",
            wish + count,
            group.max
        ))
    } else {
        None
    };
    if let Some(problem) = problem {
        return Ok(Reply::invalid(query, &problem));
    }
    let zone = zones.remove(0);
    let (granted, short) = {
        let mut scenario = proxy.scenario();
        take_ration(
            &mut scenario,
            region,
            name,
            &zone,
            &group.instance_type,
            count,
        )
    };
    let ids = proxy
        .grow(&mut state, region, &group, name, granted, &zone)
        .await?;
    state.group(name).wish = Some(wish + granted);
    if !ids.is_empty() {
        proxy.ledger().launches.push(Launch {
            at_unix_ms: now_unix_ms(),
            region: region.to_owned(),
            group: name.to_owned(),
            zone: zone.clone(),
            instance_type: group.instance_type.clone(),
            way: "LaunchInstances".to_owned(),
            token: token.to_owned(),
            instances: ids.clone(),
        });
    }
    Ok(answer(
        name,
        token,
        &group.instance_type,
        &zone,
        &ids,
        short.as_ref(),
    ))
}

fn answer(
    name: &str,
    token: &str,
    instance_type: &str,
    zone: &str,
    ids: &[String],
    short: Option<&Ration>,
) -> Reply {
    let place = |more: Vec<Element>| {
        let mut all = vec![
            Element::leaf("InstanceType", instance_type),
            Element::leaf("MarketType", "on-demand"),
            Element::leaf("AvailabilityZone", zone),
        ];
        all.extend(more);
        Element::node("member", all)
    };
    let mut instances = Vec::new();
    if !ids.is_empty() {
        let list = ids.iter().map(|id| Element::leaf("member", id)).collect();
        instances.push(place(vec![Element::node("InstanceIds", list)]));
    }
    let errors = short
        .map(|row| {
            let (code, message) = refusal(row, instance_type, zone);
            place(vec![
                Element::leaf("ErrorCode", code),
                Element::leaf("ErrorMessage", message),
            ])
        })
        .into_iter()
        .collect();
    Reply::result(
        "LaunchInstances",
        vec![
            Element::leaf("AutoScalingGroupName", name),
            Element::leaf("ClientToken", token),
            Element::node("Instances", instances),
            Element::node("Errors", errors),
        ],
    )
}
