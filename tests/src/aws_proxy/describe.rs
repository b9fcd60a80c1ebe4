//! Describes: moto's answers, made as late, as hidden and as stale as the scenario wants.
//!
//! Called by the server. It changes what is shown, never what is.

use std::time::{Duration, Instant};

use super::activity::ActivityRow;
use super::member::{Member, Phase};
use super::query::Query;
use super::reply::{AUTOSCALING, EC2, Reply};
use super::server::Proxy;
use super::state::RegionState;
use super::warm;
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
            _ if lag.is_zero() => {}
            _ => state.group(&name).described = Some((Instant::now(), group.clone())),
        }
    }
    Ok(Reply::xml(200, tree.document(AUTOSCALING)))
}

fn show_group(state: &mut RegionState, name: &str, group: &mut Element) {
    let apart: Vec<Element> = state
        .apart(name)
        .filter_map(|(_, m)| {
            let mut entry = m.entry.clone()?;
            m.dress(&mut entry);
            Some(entry)
        })
        .collect();
    if let Some(members) = group.child_mut("Instances") {
        show_members(state, members);
        members.children.extend(apart);
        let unhealthy = &state.group(name).unhealthy;
        for member in &mut members.children {
            if unhealthy.contains(member.text_of("InstanceId")) {
                member.set_text("HealthStatus", "Unhealthy");
            }
        }
    }
    let known = state.group(name);
    if let Some(wish) = known.wish {
        group.set_text("DesiredCapacity", wish.to_string());
    }
    for (key, value) in &known.attributes {
        group.set_text(key, value.as_str());
    }
    if known.deleting {
        group.set_text("Status", "Delete in progress");
    }
    if let Some(warm) = &known.warm {
        group.set_text("WarmPoolSize", warm.instances.len().to_string());
    }
    if let Some(suspended) = group.child_mut("SuspendedProcesses") {
        for process in &mut suspended.children {
            if let Some(reason) = known.reasons.get(process.text_of("ProcessName")) {
                process.set_text("SuspensionReason", reason.as_str());
            }
        }
    }
}

/// Members as moto lists them: without the hidden ones, and as the proxy knows them.
fn show_members(state: &RegionState, members: &mut Element) {
    let known = |m: &Element| state.instances.get(m.text_of("InstanceId"));
    members
        .children
        .retain(|m| !known(m).is_some_and(Member::hidden));
    for member in &mut members.children {
        if let Some(known) = state.instances.get(member.text_of("InstanceId")) {
            known.dress(member);
        }
    }
}

/// Answers DescribeAutoScalingInstances.
pub(super) async fn group_instances(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let state = handle.lock().await;
    let reply = proxy.upstream().forward(query).await?;
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    let list = tree
        .child_mut("DescribeAutoScalingInstancesResult")
        .and_then(|r| r.child_mut("AutoScalingInstances"));
    if let Some(list) = list {
        show_members(&state, list);
        let ids = query.list("InstanceIds");
        let apart = state.instances.values().filter_map(|m| {
            let mut entry = m.entry.clone()?;
            m.dress(&mut entry);
            entry.set_text("AutoScalingGroupName", m.group.as_str());
            Some(entry)
        });
        let more = apart.chain(warm::entries(&state));
        let asked = |e: &Element| ids.iter().any(|id| id == e.text_of("InstanceId"));
        list.children
            .extend(more.filter(|e| ids.is_empty() || asked(e)));
    }
    Ok(Reply::xml(200, tree.document(AUTOSCALING)))
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
            let known = state.instances.get(i.text_of("instanceId"));
            !known.is_some_and(Member::hidden)
        });
        for instance in &mut set.children {
            let id = instance.text_of("instanceId").to_owned();
            if let Some(known) = state.instances.get(&id) {
                show_instance(known, instance);
            }
            if let Some((code, words)) = state.reason(&id) {
                let reason = vec![Element::leaf("code", code), Element::leaf("message", words)];
                instance.children.retain(|c| c.name != "stateReason");
                instance.children.push(Element::node("stateReason", reason));
            }
        }
    });
    Ok(Reply::xml(200, tree.document(EC2)))
}

fn show_instance(known: &Member, instance: &mut Element) {
    let word = match known.phase {
        Phase::Pending if known.pending() => Some(("0", "pending")),
        Phase::Ending { .. } => Some(("32", "shutting-down")),
        _ => None,
    };
    let running = instance
        .child("instanceState")
        .is_some_and(|s| s.text_of("name") == "running");
    if let Some((code, name)) = word.filter(|_| running)
        && let Some(entry) = instance.child_mut("instanceState")
    {
        let state = vec![Element::leaf("code", code), Element::leaf("name", name)];
        *entry = Element::node("instanceState", state);
    }
    if let (Some(zone), Some(placement)) = (&known.zone, instance.child_mut("placement")) {
        placement.set_text("availabilityZone", zone);
    }
    if let Some(instance_type) = known.instance_type.as_ref().filter(|t| !t.is_empty()) {
        instance.set_text("instanceType", instance_type);
    }
    if known.spot {
        instance.set_text("instanceLifecycle", "spot");
    }
    if known.entry.is_some() {
        // moto takes the group's tag off what it has detached; AWS keeps it to the end.
        let tag = Element::node(
            "item",
            vec![
                Element::leaf("key", "aws:autoscaling:groupName"),
                Element::leaf("value", &known.group),
            ],
        );
        match instance.child_mut("tagSet") {
            Some(tags) => tags.children.push(tag),
            None => instance.children.push(Element::node("tagSet", vec![tag])),
        }
    }
}

/// Answers DescribeScalingActivities, newest first, in pages.
pub(super) async fn activities(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let state = handle.lock().await;
    let size: usize = query.get("MaxRecords").parse().unwrap_or(50);
    let start = query.page_start();
    let ids = query.list("ActivityIds");
    let rows: Vec<(&String, &ActivityRow)> = state
        .groups
        .iter()
        .filter(|(name, _)| query.group().is_empty() || query.group() == name.as_str())
        .flat_map(|(name, group)| group.activities.newest_first().map(move |row| (name, row)))
        .filter(|(_, row)| ids.is_empty() || ids.contains(&row.id))
        .collect();
    let page = rows
        .iter()
        .skip(start)
        .take(size)
        .map(|(name, row)| row.element("member", name))
        .collect();
    let mut result = vec![Element::node("Activities", page)];
    if rows.len() > start + size {
        result.push(Element::leaf("NextToken", (start + size).to_string()));
    }
    Ok(Reply::result("DescribeScalingActivities", result))
}

/// Answers DescribePolicies: moto does not keep whether one is enabled.
pub(super) async fn policies(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let state = handle.lock().await;
    let reply = proxy.upstream().forward(query).await?;
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    let list = tree
        .child_mut("DescribePoliciesResult")
        .and_then(|r| r.child_mut("ScalingPolicies"));
    for policy in list.map(|l| l.children.as_mut_slice()).unwrap_or_default() {
        let group = state.groups.get(policy.text_of("AutoScalingGroupName"));
        let name = policy.text_of("PolicyName").to_owned();
        let off = group.is_some_and(|g| g.disabled_policies.contains(&name));
        policy.set_text("Enabled", if off { "false" } else { "true" });
    }
    Ok(Reply::xml(200, tree.document(AUTOSCALING)))
}
