//! Warm pools with real instances: kept at their size, taken on scale-out, shown by DescribeWarmPool.
//!
//! Called by the server, by a wish that is filled, and as time passes. The instances are moto's, apart from its group.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::clock::now_unix_ms;
use super::group_view::GroupView;
use super::grow::{self, Growth};
use super::ledger::{Cause, End};
use super::query::Query;
use super::reply::Reply;
use super::server::Proxy;
use super::state::{RegionState, take_ration};
use super::xml::Element;

/// The instances of a group's warm pool.
#[derive(Clone, Debug, Default)]
pub(super) struct WarmPool {
    /// AWS's default: the group's maximum.
    pub(super) max_prepared: Option<u32>,
    pub(super) min: u32,
    /// `Stopped`, `Running` or `Hibernated`.
    pub(super) pool_state: String,
    pub(super) reuses: bool,
    pub(super) instances: BTreeMap<String, Warmed>,
    /// When its size is looked at again.
    pub(super) look_at: Option<Instant>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Warmed {
    pub(super) since: Instant,
    pub(super) warming: Duration,
    pub(super) zone: String,
    pub(super) instance_type: String,
}

impl Warmed {
    fn word(&self, pool_state: &str) -> String {
        if self.since.elapsed() < self.warming {
            "Warmed:Pending".to_owned()
        } else {
            format!("Warmed:{pool_state}")
        }
    }

