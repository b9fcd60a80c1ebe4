//! What stops a group, and what a person should know of it, as far as its describe tells.
//!
//! Called by `reading`. Pure.

use drover_core::model::{FailureKind, Stop};

use super::Read;
use crate::adapters::actuate::asg::look::is_over;
use crate::adapters::actuate::asg::owner::{FREEZE_TAG, OWNER_TAG, UNCLAIMED, frozen};
use crate::adapters::actuate::asg::withdraw::under_way;

/// Processes that end or replace members on AWS's own account.
const MUST_BE_SUSPENDED: [&str; 2] = ["AZRebalance", "ReplaceUnhealthy"];

/// Why nothing, or less, is done to the group.
pub(super) fn stops(read: &Read<'_>) -> Vec<Stop> {
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
    if let Some(reason) = group.suspended.get("Terminate") {
        let by = if reason.is_empty() {
            "no reason given"
        } else {
            reason
        };
        stops.push(Stop::NoRemoval {
            why: format!("Terminate is suspended in the group: {by}"),
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

/// What is worth knowing of whose it is. No warning: nothing is wrong, and a pool in `observe` stays so for as long as it
/// likes.
pub(super) fn remarks(read: &Read<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let offered = read.group.tags.get(OWNER_TAG).map(|value| value.trim()) == Some(UNCLAIMED);
    if offered {
        remarks
            .push("not claimed yet: the first change will write this coordinator's name into the owner tag".to_owned());
    }
    remarks
}

/// What a person should mend or know.
pub(super) fn warnings(read: &Read<'_>) -> Vec<String> {
    let group = read.group;
    let mut warnings = Vec::new();
    for process in MUST_BE_SUSPENDED {
        if !group.suspended.contains_key(process) {
            warnings.push(format!(
                "{process} is not suspended: AWS may end members by itself"
            ));
        }
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
        let members = if bare == 1 {
            "member is"
        } else {
            "members are"
        };
        warnings.push(format!("{bare} {members} not protected from scale-in"));
    }
    let ill = |m: &&drover_aws::Member| {
        let over = read.known.get(&m.id).is_some_and(|k| is_over(&k.state));
        m.healthy == Some(false) && m.is_live() && !over
    };
    let ill = group.members.iter().filter(ill).count();
    if ill > 0 {
        warnings.push(format!(
            "{ill} members run and are unhealthy by AWS's word: they are not touched, their work may live"
        ));
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
