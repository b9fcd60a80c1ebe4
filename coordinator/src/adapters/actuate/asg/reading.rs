//! A group as the planner and people are to see it.
//!
//! Called by `observe` with everything that was read. Pure.

use std::collections::BTreeMap;

use drover_aws::{Activities, Group, GroupTemplate, InstanceId};
use drover_core::model::{OfferingId, Steering, Stop, UnixMs};

use super::AsgPool;
use super::look::Known;
use super::owner::Owner;
use super::paid::Paid;
use super::quotes::Quotes;
use super::tags;
use super::template::GroupFacts;
use super::withdraw::under_way;
use crate::ports::actuate::{PoolReading, Recipe};

mod causes;
mod members;
mod offerings;
mod paid;
mod warnings;

pub(super) use members::ends;

/// What a reading is made of.
pub(super) struct Read<'a> {
    pub(super) pool: &'a AsgPool,
    pub(super) owner: &'a Owner,
    pub(super) group: &'a Group,
    pub(super) facts: &'a GroupFacts,
    pub(super) quotes: &'a Quotes,
    pub(super) paid: &'a Paid,
    pub(super) activities: &'a Activities,
    /// What EC2 says of members.
    pub(super) known: &'a BTreeMap<InstanceId, Known>,
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

/// Why a group of a shape that LaunchInstances can be used for is not asked so now: what is warm comes sooner, and only a
/// raised desired capacity takes it. That may change from one reading to the next, so it says nothing about earlier asks.
pub(super) fn is_warm(group: &Group) -> Option<&'static str> {
    (group.warm_pool_size.unwrap_or(0) > 0)
        .then_some("its warm pool has instances, which come sooner")
}

/// What the group's instances are made from.
fn recipe(read: &Read<'_>) -> Recipe {
    let mut subnets = read.group.subnets.clone();
    subnets.sort_unstable();
    let mut zones = read.group.zones.clone();
    zones.sort_unstable();
    Recipe {
        template: read.facts.made_from.clone(),
        group: format!("{subnets:?} {zones:?} {:?}", read.group.template),
    }
}

/// The reading, and the zone of each of its offerings.
pub(super) fn reading(read: &Read<'_>) -> (PoolReading, BTreeMap<OfferingId, String>) {
    let why_group = no_launch_instances(read.group)
        .or_else(|| is_warm(read.group))
        .or(read.no_launch);
    let steering = if why_group.is_none() {
        Steering::Zone
    } else {
        Steering::Group
    };
    let marks = tags::marks(&read.group.tags);
    let offered = offerings::offerings(read, steering, &marks);
    let (offerings, mut warnings) = (offered.offerings, offered.warnings);
    warnings.extend(marks.doubts.iter().cloned());
    warnings.extend(
        why_group
            .map(|why| format!("grows by SetDesiredCapacity, without a choice of zone: {why}")),
    );
    warnings.extend(warnings::warnings(read));
    // An order of before a restart, or of before LaunchInstances was refused, names an offering of the other kind.
    let zones = offerings::every_zone(read)
        .into_iter()
        .chain(offerings.iter().map(|o| (o.id.clone(), o.zone.clone())))
        .collect();
    let mut stops = warnings::stops(read);
    stops.extend(offered.stop);
    let removable =
        !stops.iter().any(|s| matches!(s, Stop::NotOurs { .. })) && !read.group.is_weighted();
    let mut instances = members::instances(read, &offerings);
    instances.extend(paid::warm(read));
    let failures = members::failures(read, &offerings);
    let mut remarks = offered.remarks;
    remarks.extend(paid::remarks(read));
    remarks.extend(warnings::remarks(read));
    let reading = PoolReading {
        instances,
        parts: offerings::parts(read),
        steering,
        provider_min: Some(read.group.min),
        provider_max: Some(read.group.max),
        stops,
        removable,
        labels: marks.labels,
        taints: marks.taints,
        warnings,
        remarks,
        failures,
        unfilled: read.group.coming(),
        withdrawing: under_way(&read.group.tags).is_some(),
        dead: members::dead(read),
        recipe: recipe(read),
        read_at: read.now,
        offerings,
    };
    (reading, zones)
}
