//! A group as the planner and people are to see it.
//!
//! Called by `observe` with everything that was read. Pure.

use std::collections::BTreeMap;

use drover_aws::{Activities, Activity, Group, GroupTemplate, InstanceId};
use drover_core::model::{
    FailureKind, Market, MicroUsd, Millis, Offering, OfferingId, Steering, Stop, UnixMs,
};

use super::AsgPool;
use super::catalogue::{self, GroupFacts};
use super::convert;
use super::owner::{Claim, FREEZE_TAG, Owner, frozen};
use super::withdraw::under_way;
use crate::ports::actuate::{PoolReading, ProviderFailure};

/// Time from asking to ready while nothing was learnt: an ordinary instance; metal takes longer.
const BOOT: Millis = Millis::minutes(3);
const METAL_BOOT: Millis = Millis::minutes(12);
/// Processes that end or replace members on AWS's own account.
const MUST_BE_SUSPENDED: [&str; 2] = ["AZRebalance", "ReplaceUnhealthy"];

/// What a reading is made of.
pub(super) struct Read<'a> {
    pub(super) pool: &'a AsgPool,
    pub(super) owner: &'a Owner,
    pub(super) group: &'a Group,
    pub(super) facts: &'a GroupFacts,
    pub(super) activities: &'a Activities,
    pub(super) launched: &'a BTreeMap<InstanceId, UnixMs>,
    /// Why LaunchInstances is not used, when AWS refused it before.
    pub(super) no_launch: Option<&'a str>,
    pub(super) now: UnixMs,
}

/// Why LaunchInstances cannot be used for a group of this shape; nothing when it can.
pub(super) fn no_launch_instances(group: &Group) -> Option<&'static str> {
    match &group.template {
        GroupTemplate::Template(_) => None,
        GroupTemplate::Mixed(_) if group.mixes_markets() => {
            Some("the group mixes on-demand and spot")
        }
        GroupTemplate::Mixed(_) => None,
        GroupTemplate::Configuration(_) | GroupTemplate::Missing => {
            Some("the group has no launch template")
        }
    }
}

/// The reading, and the zone of each of its offerings.
pub(super) fn reading(read: &Read<'_>) -> (PoolReading, BTreeMap<OfferingId, String>) {
    let why_group = no_launch_instances(read.group).or(read.no_launch);
    let steering = if why_group.is_none() {
        Steering::Zone
    } else {
        Steering::Group
    };
    let (offerings, mut warnings) = offerings(read, steering);
    warnings.extend(
        why_group
            .map(|why| format!("grows by SetDesiredCapacity, without a choice of zone: {why}")),
    );
    warnings.extend(self::warnings(read));
    // An order of before a restart, or of before LaunchInstances was refused, names an offering of the other kind.
    let zones = every_zone(read)
        .into_iter()
        .chain(offerings.iter().map(|o| (o.id.clone(), o.zone.clone())))
        .collect();
    let stops = stops(read);
    let removable =
        !stops.iter().any(|s| matches!(s, Stop::NotOurs { .. })) && !read.group.is_weighted();
    let instances = read
        .group
        .members
        .iter()
        .filter_map(|m| {
            let zone = m.zone.as_deref().unwrap_or_default();
            let there = offerings
                .iter()
                .find(|o| o.zone == zone || o.zone.is_empty());
            convert::instance(
                m,
                there.map(|o| o.id.clone()),
                read.launched.get(&m.id).copied(),
            )
        })
        .collect();
    let failures = read
        .activities
        .items
        .iter()
        .filter_map(|a| failure(a, &offerings, read.now))
        .collect();
    let reading = PoolReading {
        instances,
        steering,
        provider_min: Some(read.group.min),
        provider_max: Some(read.group.max),
        stops,
        removable,
        warnings,
        failures,
        unfilled: read.group.coming(),
        withdrawing: under_way(&read.group.tags).is_some(),
        read_at: read.now,
        offerings,
    };
    (reading, zones)
}

fn every_zone(read: &Read<'_>) -> Vec<(OfferingId, String)> {
    let Some(smallest) = read.facts.types.first() else {
        return Vec::new();
    };
    let zones = read.group.zones.iter().map(String::as_str).chain([""]);
    zones
        .map(|zone| {
            (
                convert::offering_id(&read.pool.pool, &smallest.name, zone, word(read)),
                zone.to_owned(),
            )
        })
        .collect()
}

