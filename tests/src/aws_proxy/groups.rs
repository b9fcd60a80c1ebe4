//! Calls that make, change and delete groups, with AWS's checks and what moto does not keep.
//!
//! Called by the server and by acts.

use std::time::Instant;

use super::clock::{now_unix_ms, seconds};
use super::desired;
use super::ending::{self, Ending};
use super::group_view::GroupView;
use super::ledger::Cause;
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::RegionState;
use super::warm;
use super::xml::Element;

/// What moto does not take over from a call, or never shows.
const ATTRIBUTES: [&str; 4] = [
    "MaxInstanceLifetime",
    "CapacityRebalance",
    "DefaultInstanceWarmup",
    "HealthCheckGracePeriod",
];

/// Forwards a call that makes or changes a group, after AWS's checks, and takes over the desired capacity in it.
pub(super) async fn put(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let there = proxy.view(&mut state, region, name).await?;
    let creates = query.action == "CreateAutoScalingGroup";
    if creates && there.is_some() {
        let text = "AutoScalingGroup by this name already exists - A group with the given name already exists";
        return Ok(Reply::error(query, 400, "AlreadyExists", text));
    }
    let number = |key: &str| query.get(key).parse::<i64>().ok();
    let kept = |of: fn(&GroupView) -> u32| there.as_ref().map(|g| i64::from(of(g)));
    let min = number("MinSize").or(kept(|g| g.min)).unwrap_or(0);
    let max = number("MaxSize").or(kept(|g| g.max)).unwrap_or(0);
    if min < 0 || max < min {
        let text = "Max bound must be greater than or equal to min bound";
        return Ok(Reply::invalid(query, text));
    }
    let asked = number("DesiredCapacity");
    if let Some(desired) = asked.filter(|d| *d < min || *d > max) {
        let text = format!(
            "Desired capacity:{desired} must be between the specified min size:{min} and max size:{max}"
        );
        return Ok(Reply::invalid(query, &text));
    }
    let reply = match &there {
        None => proxy.upstream().forward(query).await?,
        Some(view) => proxy.upstream().forward(&changed(query, view)).await?,
    };
    if !reply.is_ok() {
        return Ok(reply);
    }
    for key in ATTRIBUTES {
        let value = query.get(key);
        if value == "0" && key == "MaxInstanceLifetime" {
            state.group(name).attributes.remove(key);
        } else if !value.is_empty() {
            let attributes = &mut state.group(name).attributes;
            attributes.insert(key.to_owned(), value.to_owned());
        }
    }
    let asked = asked.and_then(|d| u32::try_from(d).ok());
    match there {
        None => {
            state.group(name).wish = asked;
            first_hooks(proxy, query).await?;
        }
        Some(view) => {
            let live = view.count() + state.dead_count(name);
            let before = state.group(name).wish.unwrap_or(live);
            let bound = |n: i64| u32::try_from(n).unwrap_or(0);
            let wish = asked.unwrap_or(before.clamp(bound(min), bound(max)));
            if wish != before || asked.is_some() {
                state.group(name).wish = Some(wish);
                desired::fill(proxy, &mut state, region, name, &view).await?;
            }
        }
    }
    Ok(reply)
}

/// An update as moto needs it: it would fill or empty the group by itself, and forgets a policy that is not named again.
fn changed(query: &Query, view: &GroupView) -> Query {
    let mut query = query.clone();
    query
        .params
        .insert("DesiredCapacity".to_owned(), view.active.to_string());
    let names = |prefix: &str| query.params.keys().any(|k| k.starts_with(prefix));
    let changes = [
        "MixedInstancesPolicy.",
        "LaunchTemplate.",
        "LaunchConfigurationName",
    ];
    if let Some(policy) = view.xml.child("MixedInstancesPolicy")
        && !changes.iter().any(|c| names(c))
    {
        flatten("MixedInstancesPolicy", policy, &mut query);
    }
    query
}

/// Writes an element as the form that would make it. A template is named by its id alone.
fn flatten(name: &str, element: &Element, query: &mut Query) {
    if element.children.is_empty() {
        if !name.ends_with("LaunchTemplateSpecification.LaunchTemplateName")
            && !element.text.is_empty()
        {
            query.params.insert(name.to_owned(), element.text.clone());
        }
        return;
    }
    let mut number = 0;
    for child in &element.children {
        if child.name == "member" {
            number += 1;
            flatten(&format!("{name}.member.{number}"), child, query);
        } else {
            flatten(&format!("{name}.{}", child.name), child, query);
        }
    }
}

/// Puts the hooks that a new group brings along.
async fn first_hooks(proxy: &Proxy, query: &Query) -> Result<(), String> {
    for n in 1..=50 {
        let prefix = format!("LifecycleHookSpecificationList.member.{n}.");
        let mut form: Vec<(&str, &str)> = query
            .params
            .iter()
            .filter_map(|(k, v)| Some((k.strip_prefix(&prefix)?, v.as_str())))
            .collect();
        if form.is_empty() {
            return Ok(());
        }
        form.push(("AutoScalingGroupName", query.group()));
        let upstream = proxy.upstream();
        upstream
            .autoscaling(&query.region, "PutLifecycleHook", &form)
            .await?;
    }
    Ok(())
}

