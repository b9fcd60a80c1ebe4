//! Instances that come: moto starts them, the proxy says how they are shown and keeps account of them.
//!
//! Called by LaunchInstances, by a wish that is filled, and by what AWS does by itself. It takes no rations.

use std::time::Instant;

use super::activity::{NewActivity, Status};
use super::clock::{now_unix_ms, seconds};
use super::events;
use super::group_view::GroupView;
use super::hooks;
use super::ledger::Launch;
use super::member::{Member, Phase};
use super::server::Proxy;
use super::state::RegionState;

/// Instances that are to come, and how they are told of.
pub(super) struct Growth<'a> {
    pub(super) group: &'a str,
    pub(super) count: u32,
    pub(super) zone: &'a str,
    pub(super) instance_type: &'a str,
    pub(super) spot: bool,
    /// What the ledger calls it.
    pub(super) way: &'a str,
    pub(super) token: &'a str,
    /// What the activities say after the time.
    pub(super) why: &'a str,
}

/// Lets moto start instances in the group and gives their ids.
pub(super) async fn grow(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    view: &GroupView,
    growth: &Growth<'_>,
) -> Result<Vec<String>, String> {
    if growth.count == 0 {
        return Ok(Vec::new());
    }
    let desired = (view.active + growth.count).to_string();
    let params = [
        ("AutoScalingGroupName", growth.group),
        ("DesiredCapacity", desired.as_str()),
    ];
    let upstream = proxy.upstream();
    upstream
        .autoscaling(region, "SetDesiredCapacity", &params)
        .await?;
    let after = proxy.view(state, region, growth.group).await?;
    let before: std::collections::BTreeSet<&String> = view.ids.iter().collect();
    let new: Vec<String> = after
        .map(|g| g.ids.clone())
        .unwrap_or_default()
        .into_iter()
        .filter(|id| !before.contains(id))
        .collect();
    arrived(proxy, state, region, &new, growth).await?;
    Ok(new)
}

/// Keeps account of instances that moto has just put into the group.
pub(super) async fn arrived(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    ids: &[String],
    growth: &Growth<'_>,
) -> Result<(), String> {
    if ids.is_empty() {
        return Ok(());
    }
    let hooks = hooks::of(proxy, state, region, growth.group, true).await?;
    let timing = proxy.scenario().timing(region, growth.group);
    let cause = format!("At {} {}", seconds(now_unix_ms()), growth.why);
    let since = Instant::now();
    for id in ids {
        let activity = state.group(growth.group).activities.note(&NewActivity {
            status: Status::InProgress,
            description: &format!("Launching a new EC2 instance: {id}"),
            cause: &cause,
            message: "",
            zone: growth.zone,
        });
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let member = Member {
            group: growth.group.to_owned(),
            since,
            timing: timing.clone(),
            zone: some(growth.zone),
            instance_type: some(growth.instance_type),
            spot: growth.spot,
            phase: Phase::Pending,
            hooks: hooks.clone(),
            waits: Vec::new(),
            activity,
            entry: None,
        };
        state.keep(id, member);
        events::state_change(proxy, region, id, "pending").await?;
        super::advance::one(proxy, state, region, id).await?;
    }
    proxy.ledger().launch(Launch {
        at_unix_ms: now_unix_ms(),
        region: region.to_owned(),
        group: growth.group.to_owned(),
        zone: growth.zone.to_owned(),
        instance_type: growth.instance_type.to_owned(),
        way: growth.way.to_owned(),
        token: growth.token.to_owned(),
        instances: ids.to_vec(),
    });
    Ok(())
}
