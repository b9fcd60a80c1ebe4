//! What AWS, or somebody, does by itself: carried out when its time comes, or when a test says so.
//!
//! Called by the proxy's clock, by `AwsProxy::act` and by the admin path. Everything is written into the ledger, and what
//! a suspended process holds up does not happen.

use std::time::{Duration, Instant};

use serde_json::json;

use super::activity::ActivityRow;
use super::clock::{now_unix_ms, rfc3339, seconds};
use super::desired;
use super::ending::{self, Ending};
use super::events;
use super::group_view::GroupView;
use super::groups;
use super::grow::{Growth, grow};
use super::ledger::{Cause, Happened};
use super::member::Phase;
use super::scenario::{Act, Deed, EventKind};
use super::server::Proxy;
use super::state::{RegionState, take_ration};

/// Most acts that wait for their time.
const MAX_WAITING: usize = 10_000;

/// Acts that wait for their time.
#[derive(Default)]
pub(super) struct Waiting(Vec<(Instant, Act)>);

impl Waiting {
    /// Begins anew with the acts of a scenario.
    pub(super) fn replace(&mut self, acts: &[Act]) {
        self.0.clear();
        for act in acts {
            self.add(Duration::from_millis(act.after_ms), act.clone());
        }
    }

    fn add(&mut self, after: Duration, act: Act) {
        if self.0.len() < MAX_WAITING {
            self.0.push((Instant::now() + after, act));
        }
    }

    fn take_due(&mut self) -> Vec<Act> {
        let now = Instant::now();
        let (due, rest) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.0 = rest;
        let mut due: Vec<(Instant, Act)> = due;
        due.sort_by_key(|(at, _)| *at);
        due.into_iter().map(|(_, act)| act).collect()
    }
}

/// Carries out what is due.
pub(super) async fn perform_due(proxy: &Proxy) {
    let due = proxy.waiting().take_due();
    for act in due {
        if let Err(error) = perform(proxy, &act).await {
            proxy.ledger().trouble(error);
        }
    }
}

