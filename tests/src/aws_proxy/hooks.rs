//! Lifecycle hooks that really hold: put, described, beaten, completed, and begun for an instance.
//!
//! Called by the server and by everything that launches or ends. moto keeps the hooks; the waits are the proxy's.

use std::time::{Duration, Instant};

use super::clock::now_unix_ms;
use super::events;
use super::ledger::Lifecycle;
use super::member::{Hook, Phase, Wait};
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::RegionState;
use super::xml::Element;

/// AWS's bounds of a heartbeat, seconds.
const HEARTBEAT: std::ops::RangeInclusive<u64> = 30..=7_200;
/// AWS's longest wait, seconds: the smaller of this and 100 heartbeats.
const LONGEST: u64 = 172_800;

/// The hooks of a group for one of `autoscaling:EC2_INSTANCE_LAUNCHING` (true) and `..._TERMINATING`.
pub(super) async fn of(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    launching: bool,
) -> Result<Vec<Hook>, String> {
    let form = [("AutoScalingGroupName", group)];
    let reply = proxy
        .upstream()
        .autoscaling(region, "DescribeLifecycleHooks", &form)
        .await?;
    let rows = reply
        .child("DescribeLifecycleHooksResult")
        .and_then(|r| r.child("LifecycleHooks"));
    let second = proxy.scenario().hook_second_ms;
    let word = if launching {
        "LAUNCHING"
    } else {
        "TERMINATING"
    };
    let hooks = rows
        .into_iter()
        .flat_map(|r| r.children.iter())
        .filter(|h| h.text_of("LifecycleTransition").ends_with(word))
        .map(|h| {
            let heartbeat: u64 = h.text_of("HeartbeatTimeout").parse().unwrap_or(3_600);
            let name = h.text_of("LifecycleHookName").to_owned();
            let (target, metadata) = state
                .group(group)
                .hook_targets
                .get(&name)
                .cloned()
                .unwrap_or_default();
            Hook {
                name,
                heartbeat: Duration::from_millis(heartbeat.saturating_mul(second)),
                global: Duration::from_millis(global(heartbeat).saturating_mul(second)),
                continues: h.text_of("DefaultResult") == "CONTINUE",
                target,
                metadata,
            }
        })
        .collect();
    Ok(hooks)
}

fn global(heartbeat: u64) -> u64 {
    heartbeat.saturating_mul(100).min(LONGEST)
}

/// Begins to hold an instance; gives the waits.
pub(super) async fn begin(
    proxy: &Proxy,
    region: &str,
    group: &str,
    id: &str,
    hooks: Vec<Hook>,
    launching: bool,
) -> Result<Vec<Wait>, String> {
    let mut waits = Vec::new();
    for hook in hooks {
        let wait = Wait::new(hook);
        note(proxy, region, group, id, &wait.hook.name, "began", None);
        events::lifecycle(proxy, region, group, id, &wait, launching).await?;
        waits.push(wait);
    }
    Ok(waits)
}

/// What has become of the waits of an instance: those that are left, or the wait that was abandoned.
pub(super) fn time_out(
    proxy: &Proxy,
    region: &str,
    group: &str,
    id: &str,
    waits: &mut Vec<Wait>,
) -> Option<Wait> {
    let now = Instant::now();
    let mut abandoned = None;
    waits.retain(|wait| {
        if wait.until > now {
            return true;
        }
        let result = if wait.hook.continues {
            "CONTINUE"
        } else {
            "ABANDON"
        };
        note(
            proxy,
            region,
            group,
            id,
            &wait.hook.name,
            "timed_out",
            Some(result),
        );
        if !wait.hook.continues {
            abandoned = Some(wait.clone());
        }
        false
    });
    abandoned
}

fn note(
    proxy: &Proxy,
    region: &str,
    group: &str,
    instance: &str,
    hook: &str,
    what: &str,
    result: Option<&str>,
) {
    proxy.ledger().lifecycle(Lifecycle {
        at_unix_ms: now_unix_ms(),
        region: region.to_owned(),
        group: group.to_owned(),
        instance: instance.to_owned(),
        hook: hook.to_owned(),
        what: what.to_owned(),
        result: result.map(str::to_owned),
    });
}

