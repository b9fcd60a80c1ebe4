//! The desired capacity as AWS keeps it: an absolute wish that is filled when it can be, and scale-in.
//!
//! Called by the server for SetDesiredCapacity, and at every call of a region to try unfilled wishes again.

use std::time::{Duration, Instant};

use super::clock::now_unix_ms;
use super::group_view::GroupView;
use super::ledger::{Cause, End, Launch};
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::{RegionState, refusal, take_ration};

/// Answers a SetDesiredCapacity call.
pub(super) async fn set_desired(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(group) = GroupView::read(proxy.upstream(), region, name).await? else {
        return Ok(Reply::invalid(
            query,
            &format!("AutoScalingGroup name not found - AutoScalingGroup {name} not found"),
        ));
    };
    let Ok(desired) = query.get("DesiredCapacity").parse::<u32>() else {
        return Ok(Reply::invalid(
            query,
            "DesiredCapacity must be a number of 0 or more.",
        ));
    };
    if desired > group.max {
        let text = format!(
            "New SetDesiredCapacity value {desired} is above max value {} for the AutoScalingGroup.",
            group.max
        );
        return Ok(Reply::invalid(query, &text));
    }
    if desired < group.min {
        let text = format!(
            "New SetDesiredCapacity value {desired} is below min value {} for the AutoScalingGroup.",
            group.min
        );
        return Ok(Reply::invalid(query, &text));
    }
    state.group(name).wish = Some(desired);
    state.group(name).retry_at = None;
    fill(proxy, &mut state, region, name, &group).await?;
    Ok(Reply::empty("SetDesiredCapacity"))
}

/// Tries every unfilled wish of a region whose time has come.
pub(super) async fn fill_due(proxy: &Proxy, region: &str) -> Result<(), String> {
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let due: Vec<String> = state
        .groups
        .iter()
        .filter(|(_, g)| g.retry_at.is_some_and(|at| Instant::now() >= at))
        .map(|(name, _)| name.clone())
        .collect();
    for name in due {
        if let Some(group) = GroupView::read(proxy.upstream(), region, &name).await? {
            fill(proxy, &mut state, region, &name, &group).await?;
        }
    }
    Ok(())
}

/// Brings the group nearer to its wish, as far as rations and suspended processes let it.
async fn fill(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    group: &GroupView,
) -> Result<(), String> {
    let wish = state.group(name).wish.unwrap_or_else(|| group.count());
    let missing = wish.saturating_sub(group.count());
    state.group(name).retry_at = None;
    if wish < group.count() {
        return scale_in(proxy, state, region, name, group, wish).await;
    }
    if missing == 0 {
        return Ok(());
    }
    if group.is_suspended("Launch") {
        state.group(name).retry_at = Some(Instant::now());
        return Ok(());
    }
    let mut left = missing;
    let mut now = group.clone();
    for zone in group.zones.clone() {
        let (granted, short) = {
            let mut scenario = proxy.scenario();
            take_ration(
                &mut scenario,
                region,
                name,
                &zone,
                &group.instance_type,
                left,
            )
        };
        let ids = proxy
            .grow(state, region, &now, name, granted, &zone)
            .await?;
        now.ids.extend(ids.iter().cloned());
        left -= granted;
        let cause = format!(
            "At {} an instance was started in response to a difference between desired and actual capacity, increasing the capacity from {} to {wish}.",
            now_unix_ms(),
            group.count()
        );
        if !ids.is_empty() {
            for id in &ids {
                state.group(name).note(
                    false,
                    &format!("Launching a new EC2 instance: {id}"),
                    &cause,
                    "",
                    &zone,
                );
            }
            proxy.ledger().launches.push(Launch {
                at_unix_ms: now_unix_ms(),
                region: region.to_owned(),
                group: name.to_owned(),
                zone: zone.clone(),
                instance_type: group.instance_type.clone(),
                way: "SetDesiredCapacity".to_owned(),
                token: String::new(),
                instances: ids,
            });
        }
        if let Some(row) = short.filter(|row| !row.silent) {
            let (code, message) = refusal(&row, &group.instance_type, &zone);
            // With a code of its own AWS writes `Could not launch ... Instances. CODE - words`.
            let text = match row.code {
                Some(_) => format!(
                    "Could not launch On-Demand Instances. {code} - {message} Launching EC2 instance failed."
                ),
                None => format!("{message} Launching EC2 instance failed."),
            };
            state.group(name).note(
                true,
                "Launching a new EC2 instance.  Status Reason: failed",
                &cause,
                &text,
                &zone,
            );
        }
        if left == 0 {
            break;
        }
    }
    if left > 0 {
        let again = Duration::from_millis(proxy.scenario().retry_ms);
        state.group(name).retry_at = Some(Instant::now() + again);
    }
    Ok(())
}

/// Lets AWS choose who goes: the oldest that are not protected. Pending ones are not protected yet.
async fn scale_in(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    group: &GroupView,
    wish: u32,
) -> Result<(), String> {
    if group.is_suspended("Terminate") {
        return Ok(());
    }
    let pending: Vec<String> = group
        .ids
        .iter()
        .filter(|id| state.instances.get(*id).is_some_and(|s| s.pending()))
        .cloned()
        .collect();
    for id in &pending {
        let params = [
            ("AutoScalingGroupName", name),
            ("InstanceIds.member.1", id.as_str()),
            ("ProtectedFromScaleIn", "false"),
        ];
        proxy
            .upstream()
            .autoscaling(region, "SetInstanceProtection", &params)
            .await?;
    }
    let text = wish.to_string();
    let params = [
        ("AutoScalingGroupName", name),
        ("DesiredCapacity", text.as_str()),
    ];
    proxy
        .upstream()
        .autoscaling(region, "SetDesiredCapacity", &params)
        .await?;
    let after = GroupView::read(proxy.upstream(), region, name)
        .await?
        .map(|g| g.ids)
        .unwrap_or_default();
    for id in group.ids.iter().filter(|id| !after.contains(id)) {
        state.group(name).note(
            false,
            &format!("Terminating EC2 instance: {id}"),
            "scale in",
            "",
            "",
        );
        proxy.ledger().ends.push(End {
            at_unix_ms: now_unix_ms(),
            region: region.to_owned(),
            group: name.to_owned(),
            instance: id.clone(),
            cause: Cause::ScaleIn,
        });
    }
    Ok(())
}
