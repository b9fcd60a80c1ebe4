//! What AWS says, in plain types: groups, their members, activities, launches, instances.
//!
//! Filled by `sdk/convert*`, read by callers. A value that AWS did not send is `None`, never zero. Nothing
//! here knows the SDK or decides what to do.

use std::collections::BTreeMap;

use crate::{Classified, ClientToken, GroupName, InstanceId, ReservationId};

mod events;
mod group;
mod offers;
mod survey;

pub use events::{HookAnswer, QueueMessage};
pub use group::{Group, GroupTemplate, Member, MemberState, MixedPolicy, Override, TemplateRef};
pub use offers::{Reservation, ReservationKind, SpotPrice};
pub use survey::{
    DryRun, HookDefault, HookOn, LifecycleHook, Permission, PolicyQuestion, QuotaFact, Refresh,
    ScalingPolicy, ScheduledAction, WarmPool,
};

/// How an instance is bought.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Market {
    /// Pay as you go.
    OnDemand,
    /// Interruptible.
    Spot,
    /// A capacity block, paid ahead.
    CapacityBlock,
    /// A word this release does not know.
    Other(String),
}

impl Market {
    /// Reads AWS's spelling (`on-demand`, `spot`, `capacity-block`; EC2 leaves on-demand out).
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "on-demand" => Self::OnDemand,
            "spot" => Self::Spot,
            "capacity-block" => Self::CapacityBlock,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Where a launch goes. A group of several zones needs one of the two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchPlace {
    /// An availability zone of the group, for instance `us-east-1a`.
    Zone(String),
    /// A subnet of the group.
    Subnet(String),
}

/// One LaunchInstances call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchAsk {
    /// The group that gets the instances.
    pub group: GroupName,
    /// How many, 1 to 100 (AWS's limit for one call).
    pub count: u32,
    /// Where; `None` only for a group of one zone.
    pub place: Option<LaunchPlace>,
    /// Makes the call repeatable.
    pub token: ClientToken,
}

impl LaunchAsk {
    /// The most instances that AWS launches in one call.
    pub const MAX_COUNT: u32 = 100;
}

/// Instances that a launch gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Their ids.
    pub instances: Vec<InstanceId>,
    /// Their type, where AWS says it.
    pub instance_type: Option<String>,
    /// Their zone, where AWS says it.
    pub zone: Option<String>,
    /// Their market, where AWS says it.
    pub market: Option<Market>,
}

/// Why a launch gave fewer than asked, for one type and zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRefusal {
    /// The type that was refused, where AWS says it.
    pub instance_type: Option<String>,
    /// The zone that refused, where AWS says it.
    pub zone: Option<String>,
    /// The market, where AWS says it.
    pub market: Option<Market>,
    /// AWS's code.
    pub code: Option<String>,
    /// AWS's words, in full.
    pub message: String,
    /// What it means.
    pub class: Classified,
}

/// The answer to a LaunchInstances call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LaunchReply {
    /// What was launched.
    pub launched: Vec<Launched>,
    /// What was not, and why.
    pub refused: Vec<LaunchRefusal>,
}

impl LaunchReply {
    /// All ids in the order of the reply.
    pub fn instance_ids(&self) -> Vec<InstanceId> {
        self.launched
            .iter()
            .flat_map(|l| l.instances.iter().cloned())
            .collect()
    }
}

/// How a scaling activity stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActivityStatus {
    /// It ended well.
    Successful,
    /// It ended badly; the message says why.
    Failed,
    /// It was given up.
    Cancelled,
    /// It goes on; AWS's word.
    Running(String),
}

/// One scaling activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// AWS's id of it.
    pub id: String,
    /// When it began, milliseconds since 1970.
    pub started_unix_ms: Option<i64>,
    /// When it ended, milliseconds since 1970.
    pub ended_unix_ms: Option<i64>,
    /// How it stands.
    pub status: ActivityStatus,
    /// What it does, for instance `Launching a new EC2 instance`.
    pub description: String,
    /// Why it was begun, in AWS's words.
    pub cause: String,
    /// Why it failed, in AWS's words, in full.
    pub message: Option<String>,
    /// What the failure means; `None` unless it failed or was cancelled with a message.
    pub class: Option<Classified>,
    /// JSON with zone and subnet, as AWS sends it.
    pub details: Option<String>,
}

/// The activities of one group, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Activities {
    /// Newest first.
    pub items: Vec<Activity>,
    /// False when the bound was reached before the time that was asked for.
    pub complete: bool,
}

/// The state of an EC2 instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// It is being started.
    Pending,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It is stopped and may be started again.
    Stopped,
    /// It is being ended.
    ShuttingDown,
    /// It is gone.
    Terminated,
    /// A word this release does not know.
    Other(String),
}

/// One EC2 instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// Its type.
    pub instance_type: Option<String>,
    /// Its state.
    pub state: InstanceState,
    /// Why it left the state before, as AWS's code and words, for instance `Client.InternalError: ...`.
    pub state_reason: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its market.
    pub market: Market,
    /// When it was launched, milliseconds since 1970.
    pub launched_unix_ms: Option<i64>,
    /// Its private address.
    pub private_ip: Option<String>,
    /// The image it was started from.
    pub image: Option<String>,
    /// The capacity reservation or block that it runs in.
    pub reservation: Option<ReservationId>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The GPUs of one model in an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The model, as AWS spells it, for instance `A100`.
    pub model: String,
    /// Who makes it, for instance `NVIDIA`.
    pub maker: Option<String>,
    /// How many there are.
    pub count: u32,
    /// Memory of each, MiB.
    pub memory_mib: Option<u64>,
}

/// What an instance type offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceTypeFacts {
    /// Its name, for instance `p4d.24xlarge`.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: Option<u32>,
    /// Memory, MiB.
    pub memory_mib: Option<u64>,
    /// Its GPUs; empty when AWS lists none.
    pub gpus: Vec<Gpu>,
    /// Local disks together, GB, where it has any.
    pub local_disk_gb: Option<u64>,
    /// Processor architectures, for instance `x86_64`.
    pub architectures: Vec<String>,
    /// Whether it is a whole machine; those boot slowly.
    pub bare_metal: Option<bool>,
}

/// What a launch template version says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFacts {
    /// Its id.
    pub id: Option<String>,
    /// Its number.
    pub version: Option<i64>,
    /// The instance type; absent where the group must say it.
    pub instance_type: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// The market; on-demand where the template says nothing.
    pub market: Market,
    /// How it uses capacity reservations.
    pub reservations: ReservationUse,
}

/// How launches from a template use capacity reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReservationUse {
    /// Any open one that matches, else none: AWS's default.
    #[default]
    Open,
    /// None, or only those of a resource group, which is not looked into.
    None,
    /// Exactly this one.
    Only(ReservationId),
}
