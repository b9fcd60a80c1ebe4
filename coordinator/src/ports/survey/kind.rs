//! The kinds of findings, by the names that programs see. `docs/auto-scaling-groups.md` lists them, a test holds the two
//! together; the end-to-end suite sets up a group for each.

use super::Finding;

/// Names and enum at once, so that none can be left out of [`Kind::ALL`].
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)+) => {
        /// What is found, without its particulars.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// As in the admin service.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// AWS knows no such region, or takes no credentials of ours there.
    Region = "region",
    /// A question was not answered.
    NotAsked = "not_asked",
    /// There is no such group.
    GroupMissing = "group_missing",
    /// It is being deleted.
    GroupGoing = "group_going",
    /// It names nothing to launch.
    NoLaunchTemplate = "no_launch_template",
    /// It has a launch configuration.
    LaunchConfiguration = "launch_configuration",
    /// The version that it names does not exist.
    TemplateVersionMissing = "template_version_missing",
    /// It names no version.
    TemplateVersionUnnamed = "template_version_unnamed",
    /// EC2 would refuse its template.
    TemplateRefused = "template_refused",
    /// The region has no such type.
    UnknownType = "unknown_type",
    /// New members start without scale-in protection.
    NewUnprotected = "new_unprotected",
    /// Members without scale-in protection.
    MembersUnprotected = "members_unprotected",
    /// A process that ends members by itself is not suspended.
    EndsMembers = "ends_members",
    /// Launch is suspended.
    LaunchSuspended = "launch_suspended",
    /// Terminate is suspended.
    TerminateSuspended = "terminate_suspended",
    /// Another process is suspended.
    ProcessSuspended = "process_suspended",
    /// Capacity rebalancing is on.
    CapacityRebalance = "capacity_rebalance",
    /// Health is judged by more than EC2.
    HealthChecks = "health_checks",
    /// Members are judged before they can have booted.
    GraceShort = "grace_short",
    /// A scaling policy.
    ScalingPolicy = "scaling_policy",
    /// A scheduled action.
    ScheduledAction = "scheduled_action",
    /// An instance refresh is at work.
    InstanceRefresh = "instance_refresh",
    /// Members are replaced at an age.
    MaxLifetime = "max_lifetime",
    /// Instances count for more than one.
    Weighted = "weighted",
    /// Cluster Autoscaler finds it.
    ClusterAutoscaler = "cluster_autoscaler",
    /// EKS manages it as a node group.
    EksNodegroup = "eks_nodegroup",
    /// It is tagged for a cluster of EKS.
    EksCluster = "eks_cluster",
    /// Karpenter's tags.
    Karpenter = "karpenter",
    /// It is another coordinator's.
    OthersGroup = "others_group",
    /// It carries no owner tag.
    NotOffered = "not_offered",
    /// More runs than its maximum.
    MaxBelowRunning = "max_below_running",
    /// Its maximum is below its pool's.
    MaxBelowConfig = "max_below_config",
    /// An instance that nobody lets go on is ended.
    LaunchHook = "launch_hook",
    /// A terminating hook is over before a node can be emptied.
    TerminateHook = "terminate_hook",
    /// Permissions are missing.
    Permissions = "permissions",
    /// The quota does not carry the maximum.
    Quota = "quota",
    /// Members without an agent.
    NoAgents = "no_agents",
    /// People have frozen it.
    Frozen = "frozen",
    /// Its warm pool refills after each removal.
    WarmPool = "warm_pool",
}

impl Finding {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Region { .. } => Kind::Region,
            Self::Unasked { .. } => Kind::NotAsked,
            Self::GroupMissing => Kind::GroupMissing,
            Self::GroupGoing { .. } => Kind::GroupGoing,
            Self::TemplateMissing => Kind::NoLaunchTemplate,
            Self::LaunchConfiguration { .. } => Kind::LaunchConfiguration,
            Self::VersionMissing { .. } => Kind::TemplateVersionMissing,
            Self::VersionUnnamed { .. } => Kind::TemplateVersionUnnamed,
            Self::TemplateRefused { .. } => Kind::TemplateRefused,
            Self::UnknownType { .. } => Kind::UnknownType,
            Self::NewUnprotected => Kind::NewUnprotected,
            Self::MembersUnprotected { .. } => Kind::MembersUnprotected,
            Self::EndsMembers { .. } => Kind::EndsMembers,
            Self::LaunchSuspended { .. } => Kind::LaunchSuspended,
            Self::TerminateSuspended { .. } => Kind::TerminateSuspended,
            Self::OtherSuspended { .. } => Kind::ProcessSuspended,
            Self::CapacityRebalance { .. } => Kind::CapacityRebalance,
            Self::HealthChecks { .. } => Kind::HealthChecks,
            Self::GraceShort { .. } => Kind::GraceShort,
            Self::ScalingPolicy { .. } => Kind::ScalingPolicy,
            Self::ScheduledAction { .. } => Kind::ScheduledAction,
            Self::RefreshAtWork { .. } => Kind::InstanceRefresh,
            Self::MaxLifetime { .. } => Kind::MaxLifetime,
            Self::Weighted => Kind::Weighted,
            Self::ClusterAutoscaler { .. } => Kind::ClusterAutoscaler,
            Self::EksNodegroup { .. } => Kind::EksNodegroup,
            Self::EksCluster { .. } => Kind::EksCluster,
            Self::Karpenter { .. } => Kind::Karpenter,
            Self::OthersGroup { .. } => Kind::OthersGroup,
            Self::NotOffered => Kind::NotOffered,
            Self::MaxBelowRunning { .. } => Kind::MaxBelowRunning,
            Self::MaxBelowConfig { .. } => Kind::MaxBelowConfig,
            Self::LaunchHookAbandons(_) => Kind::LaunchHook,
            Self::TerminateHookShort { .. } => Kind::TerminateHook,
            Self::Permissions { .. } => Kind::Permissions,
            Self::Quota(_) => Kind::Quota,
            Self::NoAgents { .. } => Kind::NoAgents,
            Self::Frozen { .. } => Kind::Frozen,
            Self::WarmPoolRefills => Kind::WarmPool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_each_kind_once_and_in_order() {
        let doc = include_str!("../../../../docs/auto-scaling-groups.md");
        let table = doc
            .split("### What it finds")
            .nth(1)
            .and_then(|after| after.split("\n## ").next())
            .expect("its section");
        let listed: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(listed, known);
    }
}
