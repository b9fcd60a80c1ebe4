//! The desired capacity as AWS keeps it: an absolute wish that is filled when it can be, and scale-in.
//!
//! Called by the server for SetDesiredCapacity, and as time passes to try unfilled wishes again.

use std::time::{Duration, Instant};

use super::activity::{NewActivity, Status};
use super::clock::{now_unix_ms, seconds};
use super::ending::{self, Ending};
use super::group_view::GroupView;
use super::grow::{Growth, grow};
use super::ledger::Cause;
use super::query::Query;
use super::refusal::refusal;
use super::reply::Reply;
use super::server::Proxy;
use super::state::{RegionState, take_ration};
use super::warm;

/// Answers a SetDesiredCapacity call.
pub(super) async fn set_desired(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(group) = proxy.view(&mut state, region, name).await? else {
        return Ok(Reply::no_group(query));
    };
    let Some(desired) = query.number("DesiredCapacity") else {
        let text = "DesiredCapacity must be a number of 0 or more.";
        return Ok(Reply::invalid(query, text));
    };
    if let Err(text) = wish(proxy, &mut state, region, name, &group, desired).await? {
        return Ok(Reply::invalid(query, &text));
    }
    Ok(Reply::empty("SetDesiredCapacity"))
}

/// Takes a wish within the group's limits and begins to fill it; the inner error is AWS's refusal.
pub(super) async fn wish(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    group: &GroupView,
    desired: u32,
) -> Result<Result<(), String>, String> {
    let (side, bound) = if desired > group.max {
        ("above max", group.max)
    } else if desired < group.min {
        ("below min", group.min)
    } else {
        state.group(name).wish = Some(desired);
        state.group(name).retry_at = None;
        fill(proxy, state, region, name, group).await?;
        return Ok(Ok(()));
    };
    Ok(Err(format!(
        "New SetDesiredCapacity value {desired} is {side} value {bound} for the AutoScalingGroup."
    )))
}

/// Tries every unfilled wish of a region whose time has come.
pub(super) async fn fill_due(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
) -> Result<(), String> {
    let due: Vec<String> = state
        .groups
        .iter()
        .filter(|(_, g)| g.retry_at.is_some_and(|at| Instant::now() >= at))
        .map(|(name, _)| name.clone())
        .collect();
    for name in due {
        match proxy.view(state, region, &name).await? {
            Some(group) => fill(proxy, state, region, &name, &group).await?,
            None => state.group(&name).retry_at = None,
        }
    }
    Ok(())
}

/// Brings the group nearer to its wish, as far as rations and suspended processes let it.
pub(super) async fn fill(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    group: &GroupView,
) -> Result<(), String> {
    let live = group.count() + state.dead_count(name);
    let wish = state.group(name).wish.unwrap_or(live);
    let again = Duration::from_millis(proxy.scenario().retry_ms);
    state.group(name).retry_at = None;
    if wish < live {
        return scale_in(proxy, state, region, name, group, live - wish).await;
    }
    if wish == live || state.group(name).deleting {
        return Ok(());
    }
    if group.is_suspended("Launch") {
        // Looked at again when the process is resumed, or, where that is done behind the proxy, after the usual time.
        state.group(name).retry_at = Some(Instant::now() + again.min(Duration::from_secs(1)));
        return Ok(());
    }
    let why = format!(
        "an instance was started in response to a difference between desired and actual capacity, increasing the capacity \
         from {live} to {wish}."
    );
    let mut left = wish - live;
    let mut now = group.clone();
    left -= warm::take(proxy, state, region, &mut now, name, left, &why).await?;
    let can = group.launchable(proxy.upstream(), region).await?;
    for zone in group.zones.clone() {
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
                way: "SetDesiredCapacity",
                token: "",
                why: &why,
            };
            let ids = grow(proxy, state, region, &now, &growth).await?;
            now.active += granted;
            now.ids.extend(ids);
            left -= granted;
            if let Some(row) = short.filter(|row| !row.silent) {
                let refused = refusal(&row, instance_type, &zone, can.spot);
                let text = refused.activity;
                state.group(name).activities.note(&NewActivity {
                    status: Status::Failed,
                    description: &format!("Launching a new EC2 instance.  Status Reason: {text}"),
                    cause: &format!("At {} {why}", seconds(now_unix_ms())),
                    message: &text,
                    zone: &zone,
                });
            }
        }
    }
    if left > 0 {
        state.group(name).retry_at = Some(Instant::now() + again);
    }
    Ok(())
}

/// Lets AWS choose who goes: the dead first, then the oldest that are not protected. Pending ones are not protected yet.
async fn scale_in(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    group: &GroupView,
    surplus: u32,
) -> Result<(), String> {
    if group.is_suspended("Terminate") {
        return Ok(());
    }
    let dead = state
        .apart(name)
        .filter(|(_, m)| m.phase == super::member::Phase::Dead);
    let dead: Vec<String> = dead.map(|(id, _)| id.clone()).collect();
    let exposed = group.ids.iter().filter(|id| {
        let protected = group
            .member(id)
            .is_some_and(|m| m.text_of("ProtectedFromScaleIn") == "true");
        !protected
            || state
                .instances
                .get(*id)
                .is_some_and(super::member::Member::unprotected_yet)
    });
    let chosen: Vec<String> = dead
        .into_iter()
        .chain(exposed.cloned())
        .take(usize::try_from(surplus).unwrap_or(usize::MAX))
        .collect();
    for id in &chosen {
        let ending = Ending {
            group: name,
            id,
            cause: Cause::ScaleIn,
            why: "was selected for termination in response to a difference between desired and actual capacity.".to_owned(),
        };
        ending::begin(proxy, state, region, group, &ending).await?;
    }
    Ok(())
}
