//! Members of a group as instances, and what its activities say of offerings.
//!
//! Called by `reading`. Pure.

use drover_aws::Activity;
use drover_core::model::{Offering, UnixMs};

use super::Read;
use crate::adapters::actuate::asg::convert;
use crate::ports::actuate::{Instance, ProviderFailure};

/// Members; none of the warm pool, which holds no capacity.
pub(super) fn instances(read: &Read<'_>, offerings: &[Offering]) -> Vec<Instance> {
    let instance = |member: &drover_aws::Member| {
        let zone = member.zone.as_deref().unwrap_or_default();
        let there = offerings
            .iter()
            .find(|o| o.zone == zone || o.zone.is_empty());
        convert::instance(
            member,
            there.map(|o| o.id.clone()),
            read.launched.get(&member.id).copied(),
        )
    };
    read.group.members.iter().filter_map(instance).collect()
}

/// Failed activities.
pub(super) fn failures(read: &Read<'_>, offerings: &[Offering]) -> Vec<ProviderFailure> {
    let all = read.activities.items.iter();
    all.filter_map(|activity| failure(activity, offerings, read.now))
        .collect()
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
