//! What a survey of a group finds beside the group itself.
//!
//! Filled by `sdk/survey`, read by `drover pools doctor`. A value that AWS did not send is `None`, never zero.

use std::collections::BTreeMap;

use crate::Member;

/// A scaling policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingPolicy {
    /// Its name.
    pub name: String,
    /// AWS's word, for instance `TargetTrackingScaling`.
    pub kind: Option<String>,
    /// Whether it acts; AWS's default is yes.
    pub enabled: bool,
}

/// A scheduled action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledAction {
    /// Its name.
    pub name: String,
    /// When it acts next, milliseconds since 1970.
    pub next_unix_ms: Option<i64>,
    /// The recurrence in cron's form.
    pub recurrence: Option<String>,
    /// What it sets.
    pub min: Option<u32>,
    /// What it sets.
    pub max: Option<u32>,
    /// What it sets.
    pub desired: Option<u32>,
}

/// An instance refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Its id.
    pub id: String,
    /// AWS's word, for instance `InProgress`.
    pub status: String,
    /// Whether it may still end members.
    pub at_work: bool,
}

/// Which change of an instance a hook holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookOn {
    /// `autoscaling:EC2_INSTANCE_LAUNCHING`.
    Launching,
    /// `autoscaling:EC2_INSTANCE_TERMINATING`.
    Terminating,
}

/// What happens when nobody answers a hook in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookDefault {
    /// The change goes on.
    Continue,
    /// A launch ends, a termination goes on without further hooks. AWS's own default.
    Abandon,
}

/// A lifecycle hook of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleHook {
    /// Its name.
    pub name: String,
    /// What it holds; `None` for a word this release does not know.
    pub on: Option<HookOn>,
    /// Seconds until the default is taken; AWS's default is 3,600.
    pub heartbeat_seconds: Option<u32>,
    /// Seconds after which no heartbeat helps (the smaller of 172,800 and 100 times the heartbeat).
    pub global_seconds: Option<u32>,
    /// What is taken when nobody answers.
    pub default: HookDefault,
    /// ARN of the queue or topic that is told; `None` when only EventBridge is.
    pub target: Option<String>,
}

/// A group's warm pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmPool {
    /// Fewest instances kept warm.
    pub min: u32,
    /// Most instances running and warm together; `None`: the group's maximum, so that scale-in refills the pool.
    pub max_prepared: Option<u32>,
    /// `Stopped`, `Running` or `Hibernated`.
    pub state: String,
    /// Whether instances go back into it on scale-in.
    pub reuses: bool,
    /// `PendingDelete` while it goes.
    pub status: Option<String>,
    /// Its instances.
    pub members: Vec<Member>,
}

/// What EC2 says to a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// It would have been done.
    Allowed,
    /// It is not permitted; AWS's words.
    Denied(String),
    /// Something else is wrong with it; AWS's code and words.
    Wrong(String),
}

/// What is asked of a simulated policy: whether these actions are allowed on this resource.
///
/// A policy that is narrowed to resources and tags denies the same action on `*`, so both belong to the question.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PolicyQuestion {
    /// Actions, as `autoscaling:SetDesiredCapacity`.
    pub actions: Vec<String>,
    /// ARNs of the resources (`ResourceArns`); empty: `*`.
    pub resources: Vec<String>,
    /// Single values of context keys (`ContextEntries` of type `string`), as `aws:ResourceTag/drover:owner`.
    pub context: BTreeMap<String, String>,
}

/// What a simulated policy says of one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// `allowed`.
    Allowed,
    /// `explicitDeny`.
    Denied,
    /// `implicitDeny`: no statement allows it.
    NotGranted,
}

/// One quota of EC2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaFact {
    /// AWS's code of it, for instance `L-417A185B`.
    pub code: String,
    /// AWS's name, for instance `Running On-Demand P instances`.
    pub name: String,
    /// How many virtual CPUs (or units, as the name says) may run.
    pub value: u64,
}