    fn entry(&self, id: &str, group: &str, pool_state: &str) -> Element {
        Element::node(
            "member",
            vec![
                Element::leaf("InstanceId", id),
                Element::leaf("AutoScalingGroupName", group),
                Element::leaf("InstanceType", &self.instance_type),
                Element::leaf("AvailabilityZone", &self.zone),
                Element::leaf("LifecycleState", self.word(pool_state)),
                Element::leaf("HealthStatus", "Healthy"),
                Element::leaf("ProtectedFromScaleIn", "false"),
            ],
        )
    }
}

/// How often the size of a pool is looked at, when nothing calls for it sooner.
const LOOK: Duration = Duration::from_millis(500);

/// Answers PutWarmPool.
pub(super) async fn put(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let Some(group) = proxy.view(&mut state, region, name).await? else {
        return Ok(Reply::no_group(query));
    };
    let can = group.launchable(proxy.upstream(), region).await?;
    if group.xml.child("MixedInstancesPolicy").is_some() || can.spot {
        let text = "You can't add a warm pool to an Auto Scaling group that has a mixed instances policy or a launch \
                    template or launch configuration that requests Spot Instances.";
        return Ok(Reply::invalid(query, text));
    }
    let reply = proxy.upstream().forward(query).await?;
    if !reply.is_ok() {
        return Ok(reply);
    }
    let mut pool = state.group(name).warm.take().unwrap_or_default();
    pool.min = query.number("MinSize").unwrap_or(pool.min);
    let asked = query.get("MaxGroupPreparedCapacity");
    if !asked.is_empty() {
        pool.max_prepared = asked.parse().ok(); // -1: AWS's default again
    }
    pool.pool_state = match query.get("PoolState") {
        "" if pool.pool_state.is_empty() => "Stopped".to_owned(),
        "" => pool.pool_state,
        other => other.to_owned(),
    };
    match query.get("InstanceReusePolicy.ReuseOnScaleIn") {
        "" => {}
        other => pool.reuses = other == "true",
    }
    pool.look_at = Some(Instant::now());
    state.group(name).warm = Some(pool);
    keep_sizes(proxy, &mut state, region).await?;
    Ok(reply)
}

/// Answers DeleteWarmPool.
pub(super) async fn delete(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    let pool = state.group(name).warm.clone().unwrap_or_default();
    if !pool.instances.is_empty() && query.get("ForceDelete") != "true" {
        let text =
            "The warm pool still has instances. Wait until it is empty, or force the deletion.";
        return Ok(Reply::error(query, 400, "ResourceInUse", text));
    }
    let reply = proxy.upstream().forward(query).await?;
    if reply.is_ok() {
        let ids = pool.instances.into_keys().collect();
        end(proxy, &mut state, region, name, ids).await?;
        state.group(name).warm = None;
    }
    Ok(reply)
}

/// Answers DescribeWarmPool.
pub(super) async fn describe(proxy: &Proxy, query: &Query) -> Result<Reply, String> {
    let (region, name) = (query.region.as_str(), query.group());
    let handle = proxy.region(region);
    let mut state = handle.lock().await;
    if proxy.view(&mut state, region, name).await?.is_none() {
        return Ok(Reply::no_group(query));
    }
    let Some(pool) = &state.group(name).warm else {
        // A pool that was put behind the proxy has no instances; moto knows its figures.
        return proxy.upstream().forward(query).await;
    };
    let mut figures = vec![
        Element::leaf("MinSize", pool.min.to_string()),
        Element::leaf("PoolState", &pool.pool_state),
    ];
    figures.extend(
        (pool.max_prepared).map(|m| Element::leaf("MaxGroupPreparedCapacity", m.to_string())),
    );
    if pool.reuses {
        let reuse = vec![Element::leaf("ReuseOnScaleIn", "true")];
        figures.push(Element::node("InstanceReusePolicy", reuse));
    }
    let size = query.number("MaxRecords").unwrap_or(50).clamp(1, 50) as usize;
    let start = query.page_start();
    let rows = pool.instances.iter().skip(start).take(size);
    let members = rows
        .map(|(id, w)| w.entry(id, name, &pool.pool_state))
        .collect();
    let mut result = vec![
        Element::node("WarmPoolConfiguration", figures),
        Element::node("Instances", members),
    ];
    if pool.instances.len() > start + size {
        result.push(Element::leaf("NextToken", (start + size).to_string()));
    }
    Ok(Reply::result("DescribeWarmPool", result))
}

/// All warm instances of a region, as members.
pub(super) fn entries(state: &RegionState) -> Vec<Element> {
    let pools = state
        .groups
        .iter()
        .filter_map(|(n, g)| Some((n, g.warm.as_ref()?)));
    pools
        .flat_map(|(name, pool)| {
            let rows = pool.instances.iter();
            rows.map(move |(id, w)| w.entry(id, name, &pool.pool_state))
        })
        .collect()
}

/// The group in whose warm pool an instance is.
pub(super) fn group_of(state: &RegionState, id: &str) -> Option<String> {
    let mut groups = state.groups.iter();
    groups
        .find(|(_, g)| {
            g.warm
                .as_ref()
                .is_some_and(|w| w.instances.contains_key(id))
        })
        .map(|(name, _)| name.clone())
}

/// Brings every pool whose time has come to its size: prepared capacity less the desired one, at least its minimum.
pub(super) async fn keep_sizes(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
) -> Result<(), String> {
    let now = Instant::now();
    let due: Vec<String> = state
        .groups
        .iter()
        .filter(|(_, g)| {
            g.warm
                .as_ref()
                .is_some_and(|w| w.look_at.is_none_or(|at| at <= now))
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in due {
        let Some(view) = proxy.view(state, region, &name).await? else {
            state.group(&name).warm = None;
            continue;
        };
        keep_size(proxy, state, region, &name, &view).await?;
        if let Some(pool) = &mut state.group(&name).warm {
            pool.look_at = Some(Instant::now() + LOOK);
        }
    }
    Ok(())
}

async fn keep_size(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    view: &GroupView,
) -> Result<(), String> {
    let desired = state.group(name).wish.unwrap_or(view.count());
    let Some(pool) = state.group(name).warm.clone() else {
        return Ok(());
    };
    let prepared = pool.max_prepared.unwrap_or(view.max);
    let target = prepared.saturating_sub(desired).max(pool.min);
    let have = u32::try_from(pool.instances.len()).unwrap_or(u32::MAX);
    if have > target {
        let surplus = usize::try_from(have - target).unwrap_or(usize::MAX);
        let ids = pool.instances.keys().take(surplus).cloned().collect();
        return end(proxy, state, region, name, ids).await;
    }
    if have == target || view.is_suspended("Launch") {
        return Ok(());
    }
    let can = view.launchable(proxy.upstream(), region).await?;
    let instance_type = can.types.first().cloned().unwrap_or_default();
    let zone = view.zones.first().cloned().unwrap_or_default();
    let granted = {
        let mut scenario = proxy.scenario();
        take_ration(
            &mut scenario,
            region,
            name,
            &zone,
            &instance_type,
            target - have,
        )
        .0
    };
    if granted == 0 {
        return Ok(());
    }
    let template = view
        .xml
        .child("LaunchTemplate")
        .map_or("", |t| t.text_of("LaunchTemplateId"))
        .to_owned();
    let count = granted.to_string();
    let form = [
        ("LaunchTemplate.LaunchTemplateId", template.as_str()),
        ("MinCount", &count),
        ("MaxCount", &count),
        ("Placement.AvailabilityZone", &zone),
    ];
    let form: Vec<(&str, &str)> = form.into_iter().filter(|(_, v)| !v.is_empty()).collect();
    let reply = proxy.upstream().ec2(region, "RunInstances", &form).await?;
    let ids: Vec<String> = reply
        .child("instancesSet")
        .map(|s| s.children.iter())
        .into_iter()
        .flatten()
        .map(|i| i.text_of("instanceId").to_owned())
        .collect();
    if pool.pool_state != "Running" {
        start_or_stop(proxy, region, "StopInstances", &ids).await?;
    }
    let warming = Duration::from_millis(proxy.scenario().timing(region, name).warming_ms);
    if let Some(pool) = &mut state.group(name).warm {
        for id in ids {
            let row = Warmed {
                since: Instant::now(),
                warming,
                zone: zone.clone(),
                instance_type: instance_type.clone(),
            };
            pool.instances.insert(id, row);
        }
    }
    Ok(())
}

/// Takes up to `want` ready instances of the pool into the group; gives how many came. Stopped ones hold no capacity:
/// starting them takes rations.
pub(super) async fn take(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    view: &mut GroupView,
    name: &str,
    want: u32,
    why: &str,
) -> Result<u32, String> {
    let Some(pool) = state.group(name).warm.clone() else {
        return Ok(0);
    };
    let ready = pool
        .instances
        .iter()
        .filter(|(_, w)| w.since.elapsed() >= w.warming);
    let mut chosen: Vec<(String, Warmed)> = ready
        .take(usize::try_from(want).unwrap_or(usize::MAX))
        .map(|(id, w)| (id.clone(), w.clone()))
        .collect();
    let Some((_, first)) = chosen.first().cloned() else {
        return Ok(0);
    };
    if pool.pool_state != "Running" {
        let asked = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        let (zone, kind) = (&first.zone, &first.instance_type);
        let granted = take_ration(&mut proxy.scenario(), region, name, zone, kind, asked).0;
        chosen.truncate(usize::try_from(granted).unwrap_or(0));
    }
    let ids: Vec<String> = chosen.into_iter().map(|(id, _)| id).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    if pool.pool_state != "Running" {
        start_or_stop(proxy, region, "StartInstances", &ids).await?;
    }
    let keys: Vec<String> = (1..=ids.len())
        .map(|n| format!("InstanceIds.member.{n}"))
        .collect();
    let mut form = vec![("AutoScalingGroupName", name)];
    form.extend(
        keys.iter()
            .map(String::as_str)
            .zip(ids.iter().map(String::as_str)),
    );
    proxy
        .upstream()
        .autoscaling(region, "AttachInstances", &form)
        .await?;
    if let Some(pool) = &mut state.group(name).warm {
        pool.instances.retain(|id, _| !ids.contains(id));
        pool.look_at = Some(Instant::now());
    }
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let growth = Growth {
        group: name,
        count,
        zone: &first.zone,
        instance_type: &first.instance_type,
        spot: false,
        way: "warm pool",
        token: "",
        why,
    };
    grow::arrived(proxy, state, region, &ids, &growth).await?;
    view.active += count;
    view.ids.extend(ids);
    Ok(count)
}

async fn start_or_stop(
    proxy: &Proxy,
    region: &str,
    action: &str,
    ids: &[String],
) -> Result<(), String> {
    let keys: Vec<String> = (1..=ids.len()).map(|n| format!("InstanceId.{n}")).collect();
    let pairs = keys.iter().map(String::as_str);
    let form: Vec<(&str, &str)> = pairs.zip(ids.iter().map(String::as_str)).collect();
    proxy
        .upstream()
        .ec2(region, action, &form)
        .await
        .map(|_| ())
}

/// Ends warm instances.
pub(super) async fn end(
    proxy: &Proxy,
    state: &mut RegionState,
    region: &str,
    name: &str,
    ids: Vec<String>,
) -> Result<(), String> {
    if ids.is_empty() {
        return Ok(());
    }
    start_or_stop(proxy, region, "TerminateInstances", &ids).await?;
    if let Some(pool) = &mut state.group(name).warm {
        pool.instances.retain(|id, _| !ids.contains(id));
    }
    for instance in ids {
        proxy.ledger().end(End {
            at_unix_ms: now_unix_ms(),
            region: region.to_owned(),
            group: name.to_owned(),
            instance,
            cause: Cause::WarmPool,
        });
    }
    Ok(())
}
