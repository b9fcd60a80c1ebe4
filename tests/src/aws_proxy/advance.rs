//! Time: members come and go, hooks time out, unfilled wishes are tried again, health checks replace, acts happen.
//!
//! Run by a task of its own every few milliseconds, and before every call of a region, so that what is answered is up to
//! date.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::activity::Status;
use super::ending::{self, Ending};
use super::events;
use super::hooks;
use super::ledger::Cause;
use super::member::Phase;
use super::server::Proxy;
use super::state::RegionState;
use super::{acts, desired, warm};

/// Between two looks of the task.
const EVERY: Duration = Duration::from_millis(20);
/// How often a health check that a suspended process holds up is looked at again.
const HELD_UP: Duration = Duration::from_millis(1_000);

/// Lets time pass until the task is ended.
pub(super) async fn run(proxy: Arc<Proxy>) {
    loop {
        // sleeps: this is the proxy's clock
        tokio::time::sleep(EVERY).await;
        acts::perform_due(&proxy).await;
        for region in proxy.region_names() {
            if let Err(error) = pass(&proxy, &region).await {
                proxy.ledger().trouble(error);
            }
        }
    }
}

/// Brings a region up to date.
pub(super) async fn pass(proxy: &Proxy, region: &str) -> Result<(), String> {
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    members(proxy, &mut state, region).await?;
    health(proxy, &mut state, region).await?;
    desired::fill_due(proxy, &mut state, region).await?;
    warm::keep_sizes(proxy, &mut state, region).await
}

/// Moves every member on whose time has come.
pub(super) async fn members(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
) -> Result<(), String> {
    let moving: Vec<String> = state.moving.iter().cloned().collect();
    for id in moving {
        one(proxy, state, region, &id).await?;
    }
    Ok(())
}

/// Moves one member on, as far as its time has come.
pub(super) async fn one(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    id: &str,
) -> Result<(), String> {
    loop {
        let Some(member) = state.instances.get(id) else {
            return Ok(());
        };
        let phase = member.phase;
        let due = match phase {
            Phase::Pending => member.has_started(),
            Phase::LaunchWait | Phase::EndWait => true,
            Phase::Ending { until } => until <= Instant::now(),
            Phase::InService | Phase::Dead => false,
        };
        if !due {
            return Ok(());
        }
        let mut member = member.clone();
        let group = member.group.clone();
        match phase {
            Phase::Pending => {
                events::state_change(proxy, region, id, "running").await?;
                let hooks = std::mem::take(&mut member.hooks);
                member.waits = hooks::begin(proxy, region, &group, id, hooks, true).await?;
                member.phase = Phase::LaunchWait;
                if !member.waits.is_empty() {
                    let activities = &mut state.group(&group).activities;
                    activities.turn(&member.activity, Status::MidLaunch, "");
                }
            }
            Phase::LaunchWait => {
                let abandoned = hooks::time_out(proxy, region, &group, id, &mut member.waits);
                if let Some(wait) = abandoned {
                    let why = "Heartbeat Timeout";
                    return ending::abandon(proxy, state, region, id, &wait.token, why).await;
                }
                if !member.waits.is_empty() {
                    state.keep(id, member);
                    return Ok(());
                }
                member.phase = Phase::InService;
                let activities = &mut state.group(&group).activities;
                activities.turn(&member.activity, Status::Successful, "");
            }
            Phase::EndWait => {
                // A termination that is given up goes on all the same, without the hooks that are left.
                if hooks::time_out(proxy, region, &group, id, &mut member.waits).is_some() {
                    member.waits.clear();
                }
                if !member.waits.is_empty() {
                    state.keep(id, member);
                    return Ok(());
                }
                let ends = Duration::from_millis(member.timing.terminating_ms);
                member.phase = Phase::Ending {
                    until: Instant::now() + ends,
                };
                events::state_change(proxy, region, id, "shutting-down").await?;
            }
            Phase::Ending { .. } => return ending::finish(proxy, state, region, id).await,
            Phase::InService | Phase::Dead => return Ok(()),
        }
        state.keep(id, member);
    }
}

/// ReplaceUnhealthy: what a health check has failed is ended and replaced, unless the process is suspended.
async fn health(proxy: &Proxy, state: &mut RegionState, region: &str) -> Result<(), String> {
    let now = Instant::now();
    let due: Vec<String> = state
        .groups
        .iter()
        .filter(|(_, g)| !g.unhealthy.is_empty() && g.health_at.is_some_and(|at| at <= now))
        .map(|(name, _)| name.clone())
        .collect();
    for name in due {
        let Some(view) = proxy.view(state, region, &name).await? else {
            state.group(&name).unhealthy.clear();
            continue;
        };
        let processes = ["ReplaceUnhealthy", "Terminate", "HealthCheck"];
        if processes.iter().any(|p| view.is_suspended(p)) {
            state.group(&name).health_at = Some(now + HELD_UP);
            continue;
        }
        let live = view.count() + state.dead_count(&name);
        state.group(&name).wish.get_or_insert(live);
        let ids: Vec<String> = state.group(&name).unhealthy.iter().cloned().collect();
        for id in ids {
            let dead = (state.instances.get(&id)).is_some_and(|m| m.phase == Phase::Dead);
            if view.member(&id).is_none() && !dead {
                state.group(&name).unhealthy.remove(&id);
                continue;
            }
            let why = "was taken out of service in response to an EC2 health check indicating it has been terminated or \
                       stopped.";
            let ending = Ending {
                group: &name,
                id: &id,
                cause: Cause::Unhealthy,
                why: why.to_owned(),
            };
            ending::begin(proxy, state, region, &view, &ending).await?;
        }
        state.group(&name).retry_at = Some(now);
    }
    Ok(())
}
