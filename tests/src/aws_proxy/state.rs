//! What the proxy remembers of a region: tokens, wishes, activities, and how instances are to be shown.
//!
//! Held behind one lock per region by the server; changed by the actions. It makes no calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::clock::now_unix_ms;
use super::reply::Reply;
use super::scenario::{Ration, Scenario, Timing, concerns};
use super::xml::Element;

/// How an instance that came through the proxy is shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) since: Instant,
    pub(super) timing: Timing,
    pub(super) zone: Option<String>,
    pub(super) instance_type: Option<String>,
}

impl Shown {
    fn past(&self, ms: u64) -> bool {
        self.since.elapsed() >= Duration::from_millis(ms)
    }

    /// Whether no describe names it yet.
    pub(super) fn hidden(&self) -> bool {
        !self.past(self.timing.hide_ms)
    }

    /// Whether it is still Pending.
    pub(super) fn pending(&self) -> bool {
        !self.past(self.timing.pending_ms)
    }
}

/// A LaunchInstances call that is remembered.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    pub(super) asked: String,
    pub(super) at: Instant,
    /// Absent while the call is at work.
    pub(super) answer: Option<Reply>,
}

/// A scaling activity.
#[derive(Clone, Debug)]
pub(super) struct ActivityRow {
    pub(super) id: String,
    pub(super) at_unix_ms: u64,
    pub(super) failed: bool,
    pub(super) description: String,
    pub(super) cause: String,
    pub(super) message: String,
    pub(super) details: String,
}

/// A member that was terminated and is still shown.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub(super) until: Instant,
    pub(super) member: Element,
}

/// What is remembered of one group.
#[derive(Debug, Default)]
pub(super) struct GroupState {
    /// The desired capacity that was asked for, where it is not what moto has.
    pub(super) wish: Option<u32>,
    /// When an unfilled wish is tried again.
    pub(super) retry_at: Option<Instant>,
    /// Newest last.
    pub(super) activities: Vec<ActivityRow>,
    pub(super) leaving: Vec<Leaving>,
    /// The last description that was given, for stale answers.
    pub(super) described: Option<(Instant, Element)>,
}

/// What is remembered of one region.
#[derive(Debug, Default)]
pub(super) struct RegionState {
    pub(super) groups: BTreeMap<String, GroupState>,
    pub(super) instances: BTreeMap<String, Shown>,
    pub(super) tokens: BTreeMap<String, Remembered>,
}

impl RegionState {
    pub(super) fn group(&mut self, name: &str) -> &mut GroupState {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// Notes instances that have just come.
    pub(super) fn note_new(
        &mut self,
        ids: &[String],
        timing: &Timing,
        zone: Option<&str>,
        instance_type: Option<&str>,
    ) {
        let since = Instant::now();
        for id in ids {
            let shown = Shown {
                since,
                timing: timing.clone(),
                zone: zone.map(str::to_owned),
                instance_type: instance_type.map(str::to_owned),
            };
            self.instances.insert(id.clone(), shown);
        }
    }
}

impl GroupState {
    /// Keeps an activity.
    pub(super) fn note(
        &mut self,
        failed: bool,
        description: &str,
        cause: &str,
        message: &str,
        zone: &str,
    ) {
        let number = self.activities.len() + 1;
        self.activities.push(ActivityRow {
            id: format!("{number:08x}-0000-4000-8000-{:012x}", now_unix_ms()),
            at_unix_ms: now_unix_ms(),
            failed,
            description: description.to_owned(),
            cause: cause.to_owned(),
            message: message.to_owned(),
            details: if zone.is_empty() {
                "{}".to_owned()
            } else {
                format!("{{\"Availability Zone\":\"{zone}\"}}")
            },
        });
    }
}

/// How many of `want` may be launched there, taken off the rations; and the row that was in the way.
pub(super) fn take_ration(
    scenario: &mut Scenario,
    region: &str,
    group: &str,
    zone: &str,
    instance_type: &str,
    want: u32,
) -> (u32, Option<Ration>) {
    let matches = |r: &Ration| {
        concerns(r.region.as_ref(), region)
            && concerns(r.group.as_ref(), group)
            && concerns(r.zone.as_ref(), zone)
            && concerns(r.instance_type.as_ref(), instance_type)
    };
    let tightest = scenario
        .rations
        .iter()
        .filter(|r| matches(r))
        .min_by_key(|r| r.left)
        .cloned();
    let granted = tightest.as_ref().map_or(want, |r| r.left.min(want));
    for row in scenario.rations.iter_mut().filter(|r| matches(r)) {
        row.left = row.left.saturating_sub(granted);
    }
    (granted, tightest.filter(|_| granted < want))
}

/// AWS's code and words for a refused launch.
pub(super) fn refusal(row: &Ration, instance_type: &str, zone: &str) -> (String, String) {
    let code = row
        .code
        .clone()
        .unwrap_or_else(|| "InsufficientInstanceCapacity".to_owned());
    let message = row.message.clone().unwrap_or_else(|| {
        format!(
            "We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone}). \
             Our system will be working on provisioning additional capacity. You can currently get {instance_type} \
             capacity by not specifying an Availability Zone in your request or choosing another one."
        )
    });
    (code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_ration_counts_and_all_matching_ones_are_used_up() {
        let row = |zone: Option<&str>, left| Ration {
            zone: zone.map(str::to_owned),
            left,
            ..Ration::default()
        };
        let mut scenario = Scenario {
            rations: vec![row(None, 5), row(Some("a"), 2)],
            ..Scenario::default()
        };
        let (granted, short) = take_ration(&mut scenario, "r", "g", "a", "t", 4);
        assert_eq!((granted, short.is_some()), (2, true));
        let (granted, short) = take_ration(&mut scenario, "r", "g", "b", "t", 3);
        assert_eq!((granted, short.is_some()), (3, false));
        assert_eq!(take_ration(&mut scenario, "r", "g", "b", "t", 1).0, 0);
    }
}
