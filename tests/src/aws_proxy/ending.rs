//! How members end: by request, by scale-in, by AWS itself, and behind the group's back.
//!
//! Called by everything that ends a member. It does not decide who ends.

use std::time::{Duration, Instant};

use super::activity::{NewActivity, Status};
use super::clock::{now_unix_ms, seconds};
use super::events;
use super::group_view::GroupView;
use super::groups;
use super::hooks;
use super::ledger::{Cause, End};
use super::member::{Member, Phase};
use super::server::Proxy;
use super::state::RegionState;
use super::xml::Element;

/// An end that begins.
pub(super) struct Ending<'a> {
    pub(super) group: &'a str,
    pub(super) id: &'a str,
    pub(super) cause: Cause,
    /// What the activity says after the time and the instance: `was taken out of service in response to ...`.
    pub(super) why: String,
}

/// Begins to end a member: hooks hold it, then it ends for as long as the scenario says. The desired capacity stays as it
/// is. Gives the id of the activity.
pub(super) async fn begin(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    view: &GroupView,
    ending: &Ending<'_>,
) -> Result<String, String> {
    let Ending {
        group, id, cause, ..
    } = *ending;
    let known = state.instances.get(id).cloned();
    let dead = known.as_ref().is_some_and(|m| m.phase == Phase::Dead);
    let timing = proxy.scenario().timing(region, group);
    let held = cause != Cause::Abandoned && !dead;
    let hooks = if held {
        hooks::of(proxy, state, region, group, false).await?
    } else {
        Vec::new()
    };
    let entry = known.as_ref().and_then(|m| m.entry.clone());
    let mut entry = entry
        .or_else(|| view.member(id).cloned())
        .unwrap_or_default();
    if let Some(known) = &known {
        known.dress(&mut entry);
        if known.is_coming() {
            let activities = &mut state.group(group).activities;
            activities.turn(&known.activity, Status::Cancelled, "");
        }
    }
    if !dead {
        detach(proxy, state, region, group, id).await?;
    }
    let text = format!("At {} instance {id} {}", seconds(now_unix_ms()), ending.why);
    let waits = hooks::begin(proxy, region, group, id, hooks, false).await?;
    let status = if waits.is_empty() {
        Status::InProgress
    } else {
        Status::MidEnd
    };
    let activity = state.group(group).activities.note(&NewActivity {
        status,
        description: &format!("Terminating EC2 instance: {id}"),
        cause: &text,
        message: "",
        zone: entry.text_of("AvailabilityZone"),
    });
    proxy.ledger().end(End {
        at_unix_ms: now_unix_ms(),
        region: region.to_owned(),
        group: group.to_owned(),
        instance: id.to_owned(),
        cause,
    });
    state.group(group).unhealthy.remove(id);
    let until = Instant::now() + Duration::from_millis(timing.terminating_ms);
    let phase = if waits.is_empty() {
        Phase::Ending { until }
    } else {
        Phase::EndWait
    };
    let zone = entry.text_of("AvailabilityZone").to_owned();
    let member = Member {
        group: group.to_owned(),
        since: Instant::now(),
        timing,
        zone: (!zone.is_empty()).then_some(zone),
        instance_type: known.as_ref().and_then(|m| m.instance_type.clone()),
        spot: known.as_ref().is_some_and(|m| m.spot),
        phase,
        hooks: Vec::new(),
        waits,
        activity: activity.clone(),
        entry: Some(entry),
    };
    state.keep(id, member);
    if phase == Phase::EndWait {
        return Ok(activity);
    }
    if !dead {
        events::state_change(proxy, region, id, "shutting-down").await?;
    }
    if until <= Instant::now() {
        finish(proxy, state, region, id).await?;
    }
    Ok(activity)
}

/// The end of an end: EC2 ends it, the group forgets it.
pub(super) async fn finish(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    id: &str,
) -> Result<(), String> {
    end_in_ec2(proxy, state, region, id).await?;
    if let Some(member) = state.instances.get(id).cloned() {
        let group = state.group(&member.group);
        group
            .activities
            .turn(&member.activity, Status::Successful, "");
        state.forget(id);
        groups::forget_if_empty(proxy, state, region, &member.group).await?;
    }
    Ok(())
}

