//! What AWS answers from the scenario alone: prices, reservations, quotas, permissions, refreshes, queues, and fields that
//! are shown in place of what is.
//!
//! Plain data, part of [`super::Scenario`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields of an answer that differ from what is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OverlayRow {
    /// Only in this region.
    pub region: Option<String>,
    /// The action whose answers it changes, as AWS spells it.
    pub action: String,
    /// Which elements of the answer, at any depth: those whose children of these names have these texts.
    pub of: BTreeMap<String, String>,
    /// What they show: a merge patch (RFC 7396) of names and texts. Null takes a child out, an object goes into it, a list
    /// replaces its children by as many `member`s (EC2: `item`s).
    pub set: Map<String, Value>,
}

/// The price of a spot pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpotPriceRow {
    /// Only in this region.
    pub region: Option<String>,
    /// The type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// USD per hour as AWS writes it, for instance `1.234500`.
    pub usd_per_hour: String,
    /// Since when, milliseconds before the scenario began.
    pub since_ms_ago: u64,
    /// Absent: `Linux/UNIX`.
    pub product: Option<String>,
}

/// A capacity reservation or capacity block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReservationRow {
    /// Only in this region.
    pub region: Option<String>,
    /// Its id, `cr-...`.
    pub id: String,
    /// The type it holds.
    pub instance_type: String,
    /// The zone it holds it in.
    pub zone: String,
    /// How many it holds.
    pub total: u32,
    /// How many of them are free.
    pub available: u32,
    /// Absent: `active`.
    pub state: Option<String>,
    /// Whether it is a capacity block.
    pub block: bool,
    /// Whether only launches that name it use it.
    pub targeted: bool,
    /// When it begins, milliseconds after the scenario began (negative: before).
    pub starts_in_ms: i64,
    /// When it ends, milliseconds after the scenario began; absent: not by itself.
    pub ends_in_ms: Option<i64>,
}

/// A service quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaRow {
    /// Only in this region.
    pub region: Option<String>,
    /// Absent: `ec2`.
    pub service: Option<String>,
    /// For instance `L-417A185B`.
    pub code: String,
    /// For instance `Running On-Demand P instances`.
    pub name: String,
    /// How many.
    pub value: f64,
}

/// What IAM decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// `allowed`
    Allowed,
    /// `explicitDeny`
    ExplicitDeny,
    /// `implicitDeny`
    #[default]
    ImplicitDeny,
}

/// Permission for an action, or the lack of it. Without a matching row an action is allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionRow {
    /// Only in this region; the simulator, which has no region, looks at rows that name none.
    pub region: Option<String>,
    /// `autoscaling:SetDesiredCapacity`, or with a star at the end.
    pub action: String,
    /// What happens to a real call.
    pub decision: Decision,
    /// What SimulatePrincipalPolicy says, where it differs: organisation policies are not in its answer.
    pub simulated: Option<Decision>,
}

/// An instance refresh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefreshRow {
    /// Only in this region.
    pub region: Option<String>,
    /// The group.
    pub group: String,
    /// Its id.
    pub id: String,
    /// AWS's word, for instance `InProgress`, `Successful`, `Cancelled`.
    pub status: String,
    /// How much of it is done, percent.
    pub percent: u32,
    /// When it began, milliseconds before the scenario began.
    pub started_ms_ago: u64,
}

/// A kind of event that EventBridge delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// `EC2 Spot Instance Interruption Warning`
    SpotInterruption,
    /// `EC2 Instance Rebalance Recommendation`
    Rebalance,
    /// `EC2 Instance-launch Lifecycle Action` and `-terminate`
    Lifecycle,
    /// `EC2 Instance State-change Notification`
    StateChange,
    /// `AWS Health Event`
    Health,
}

/// A queue that EventBridge's rules point to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueRow {
    /// Only events of this region.
    pub region: Option<String>,
    /// The region that the queue is in; absent: the event's.
    pub queue_region: Option<String>,
    /// Its address, as CreateQueue gave it.
    pub url: String,
    /// The events that go there; absent: all.
    pub kinds: Option<Vec<EventKind>>,
}