/// Answers RecordLifecycleActionHeartbeat and CompleteLifecycleAction.
pub(super) async fn answer(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, group) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let (name, token) = (
        query.get("LifecycleHookName"),
        query.get("LifecycleActionToken"),
    );
    let asked = query.get("InstanceId");
    let holds = |w: &Wait| w.hook.name == name && (token.is_empty() || w.token == token);
    let found = state
        .instances
        .iter()
        .find(|(id, m)| {
            m.group == group && (asked.is_empty() || *id == asked) && m.waits.iter().any(holds)
        })
        .map(|(id, m)| (id.clone(), m.clone()));
    let completes = query.action == "CompleteLifecycleAction";
    let result = query.get("LifecycleActionResult");
    if completes && !matches!(result, "CONTINUE" | "ABANDON") {
        return Ok(Reply::invalid(
            query,
            "Lifecycle Action Result is not valid.",
        ));
    }
    let Some((id, mut member)) = found else {
        let what = if asked.is_empty() {
            format!("token {token}")
        } else {
            format!("instance ID {asked}")
        };
        note(proxy, region, group, asked, name, "refused", None);
        if proxy.view(&mut state, region, group).await?.is_none() {
            return Ok(Reply::no_group(query));
        }
        let text = format!("No active Lifecycle Action found with {what}");
        return Ok(Reply::invalid(query, &text));
    };
    if completes {
        note(proxy, region, group, &id, name, "completed", Some(result));
        let done = member.waits.iter().find(|w| holds(w)).cloned();
        member.waits.retain(|w| !holds(w));
        if result == "ABANDON" {
            // What is left does not hold it any more; a launch ends.
            member.waits.clear();
            if member.phase == Phase::LaunchWait {
                let why = "Lifecycle Action Completed with ABANDON Result";
                let token = done.map(|w| w.token).unwrap_or_default();
                super::ending::abandon(proxy, &mut state, region, &id, &token, why).await?;
                return Ok(Reply::empty_result("CompleteLifecycleAction"));
            }
        }
    } else {
        note(proxy, region, group, &id, name, "heartbeat", None);
        for wait in member.waits.iter_mut().filter(|w| holds(w)) {
            wait.beat();
        }
    }
    state.keep(&id, member);
    super::advance::members(proxy, &mut state, region).await?;
    Ok(Reply::empty_result(&query.action))
}

/// Answers PutLifecycleHook.
pub(super) async fn put(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, group) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    if proxy.view(&mut state, region, group).await?.is_none() {
        return Ok(Reply::no_group(query));
    }
    let heartbeat = query.get("HeartbeatTimeout").parse().unwrap_or(3_600);
    if !HEARTBEAT.contains(&heartbeat) {
        let text = "HeartbeatTimeout must be between 30 and 7200 seconds.";
        return Ok(Reply::invalid(query, text));
    }
    let reply = proxy.upstream().forward(query).await?;
    if reply.is_ok() {
        let target = query.get("NotificationTargetARN").to_owned();
        let metadata = query.get("NotificationMetadata").to_owned();
        events::hook_test(proxy, region, group, &target).await?;
        let name = query.get("LifecycleHookName").to_owned();
        state
            .group(group)
            .hook_targets
            .insert(name, (target, metadata));
    }
    Ok(reply)
}

/// Answers DescribeLifecycleHooks: moto invents targets and lacks the whole time.
pub(super) async fn describe(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let handle = proxy.region(&query.region);
    let mut state = handle.lock().await;
    let reply = proxy.upstream().forward(query).await?;
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    let list = tree
        .child_mut("DescribeLifecycleHooksResult")
        .and_then(|r| r.child_mut("LifecycleHooks"));
    for hook in list.map(|l| l.children.as_mut_slice()).unwrap_or_default() {
        let name = hook.text_of("LifecycleHookName").to_owned();
        hook.children
            .retain(|c| !matches!(c.name.as_str(), "NotificationTargetARN" | "RoleARN"));
        let targets = &state.group(query.group()).hook_targets;
        let (target, metadata) = targets.get(&name).cloned().unwrap_or_default();
        let heartbeat = hook.text_of("HeartbeatTimeout").parse().unwrap_or(3_600);
        hook.set_text("HeartbeatTimeout", heartbeat.to_string());
        hook.set_text("GlobalTimeout", global(heartbeat).to_string());
        if hook.text_of("DefaultResult").is_empty() {
            hook.set_text("DefaultResult", "ABANDON");
        }
        for (key, value) in [
            ("NotificationTargetARN", target),
            ("NotificationMetadata", metadata),
        ] {
            if !value.is_empty() {
                hook.children.push(Element::leaf(key, value));
            }
        }
    }
    Ok(Reply::xml(200, tree.document(super::reply::AUTOSCALING)))
}