/// Sets a group's limits, and what follows from them.
pub(super) async fn limit(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    view: &GroupView,
    min: u32,
    max: u32,
) -> Result<(), String> {
    let mut query = Query::default();
    region.clone_into(&mut query.region);
    "autoscaling".clone_into(&mut query.service);
    for (key, value) in [
        ("Action", "UpdateAutoScalingGroup".to_owned()),
        ("Version", "2011-01-01".to_owned()),
        ("AutoScalingGroupName", name.to_owned()),
        ("MinSize", min.to_string()),
        ("MaxSize", max.to_string()),
    ] {
        query.params.insert(key.to_owned(), value);
    }
    let reply = proxy.upstream().forward(&changed(&query, view)).await?;
    if !reply.is_ok() {
        return Err(String::from_utf8_lossy(&reply.body).into_owned());
    }
    let live = view.count() + state.dead_count(name);
    let before = state.group(name).wish.unwrap_or(live);
    let wish = before.clamp(min, max.max(min));
    if wish != before {
        state.group(name).wish = Some(wish);
        desired::fill(proxy, state, region, name, view).await?;
    }
    Ok(())
}

/// Answers DeleteAutoScalingGroup.
pub(super) async fn delete_call(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(view) = proxy.view(&mut state, region, name).await? else {
        return Ok(Reply::no_group(query));
    };
    let some = view.count() > 0 || state.apart(name).next().is_some();
    if some && query.get("ForceDelete") != "true" {
        let text = "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) \
                    still in the group.";
        return Ok(Reply::error(query, 400, "ResourceInUse", text));
    }
    delete(proxy, &mut state, region, name, &view).await?;
    Ok(Reply::empty("DeleteAutoScalingGroup"))
}

/// Deletes a group with its instances, protected or not, and without their hooks. While they end the group is still shown.
pub(super) async fn delete(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    view: &GroupView,
) -> Result<(), String> {
    let warm = state.group(name).warm.clone().unwrap_or_default();
    warm::end(
        proxy,
        state,
        region,
        name,
        warm.instances.into_keys().collect(),
    )
    .await?;
    state.group(name).wish = Some(0);
    state.group(name).warm = None;
    let hooks = proxy
        .upstream()
        .autoscaling(
            region,
            "DescribeLifecycleHooks",
            &[("AutoScalingGroupName", name)],
        )
        .await?;
    let hooks = hooks
        .child("DescribeLifecycleHooksResult")
        .and_then(|r| r.child("LifecycleHooks"));
    for hook in hooks.map(|h| h.children.as_slice()).unwrap_or_default() {
        let form = [
            ("AutoScalingGroupName", name),
            ("LifecycleHookName", hook.text_of("LifecycleHookName")),
        ];
        let upstream = proxy.upstream();
        upstream
            .autoscaling(region, "DeleteLifecycleHook", &form)
            .await?;
    }
    let dead = state.apart(name).map(|(id, _)| id.clone());
    let ids: Vec<String> = dead.chain(view.ids.iter().cloned()).collect();
    for id in &ids {
        let ending = Ending {
            group: name,
            id,
            cause: Cause::GroupDeleted,
            why: "was taken out of service in response to a user request to delete the group."
                .to_owned(),
        };
        ending::begin(proxy, state, region, view, &ending).await?;
    }
    state.group(name).deleting = true;
    forget_if_empty(proxy, state, region, name).await
}

/// Lets a group that goes away be gone once its last instance is.
pub(super) async fn forget_if_empty(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
) -> Result<(), String> {
    if !state.group(name).deleting || state.apart(name).next().is_some() {
        return Ok(());
    }
    state.groups.remove(name);
    let form = [("AutoScalingGroupName", name), ("ForceDelete", "true")];
    let upstream = proxy.upstream();
    let gone = upstream.autoscaling(region, "DeleteAutoScalingGroup", &form);
    gone.await.map(|_| ())
}

/// Forwards SuspendProcesses and ResumeProcesses and remembers why.
pub(super) async fn processes(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    if proxy.view(&mut state, region, name).await?.is_none() {
        return Ok(Reply::no_group(query));
    }
    let reply = proxy.upstream().forward(query).await?;
    if reply.is_ok() {
        let named = query.list("ScalingProcesses");
        if query.action == "ResumeProcesses" {
            resumed(&mut state, name, &named);
        } else {
            let reason = format!("User suspended at {}", seconds(now_unix_ms()));
            for process in named {
                let reasons = &mut state.group(name).reasons;
                reasons.entry(process).or_insert_with(|| reason.clone());
            }
        }
    }
    Ok(reply)
}

/// What waited for a process is looked at again. No names: all of them.
pub(super) fn resumed(state: &mut RegionState, name: &str, processes: &[String]) {
    let group = state.group(name);
    if processes.is_empty() {
        group.reasons.clear();
    }
    for process in processes {
        group.reasons.remove(process);
    }
    group.health_at = group.health_at.map(|_| Instant::now());
    if group.wish.is_some() {
        group.retry_at = Some(Instant::now());
    }
}

/// Forwards PutScalingPolicy; moto does not keep that one is disabled.
pub(super) async fn put_policy(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let reply = proxy.upstream().forward(query).await?;
    if reply.is_ok() {
        let handle = proxy.region(&query.region);
        let mut state = handle.lock().await;
        let disabled = &mut state.group(query.group()).disabled_policies;
        let name = query.get("PolicyName").to_owned();
        if query.get("Enabled") == "false" {
            disabled.insert(name);
        } else {
            disabled.remove(&name);
        }
    }
    Ok(reply)
}