/// Carries out an act at once; gives what happened.
pub(super) async fn perform(proxy: &Proxy, act: &Act) -> Result<Happened, String> {
    let handle = proxy.region(&act.region);
    let mut state = handle.lock().await;
    let view = if act.group.is_empty() {
        None
    } else {
        proxy.view(&mut state, &act.region, &act.group).await?
    };
    let done = match (&act.deed, &view) {
        (Deed::Event { body }, _) => {
            events::send_text(proxy, &act.region, None, body).await?;
            Ok(Vec::new())
        }
        (_, None) => Err(format!("there is no group {:?}", act.group)),
        (deed, Some(view)) => with_group(proxy, &mut state, act, deed, view).await?,
    };
    let named = serde_json::to_value(&act.deed).unwrap_or_default();
    let name = match &named {
        serde_json::Value::String(name) => name.clone(),
        other => other
            .as_object()
            .and_then(|o| o.keys().next().cloned())
            .unwrap_or_default(),
    };
    let (instances, refused) = match done {
        Ok(instances) => (instances, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let row = Happened {
        at_unix_ms: now_unix_ms(),
        region: act.region.clone(),
        group: act.group.clone(),
        act: name,
        instances,
        refused,
    };
    proxy.ledger().act(row.clone());
    drop(state);
    super::advance::pass(proxy, &act.region).await?;
    Ok(row)
}

/// The instances concerned, or why nothing happens.
type Done = Result<Vec<String>, String>;

async fn with_group(
    proxy: &Proxy,
    state: &mut RegionState,
    act: &Act,
    deed: &Deed,
    view: &GroupView,
) -> Result<Done, String> {
    let (region, group) = (act.region.as_str(), act.group.as_str());
    let upstream = proxy.upstream();
    match deed {
        Deed::Event { .. } => Ok(Ok(Vec::new())),
        Deed::SetDesired { desired } => {
            let taken = desired::wish(proxy, state, region, group, view, *desired).await?;
            Ok(taken.map(|()| Vec::new()))
        }
        Deed::SetLimits { min, max } => {
            let (min, max) = (min.unwrap_or(view.min), max.unwrap_or(view.max));
            groups::limit(proxy, state, region, group, view, min, max).await?;
            Ok(Ok(Vec::new()))
        }
        Deed::Suspend { process, reason } => {
            let form = [
                ("AutoScalingGroupName", group),
                ("ScalingProcesses.member.1", process),
            ];
            upstream
                .autoscaling(region, "SuspendProcesses", &form)
                .await?;
            let reason = reason
                .clone()
                .unwrap_or_else(|| format!("User suspended at {}", seconds(now_unix_ms())));
            state.group(group).reasons.insert(process.clone(), reason);
            Ok(Ok(Vec::new()))
        }
        Deed::Resume { process } => {
            let form = [
                ("AutoScalingGroupName", group),
                ("ScalingProcesses.member.1", process),
            ];
            upstream
                .autoscaling(region, "ResumeProcesses", &form)
                .await?;
            groups::resumed(state, group, std::slice::from_ref(process));
            Ok(Ok(Vec::new()))
        }
        Deed::DeleteGroup => {
            groups::delete(proxy, state, region, group, view).await?;
            Ok(Ok(view.ids.clone()))
        }
        Deed::AzRebalance { from, to, count } => {
            az_rebalance(proxy, state, region, group, view, (from, to, *count)).await
        }
        Deed::Activity {
            status,
            description,
            cause,
            message,
        } => {
            state.group(group).activities.put(ActivityRow {
                id: String::new(),
                began_unix_ms: now_unix_ms(),
                ended_unix_ms: Some(now_unix_ms()),
                status: status.clone(),
                description: description.clone(),
                cause: cause.clone(),
                message: message.clone(),
                details: "{}".to_owned(),
            });
            Ok(Ok(Vec::new()))
        }
        Deed::Unhealthy { instance }
        | Deed::TerminateInEc2 { instance, .. }
        | Deed::SpotInterruption { instance, .. }
        | Deed::RebalanceRecommendation { instance }
        | Deed::ScheduledEvent { instance, .. } => {
            let Some(id) = pick(state, view, instance.as_ref()) else {
                return Ok(Err("there is no such member in service".to_owned()));
            };
            let done = to_instance(proxy, state, act, deed, view, &id).await?;
            Ok(done.map(|()| vec![id]))
        }
    }
}

async fn to_instance(
    proxy: &Proxy,
    state: &mut RegionState,
    act: &Act,
    deed: &Deed,
    view: &GroupView,
    id: &str,
) -> Result<Result<(), String>, String> {
    let (region, group) = (act.region.as_str(), act.group.as_str());
    let arn = events::instance_arn(region, id);
    match deed {
        Deed::Unhealthy { .. } => {
            let form = [("InstanceId", id), ("HealthStatus", "Unhealthy")];
            let upstream = proxy.upstream();
            upstream
                .autoscaling(region, "SetInstanceHealth", &form)
                .await?;
            ending::fail_health(proxy, state, group, id);
        }
        Deed::TerminateInEc2 { reason, .. } => {
            let reason = reason.as_ref().map(|(c, w)| (c.as_str(), w.as_str()));
            ending::outside(proxy, state, region, view, group, id, reason).await?;
        }
        Deed::SpotInterruption { notice_ms, .. } => {
            let detail = json!({"instance-id": id, "instance-action": "terminate"});
            let name = "EC2 Spot Instance Interruption Warning";
            events::send(
                proxy,
                region,
                EventKind::SpotInterruption,
                name,
                arn,
                detail,
            )
            .await?;
            let words = "Server.SpotInstanceTermination: Spot instance termination";
            let deed = Deed::TerminateInEc2 {
                instance: Some(id.to_owned()),
                reason: Some((
                    "Server.SpotInstanceTermination".to_owned(),
                    words.to_owned(),
                )),
            };
            let end = Act {
                deed,
                ..act.clone()
            };
            proxy.waiting().add(Duration::from_millis(*notice_ms), end);
        }
        Deed::RebalanceRecommendation { .. } => {
            let detail = json!({"instance-id": id});
            let name = "EC2 Instance Rebalance Recommendation";
            events::send(proxy, region, EventKind::Rebalance, name, arn, detail).await?;
            return capacity_rebalance(proxy, state, region, group, view, id).await;
        }
        Deed::ScheduledEvent { code, in_ms, .. } => {
            let from = now_unix_ms().saturating_add(*in_ms);
            let detail = json!({
                "eventArn": format!("arn:aws:health:{region}::event/EC2/{code}/{code}_{id}"),
                "service": "EC2",
                "eventTypeCode": code,
                "eventTypeCategory": "scheduledChange",
                "startTime": rfc3339(from),
                "endTime": rfc3339(from.saturating_add(3_600_000)),
                "affectedEntities": [{"entityValue": id}],
            });
            events::send(
                proxy,
                region,
                EventKind::Health,
                "AWS Health Event",
                arn,
                detail,
            )
            .await?;
        }
        _ => {}
    }
    Ok(Ok(()))
}

/// The instance that is named, or the oldest in service.
fn pick(state: &RegionState, view: &GroupView, named: Option<&String>) -> Option<String> {
    let serves = |id: &String| {
        let known = state.instances.get(id);
        known.is_none_or(|m| m.phase == Phase::InService)
    };
    match named {
        Some(id) => view.ids.contains(id).then(|| id.clone()),
        None => view.ids.iter().find(|id| serves(id)).cloned(),
    }
}

/// AZRebalance: launches in one zone, then ends as many in the other. It heeds no protection.
async fn az_rebalance(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    view: &GroupView,
    (from, to, count): (&str, &str, u32),
) -> Result<Done, String> {
    for process in ["AZRebalance", "Launch", "Terminate"] {
        if view.is_suspended(process) {
            return Ok(Err(format!("{process} is suspended")));
        }
    }
    let zone_of = |id: &String| {
        let known = state.instances.get(id).and_then(|m| m.zone.clone());
        known.or_else(|| {
            view.member(id)
                .map(|m| m.text_of("AvailabilityZone").to_owned())
        })
    };
    let chosen: Vec<String> = view
        .ids
        .iter()
        .filter(|id| zone_of(id).as_deref() == Some(from))
        .take(usize::try_from(count).unwrap_or(usize::MAX))
        .cloned()
        .collect();
    let want = u32::try_from(chosen.len()).unwrap_or(count);
    let why = format!(
        "an instance was launched in order to balance instances in zones {from} with other zones resulting in more than \
         desired number of instances in the group."
    );
    let come = replace(proxy, state, region, group, view, (to, want, &why)).await?;
    let going = chosen.into_iter().take(come);
    let why = format!("was terminated to balance instances in zones {from} with other zones.");
    end_all(proxy, state, region, group, view, going.collect(), &why).await
}

/// Capacity rebalancing: a group that has it replaces a spot instance at risk.
async fn capacity_rebalance(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    view: &GroupView,
    id: &str,
) -> Result<Result<(), String>, String> {
    let own = state.group(group).attributes.get("CapacityRebalance");
    let on = own.map_or(view.xml.text_of("CapacityRebalance"), String::as_str);
    if on != "true" || view.is_suspended("Launch") {
        return Ok(Ok(()));
    }
    let zone = view.zones.first().cloned().unwrap_or_default();
    let why = "an instance was launched in response to an EC2 Instance Rebalance Recommendation.";
    let come = replace(proxy, state, region, group, view, (&zone, 1, why)).await?;
    if come == 0 || view.is_suspended("Terminate") {
        return Ok(Ok(()));
    }
    let why = "was taken out of service in response to an EC2 Instance Rebalance Recommendation.";
    let gone = end_all(proxy, state, region, group, view, vec![id.to_owned()], why).await?;
    Ok(gone.map(|_| ()))
}

/// Launches above the desired capacity; gives how many came.
async fn replace(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    view: &GroupView,
    (zone, count, why): (&str, u32, &str),
) -> Result<usize, String> {
    let live = view.count() + state.dead_count(group);
    state.group(group).wish.get_or_insert(live);
    let can = view.launchable(proxy.upstream(), region).await?;
    let instance_type = can.types.first().cloned().unwrap_or_default();
    let granted = {
        let mut scenario = proxy.scenario();
        take_ration(&mut scenario, region, group, zone, &instance_type, count).0
    };
    let growth = Growth {
        group,
        count: granted,
        zone,
        instance_type: &instance_type,
        spot: can.spot,
        way: "itself",
        token: "",
        why,
    };
    Ok(grow(proxy, state, region, view, &growth).await?.len())
}

async fn end_all(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    group: &str,
    view: &GroupView,
    ids: Vec<String>,
    why: &str,
) -> Result<Done, String> {
    for id in &ids {
        let ending = Ending {
            group,
            id,
            cause: Cause::Rebalance,
            why: why.to_owned(),
        };
        ending::begin(proxy, state, region, view, &ending).await?;
    }
    Ok(Ok(ids))
}