/// Ends an instance in EC2 behind its group's back: it stays a member until a health check sees it.
pub(super) async fn outside(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    view: &GroupView,
    group: &str,
    id: &str,
    reason: Option<(&str, &str)>,
) -> Result<(), String> {
    let Some(mut entry) = view.member(id).cloned() else {
        return Err(format!("{id} is no member of {group} in moto"));
    };
    let known = state.instances.get(id).cloned();
    if let Some(known) = &known {
        known.dress(&mut entry);
        if known.is_coming() {
            let words = reason.map_or("", |(_, words)| words);
            let why = format!(
                "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: {words}"
            );
            let activities = &mut state.group(group).activities;
            activities.turn(&known.activity, Status::Failed, &why);
        }
    }
    detach(proxy, state, region, group, id).await?;
    end_in_ec2(proxy, state, region, id).await?;
    if let Some((code, words)) = reason {
        state.set_reason(id, code, words);
    }
    proxy.ledger().end(End {
        at_unix_ms: now_unix_ms(),
        region: region.to_owned(),
        group: group.to_owned(),
        instance: id.to_owned(),
        cause: Cause::Outside,
    });
    entry.set_text("LifecycleState", "InService");
    let timing = proxy.scenario().timing(region, group);
    let member = Member {
        group: group.to_owned(),
        since: Instant::now(),
        timing,
        zone: known.as_ref().and_then(|m| m.zone.clone()),
        instance_type: known.as_ref().and_then(|m| m.instance_type.clone()),
        spot: known.as_ref().is_some_and(|m| m.spot),
        phase: Phase::Dead,
        hooks: Vec::new(),
        waits: Vec::new(),
        activity: String::new(),
        entry: Some(entry),
    };
    state.keep(id, member);
    if !view.is_suspended("HealthCheck") {
        fail_health(proxy, state, group, id);
    }
    Ok(())
}

/// A health check fails a member; ReplaceUnhealthy looks at it after the scenario's time.
pub(super) fn fail_health(proxy: &Proxy, state: &mut RegionState, group: &str, id: &str) {
    let after = Duration::from_millis(proxy.scenario().health_check_ms);
    let group = state.group(group);
    group.unhealthy.insert(id.to_owned());
    group.health_at = Some(Instant::now() + after);
}

/// A launch that a hook gave up: the instance ends, another is tried.
pub(super) async fn abandon(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    id: &str,
    token: &str,
    why: &str,
) -> Result<(), String> {
    let Some(member) = state.instances.get(id).cloned() else {
        return Ok(());
    };
    let name = member.group.clone();
    let message = format!(
        "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token {token} was abandoned: {why}"
    );
    let group = state.group(&name);
    group
        .activities
        .turn(&member.activity, Status::Cancelled, &message);
    let Some(view) = proxy.view(state, region, &name).await? else {
        state.forget(id);
        return Ok(());
    };
    let ending = Ending {
        group: &name,
        id,
        cause: Cause::Abandoned,
        why: "was taken out of service in response to its launching lifecycle action being abandoned.".to_owned(),
    };
    begin(proxy, state, region, &view, &ending).await?;
    let group = state.group(&name);
    group.wish.get_or_insert(view.count());
    group.retry_at = Some(Instant::now());
    Ok(())
}

/// Takes an instance out of moto's group; moto puts nothing in its place.
async fn detach(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    id: &str,
) -> Result<(), String> {
    let upstream = proxy.upstream();
    let before = upstream.mark(region);
    let form = [
        ("AutoScalingGroupName", group),
        ("InstanceIds.member.1", id),
        ("ShouldDecrementDesiredCapacity", "true"),
    ];
    upstream
        .autoscaling(region, "DetachInstances", &form)
        .await?;
    state
        .views
        .carry(before, upstream.mark(region), |name, view| {
            if name == group {
                view.remove(id);
            }
        });
    Ok(())
}

/// Ends an instance that moto has in no group (any more).
async fn end_in_ec2(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    id: &str,
) -> Result<(), String> {
    let form = [("InstanceId.1", id)];
    let upstream = proxy.upstream();
    let before = upstream.mark(region);
    upstream.ec2(region, "TerminateInstances", &form).await?;
    let after = upstream.mark(region);
    state.views.carry(before, after, |_, _| {});
    events::state_change(proxy, region, id, "terminated").await
}

impl Member {
    /// Writes what the proxy knows better than moto into a group's entry of this member.
    pub(super) fn dress(&self, entry: &mut Element) {
        if let Some(zone) = &self.zone {
            entry.set_text("AvailabilityZone", zone);
        }
        if let Some(instance_type) = self.instance_type.as_ref().filter(|t| !t.is_empty()) {
            entry.set_text("InstanceType", instance_type);
        }
        if let Some(word) = self.word() {
            entry.set_text("LifecycleState", word);
        }
    }
}
