//! What can be wrong with a group. Made by the adapter, rendered in `text` alone.

use drover_core::model::Millis;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// AWS or somebody else may end members, or Drover cannot work: to be mended before the pool leaves `observe`.
    Must,
    /// It will hurt some day.
    Should,
    /// To be known.
    Note,
}

impl Severity {
    /// As in the admin service.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Note => "note",
        }
    }
}

/// What was asked of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The group itself.
    Group,
    /// Its launch template.
    Template,
    /// Its instance types.
    Types,
    /// Scaling policies.
    Policies,
    /// Scheduled actions.
    Schedules,
    /// Instance refreshes.
    Refreshes,
    /// Lifecycle hooks.
    Hooks,
    /// The warm pool.
    WarmPool,
    /// Who asks.
    Caller,
    /// What the caller may do.
    Permissions,
    /// Whether EC2 would take the template.
    DryRun,
    /// The account's quotas.
    Quotas,
}

/// What a person can do so that AWS answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Give this permission, an action of IAM.
    Permission(&'static str),
    /// Give fresh or right credentials.
    Credentials,
    /// Find out why nothing answers there: the network, or a region that is none.
    Reach,
}

/// Who suspended a process, as far as AWS's reason tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendedBy {
    /// A person or a program, by a call.
    Caller,
    /// AWS itself, after launches that failed again and again.
    Aws,
    /// This coordinator, while it gives back what was never filled.
    Drover,
    /// The reason does not tell.
    Unknown,
}

/// A lifecycle hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// Seconds until its default is taken.
    pub heartbeat_seconds: u32,
}

/// Quota that does not carry a maximum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// AWS's code of the quota.
    pub code: String,
    /// AWS's name of it.
    pub name: String,
    /// Virtual CPUs that it allows.
    pub allows: u64,
    /// The type that needs most.
    pub instance_type: String,
    /// Most instances that may be asked for.
    pub max: u32,
    /// Virtual CPUs that they need.
    pub needs: u64,
    /// Virtual CPUs of the group's members of that family.
    pub running: u64,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// AWS knows no such region, or takes no credentials of ours there.
    Region {
        /// AWS's words.
        why: String,
    },
    /// A question was not answered.
    Unasked {
        /// Which.
        question: Question,
        /// What a person can do, where that is known.
        next: Option<Next>,
        /// The call and AWS's words.
        why: String,
    },
    /// There is no such group.
    GroupMissing,
    /// It is being deleted.
    GroupGoing {
        /// AWS's word.
        status: String,
    },
    /// It names nothing to launch.
    TemplateMissing,
    /// It has a launch configuration.
    LaunchConfiguration {
        /// Its name.
        name: String,
    },
    /// The version that it names does not exist.
    VersionMissing {
        /// Name or id.
        template: String,
        /// As the group says it.
        version: String,
    },
    /// It names no version.
    VersionUnnamed {
        /// Name or id.
        template: String,
    },
    /// EC2 would refuse it.
    TemplateRefused {
        /// EC2's code and words.
        why: String,
    },
    /// The region has no such type.
    UnknownType {
        /// Name.
        instance_type: String,
        /// AWS's words.
        why: String,
    },
    /// New members start without scale-in protection.
    NewUnprotected,
    /// Members without scale-in protection.
    MembersUnprotected {
        /// Their ids.
        ids: Vec<String>,
    },
    /// A process that ends members by itself is not suspended.
    EndsMembers {
        /// `AZRebalance` or `ReplaceUnhealthy`.
        process: &'static str,
    },
    /// Launch is suspended.
    LaunchSuspended {
        /// By whom.
        by: SuspendedBy,
        /// AWS's words.
        why: String,
    },
    /// Terminate is suspended.
    TerminateSuspended {
        /// By whom.
        by: SuspendedBy,
        /// AWS's words.
        why: String,
    },
    /// Another process is suspended.
    OtherSuspended {
        /// AWS's name.
        process: String,
        /// AWS's words.
        why: String,
    },
    /// Capacity rebalancing is on.
    CapacityRebalance {
        /// The group can launch spot: it acts.
        spot: bool,
    },
    /// Health is judged by more than EC2.
    HealthChecks {
        /// As AWS lists them.
        kinds: String,
        /// ReplaceUnhealthy is not suspended: they end members.
        acts: bool,
    },
    /// Members are judged before they can have booted.
    GraceShort {
        /// Seconds.
        seconds: u32,
    },
    /// A scaling policy.
    ScalingPolicy {
        /// Its name.
        name: String,
        /// AWS's word for its kind.
        kind: String,
        /// It does nothing while AlarmNotification is suspended.
        held: bool,
    },
    /// A scheduled action.
    ScheduledAction {
        /// Its name.
        name: String,
        /// When it acts next, in words.
        when: String,
        /// It does nothing while ScheduledActions is suspended.
        held: bool,
    },
    /// An instance refresh is at work.
    RefreshAtWork {
        /// Its id.
        id: String,
        /// AWS's word.
        status: String,
    },
    /// Members are replaced at an age.
    MaxLifetime {
        /// Seconds.
        seconds: u32,
    },
    /// Instances count for more than one.
    Weighted,
    /// Cluster Autoscaler finds it.
    ClusterAutoscaler {
        /// The tags.
        keys: Vec<String>,
    },
    /// EKS manages it as a node group.
    EksNodegroup {
        /// The node group.
        name: String,
    },
    /// It is tagged for a cluster of EKS.
    EksCluster {
        /// The cluster.
        name: String,
    },
    /// Karpenter's tags.
    Karpenter {
        /// The tags.
        keys: Vec<String>,
    },
    /// It is another coordinator's.
    OthersGroup {
        /// Why, with the tag.
        why: String,
    },
    /// It carries no owner tag.
    NotOffered,
    /// More runs than its maximum.
    MaxBelowRunning {
        /// Maximum.
        max: u32,
        /// Members.
        running: u32,
    },
    /// Its maximum is below what its pool may have.
    MaxBelowConfig {
        /// Maximum.
        max: u32,
        /// The pool's.
        config: u32,
    },
    /// An instance that nobody lets go on is ended.
    LaunchHookAbandons(Hook),
    /// A terminating hook is over before a node can be emptied.
    TerminateHookShort {
        /// The hook.
        hook: Hook,
        /// What emptying may take.
        drain: Millis,
    },
    /// Permissions are missing.
    Permissions {
        /// The mode that needs them.
        mode: &'static str,
        /// Actions that no statement allows, or that one denies.
        actions: Vec<String>,
        /// Some are denied by a statement.
        denied: bool,
        /// The pool is in that mode or beyond.
        now: bool,
        /// Where to put a policy: `role` or `user` and its name.
        principal: Option<(&'static str, String)>,
    },
    /// The quota does not carry the maximum.
    Quota(Gap),
    /// Members without an agent.
    NoAgents {
        /// How many.
        without: u32,
        /// Of how many.
        of: u32,
    },
    /// People have frozen it.
    Frozen {
        /// The tag's value.
        why: String,
    },
    /// Its warm pool refills after each removal.
    WarmPoolRefills,
}

/// A finding in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// How much it matters.
    pub severity: Severity,
    /// A name for programs.
    pub kind: &'static str,
    /// For people: what is found and why it matters.
    pub words: String,
    /// What mends it, as lines for a shell; empty where no single command does.
    pub commands: Vec<String>,
    /// `drover pools doctor --fix` does it.
    pub fixable: bool,
}
