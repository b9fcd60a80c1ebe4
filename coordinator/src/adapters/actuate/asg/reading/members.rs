//! Members of a group as instances, and what its activities say of offerings.
//!
//! Called by `reading`. Pure.

use drover_aws::{Activity, InstanceState, MemberState};
use drover_core::model::{InstanceId, Market, Offering, UnixMs};

use super::{Read, causes};
use crate::adapters::actuate::asg::convert;
use crate::adapters::actuate::asg::look::{self, Ended};
use crate::adapters::actuate::asg::paid;
use crate::ports::actuate::{Dead, Instance, ProviderFailure, Trace};

/// Members; none of the warm pool, which holds no capacity.
pub(super) fn instances(read: &Read<'_>, offerings: &[Offering]) -> Vec<Instance> {
    let instance = |member: &drover_aws::Member| {
        let zone = member.zone.as_deref().unwrap_or_default();
        let known = read.known.get(&member.id);
        let held = known.and_then(|known| known.reservation.as_ref());
        let reserved = |o: &&Offering| (o.market == Market::Reserved) == held.is_some();
        let here = || {
            offerings
                .iter()
                .filter(|o| o.zone == zone || o.zone.is_empty())
        };
        let there = here().find(reserved).or_else(|| here().next());
        let held = read.paid.reservations.iter().find(|r| Some(&r.id) == held);
        let ends = held.and_then(paid::ends);
        convert::instance(member, there.map(|o| o.id.clone()), known, ends)
    };
    read.group.members.iter().filter_map(instance).collect()
}

/// Members that the group counts and that do not run any more. What a person took out of service, or keeps in the warm
/// pool, may be stopped.
pub(super) fn dead(read: &Read<'_>) -> Vec<Dead> {
    let found = read.group.members.iter().filter_map(|member| {
        let known = read.known.get(&member.id)?;
        let stopped = known.state == InstanceState::Stopped;
        let counts = match member.state {
            MemberState::InService => true,
            MemberState::Pending | MemberState::Standby | MemberState::Other(_) => !stopped,
            MemberState::Detaching | MemberState::Terminating | MemberState::Warmed(_) => false,
        };
        let over = stopped || known.state == InstanceState::Terminated;
        (counts && over).then(|| Dead {
            id: InstanceId::new(member.id.as_str()),
            stopped,
            kind: look::blame(known),
            why: known.reason.clone().unwrap_or_default(),
            since: known.ended.unwrap_or(read.now),
        })
    });
    found.collect()
}

/// Instances that ended in their launch, as failures.
pub(in crate::adapters::actuate::asg) fn ends(
    ended: &[Ended],
    offerings: &[Offering],
) -> Vec<ProviderFailure> {
    let of = |zone: Option<&str>| {
        let found = offerings
            .iter()
            .find(|o| o.zone.is_empty() || zone == Some(o.zone.as_str()));
        found.map(|o| o.id.clone())
    };
    let failure = |ended: &Ended| ProviderFailure {
        id: format!("ec2/{}", ended.id),
        offering: of(ended.zone.as_deref()),
        kind: ended.kind,
        message: format!("{} ended in its launch: {}", ended.id, ended.why),
        at: ended.at,
        trace: Trace::Instance(InstanceId::new(ended.id.as_str())),
    };
    ended.iter().map(failure).collect()
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
        trace: causes::trace(&activity.description, &activity.cause),
    })
}

fn zone_of(details: &str) -> Option<String> {
    let details: serde_json::Value = serde_json::from_str(details).ok()?;
    Some(details.get("Availability Zone")?.as_str()?.to_owned())
}