fn word(read: &Read<'_>) -> &'static str {
    if read.facts.spot { "spot" } else { "on-demand" }
}

fn offerings(read: &Read<'_>, steering: Steering) -> (Vec<Offering>, Vec<String>) {
    let mut warnings = read.facts.doubts.clone();
    let Some(smallest) = read.facts.types.first() else {
        return (Vec::new(), warnings);
    };
    let prices: Vec<Option<MicroUsd>> = read
        .facts
        .types
        .iter()
        .map(|t| catalogue::price(&read.pool.prices, &t.name))
        .collect();
    let unpriced: Vec<&str> = read
        .facts
        .types
        .iter()
        .zip(&prices)
        .filter(|(_, p)| p.is_none())
        .map(|(t, _)| t.name.as_str())
        .collect();
    if !unpriced.is_empty() {
        let types = unpriced.join(", ");
        warnings.push(format!(
            "no price is known for {types}, so nothing is asked of it: set prices in the pool"
        ));
    }
    // A composite is planned at its smallest type and budgeted at its dearest.
    let price = prices.iter().flatten().max().copied().unwrap_or_default();
    let allocatable = catalogue::resources(smallest).filter(|_| unpriced.is_empty());
    let market = if read.facts.spot {
        Market::Spot
    } else {
        Market::OnDemand
    };
    let zones: Vec<&str> = match steering {
        Steering::Zone => read.group.zones.iter().map(String::as_str).collect(),
        Steering::Group | Steering::Host => vec![""],
    };
    let offerings = zones
        .into_iter()
        .map(|zone| Offering {
            id: convert::offering_id(&read.pool.pool, &smallest.name, zone, word(read)),
            instance_type: smallest.name.clone(),
            zone: zone.to_owned(),
            market,
            price,
            allocatable: allocatable.clone(),
            gpu_model: catalogue::gpu_model(smallest),
            boot: if smallest.bare_metal == Some(true) {
                METAL_BOOT
            } else {
                BOOT
            },
            available: None,
        })
        .collect();
    (offerings, warnings)
}

fn stops(read: &Read<'_>) -> Vec<Stop> {
    let group = read.group;
    let mut stops = Vec::new();
    if let Err(why) = read.owner.judge(&group.tags) {
        stops.push(Stop::NotOurs { why });
    }
    if let Some(why) = frozen(&group.tags) {
        stops.push(Stop::Frozen {
            by: format!("tag {FREEZE_TAG}"),
            why,
        });
    }
    if let Some(reason) = group.suspended.get("Launch") {
        let by = if under_way(&group.tags).is_some() {
            "what it did not fill is being withdrawn"
        } else if reason.is_empty() {
            "no reason given"
        } else {
            reason
        };
        stops.push(Stop::Failed {
            failure: FailureKind::Suspended,
            why: format!("Launch is suspended in the group: {by}"),
        });
    }
    if group.is_weighted() {
        let why = "the group weighs its instances, so its capacity is no number of nodes: take the weights out";
        stops.push(Stop::Failed {
            failure: FailureKind::Config,
            why: why.to_owned(),
        });
    }
    if let Some(status) = &group.status {
        stops.push(Stop::Failed {
            failure: FailureKind::Config,
            why: format!("the group is going: {status}"),
        });
    }
    stops
}

fn warnings(read: &Read<'_>) -> Vec<String> {
    let group = read.group;
    let mut warnings = Vec::new();
    if read.owner.judge(&group.tags) == Ok(Claim::Open) {
        warnings.push("not claimed yet: the first change will write the owner tag".to_owned());
    }
    for process in MUST_BE_SUSPENDED {
        if !group.suspended.contains_key(process) {
            warnings.push(format!(
                "{process} is not suspended: AWS may end members by itself"
            ));
        }
    }
    if group.suspended.contains_key("Terminate") {
        warnings.push("Terminate is suspended: nodes cannot leave".to_owned());
    }
    if !group.protects_new {
        warnings.push(
            "new members are not protected from scale-in: switch it on in the group".to_owned(),
        );
    }
    let bare = group
        .members
        .iter()
        .filter(|m| m.is_live() && !m.protected)
        .count();
    if bare > 0 {
        warnings.push(format!("{bare} members are not protected from scale-in"));
    }
    if let Some(seconds) = group.max_lifetime_seconds {
        warnings.push(format!(
            "AWS ends members after {seconds} s, whatever they do: take the maximum lifetime out"
        ));
    }
    if group.capacity_rebalance == Some(true) {
        warnings.push("capacity rebalance is on: AWS may end spot members early".to_owned());
    }
    if group.live_count() > group.max {
        warnings.push(format!(
            "{} members are more than the group's maximum {}",
            group.live_count(),
            group.max
        ));
    }
    warnings
}

/// A failed activity; which offering it concerns, where its words or details tell.
fn failure(activity: &Activity, offerings: &[Offering], now: UnixMs) -> Option<ProviderFailure> {
    let class = activity.class.as_ref()?;
    let zone = class
        .zone
        .clone()
        .or_else(|| zone_of(activity.details.as_deref()?));
    let offering = offerings
        .iter()
        .find(|o| o.zone.is_empty() || zone.as_deref() == Some(o.zone.as_str()));
    Some(ProviderFailure {
        id: activity.id.clone(),
        offering: offering.map(|o| o.id.clone()),
        kind: convert::kind(class.kind),
        message: activity.message.clone().unwrap_or_default(),
        at: activity
            .ended_unix_ms
            .or(activity.started_unix_ms)
            .and_then(convert::unix_ms)
            .unwrap_or(now),
    })
}

fn zone_of(details: &str) -> Option<String> {
    let details: serde_json::Value = serde_json::from_str(details).ok()?;
    Some(details.get("Availability Zone")?.as_str()?.to_owned())
}
