//! What AWS, or somebody, does by itself.
//!
//! Plain data, part of [`super::Scenario`] and of the admin path.

use serde::{Deserialize, Serialize};

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// Where.
    pub region: String,
    /// In which group; only `event` needs none.
    #[serde(default)]
    pub group: String,
    /// How long after the scenario began, milliseconds.
    #[serde(default)]
    pub after_ms: u64,
    /// What.
    #[serde(rename = "do")]
    pub deed: Deed,
}

/// What happens. An `instance` that is absent means the oldest in service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Deed {
    /// Somebody sets the desired capacity.
    SetDesired {
        /// To so many.
        desired: u32,
    },
    /// Somebody sets the limits.
    SetLimits {
        /// Minimum; absent: as it is.
        #[serde(default)]
        min: Option<u32>,
        /// Maximum; absent: as it is.
        #[serde(default)]
        max: Option<u32>,
    },
    /// Somebody, or AWS itself, suspends a process.
    Suspend {
        /// Its name, for instance `Launch`.
        process: String,
        /// Why, as AWS says it; absent: `User suspended at ...`.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Somebody resumes a process.
    Resume {
        /// Its name.
        process: String,
    },
    /// Somebody deletes the group with its instances.
    DeleteGroup,
    /// The process AZRebalance moves instances; it launches before it ends.
    AzRebalance {
        /// Away from this zone.
        from: String,
        /// To this zone.
        to: String,
        /// How many.
        count: u32,
    },
    /// A health check fails an instance; the process ReplaceUnhealthy replaces it.
    Unhealthy {
        /// Which.
        #[serde(default)]
        instance: Option<String>,
    },
    /// Somebody ends an instance in EC2, behind the group's back.
    TerminateInEc2 {
        /// Which.
        #[serde(default)]
        instance: Option<String>,
        /// Code and words of EC2's reason; absent: a user's shutdown.
        #[serde(default)]
        reason: Option<(String, String)>,
    },
    /// EC2 takes a spot instance back: an event now, the end after `notice_ms`.
    SpotInterruption {
        /// Which.
        #[serde(default)]
        instance: Option<String>,
        /// AWS gives 120,000.
        notice_ms: u64,
    },
    /// EC2 recommends to replace a spot instance; a group with capacity rebalancing does so by itself.
    RebalanceRecommendation {
        /// Which.
        #[serde(default)]
        instance: Option<String>,
    },
    /// A scheduled event of an instance, told by AWS Health.
    ScheduledEvent {
        /// Which.
        #[serde(default)]
        instance: Option<String>,
        /// For instance `AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED`.
        code: String,
        /// When it begins, milliseconds from now.
        in_ms: u64,
    },
    /// A message in the region's queues, as it is.
    Event {
        /// Its body.
        body: String,
    },
    /// A scaling activity, as it is.
    Activity {
        /// AWS's word, for instance `Failed` or `Cancelled`.
        status: String,
        /// What it did.
        description: String,
        /// Why it was begun.
        #[serde(default)]
        cause: String,
        /// Why it failed.
        #[serde(default)]
        message: String,
    },
}
