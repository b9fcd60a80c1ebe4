//! Describes: moto's answers, made as late, as hidden and as stale as the scenario wants.
//!
//! Called by the server. It changes what is shown, never what is.

use std::time::{Duration, Instant};

use super::clock::rfc3339;
use super::query::Query;
use super::reply::{AUTOSCALING, EC2, Reply};
use super::server::Proxy;
use super::state::{ActivityRow, RegionState};
use super::xml::Element;

/// Answers DescribeAutoScalingGroups.
pub(super) async fn groups(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let mut state = handle.lock().await;
    let reply = proxy.upstream().forward(query).await?;
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    let list = tree
        .child_mut("DescribeAutoScalingGroupsResult")
        .and_then(|r| r.child_mut("AutoScalingGroups"));
    for group in list.map(|l| l.children.as_mut_slice()).unwrap_or_default() {
        let name = group.text_of("AutoScalingGroupName").to_owned();
        show_group(&mut state, &name, group);
        let lag = Duration::from_millis(
            proxy
                .scenario()
                .timing(&query.region, &name)
                .describe_lag_ms,
        );
        match &state.group(&name).described {
            Some((at, before)) if at.elapsed() < lag => *group = before.clone(),
            _ => state.group(&name).described = Some((Instant::now(), group.clone())),
        }
    }
    Ok(Reply::xml(200, tree.document(AUTOSCALING)))
}

fn show_group(state: &mut RegionState, name: &str, group: &mut Element) {
    if let Some(wish) = state.group(name).wish {
        group.set_text("DesiredCapacity", wish.to_string());
    }
    let leaving: Vec<Element> = {
        let known = state.group(name);
        known.leaving.retain(|l| l.until > Instant::now());
        known.leaving.iter().map(|l| l.member.clone()).collect()
    };
    let Some(members) = group.child_mut("Instances") else {
        return;
    };
    members.children.retain(|m| {
        !state
            .instances
            .get(m.text_of("InstanceId"))
            .is_some_and(|s| s.hidden())
    });
    for member in &mut members.children {
        let Some(shown) = state.instances.get(member.text_of("InstanceId")) else {
            continue;
        };
        if shown.pending() {
            member.set_text("LifecycleState", "Pending");
        }
        if let Some(zone) = &shown.zone {
            member.set_text("AvailabilityZone", zone);
        }
        if let Some(instance_type) = shown.instance_type.as_ref().filter(|t| !t.is_empty()) {
            member.set_text("InstanceType", instance_type);
        }
    }
    members.children.extend(leaving);
}

/// Answers EC2's DescribeInstances.
pub(super) async fn instances(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let state = handle.lock().await;
    let reply = proxy.upstream().forward(query).await?;
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    tree.each_mut("instancesSet", &mut |set| {
        set.children.retain(|i| {
            !state
                .instances
                .get(i.text_of("instanceId"))
                .is_some_and(|s| s.hidden())
        });
        for instance in &mut set.children {
            let Some(shown) = state.instances.get(instance.text_of("instanceId")) else {
                continue;
            };
            let running = instance
                .child("instanceState")
                .is_some_and(|s| s.text_of("name") == "running");
            if shown.pending() && running {
                let pending = vec![Element::leaf("code", "0"), Element::leaf("name", "pending")];
                if let Some(entry) = instance.child_mut("instanceState") {
                    *entry = Element::node("instanceState", pending);
                }
            }
            if let (Some(zone), Some(placement)) = (&shown.zone, instance.child_mut("placement")) {
                placement.set_text("availabilityZone", zone);
            }
        }
    });
    Ok(Reply::xml(200, tree.document(EC2)))
}

/// Answers DescribeScalingActivities, newest first, in pages.
pub(super) async fn activities(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let state = handle.lock().await;
    let size: usize = query.get("MaxRecords").parse().unwrap_or(50);
    let start: usize = query.get("NextToken").parse().unwrap_or(0);
    let rows: Vec<(&String, &ActivityRow)> = state
        .groups
        .iter()
        .filter(|(name, _)| query.group().is_empty() || query.group() == name.as_str())
        .flat_map(|(name, group)| group.activities.iter().rev().map(move |row| (name, row)))
        .collect();
    let page = rows
        .iter()
        .skip(start)
        .take(size)
        .map(|(name, row)| activity(name, row))
        .collect();
    let mut result = vec![Element::node("Activities", page)];
    if rows.len() > start + size {
        result.push(Element::leaf("NextToken", (start + size).to_string()));
    }
    Ok(Reply::result("DescribeScalingActivities", result))
}

fn activity(group: &str, row: &ActivityRow) -> Element {
    let time = rfc3339(row.at_unix_ms);
    Element::node(
        "member",
        vec![
            Element::leaf("ActivityId", &row.id),
            Element::leaf("AutoScalingGroupName", group),
            Element::leaf("Description", &row.description),
            Element::leaf("Cause", &row.cause),
            Element::leaf("StartTime", &time),
            Element::leaf("EndTime", &time),
            Element::leaf(
                "StatusCode",
                if row.failed { "Failed" } else { "Successful" },
            ),
            Element::leaf("StatusMessage", &row.message),
            Element::leaf("Progress", "100"),
            Element::leaf("Details", &row.details),
        ],
    )
}
