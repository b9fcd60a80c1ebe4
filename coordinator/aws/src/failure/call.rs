//! The calls that Drover makes, as AWS spells them, and which of AWS's APIs each belongs to.
//!
//! Used by errors, by the budget and by its meter. It says nothing of what a failed call means.

use std::fmt;

/// An API of AWS: each limits its calls for itself, by account and region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are AWS's own")]
pub enum Api {
    AutoScaling,
    Ec2,
    Sqs,
    Sts,
    Iam,
    ServiceQuotas,
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AutoScaling => "autoscaling",
            Self::Ec2 => "ec2",
            Self::Sqs => "sqs",
            Self::Sts => "sts",
            Self::Iam => "iam",
            Self::ServiceQuotas => "servicequotas",
        })
    }
}

/// A call, as AWS spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are AWS's own")]
pub enum Call {
    DescribeAutoScalingGroups,
    DescribeScalingActivities,
    LaunchInstances,
    SetDesiredCapacity,
    TerminateInstanceInAutoScalingGroup,
    SetInstanceProtection,
    SuspendProcesses,
    ResumeProcesses,
    CreateOrUpdateTags,
    DescribeInstances,
    DescribeInstanceTypes,
    DescribeLaunchTemplateVersions,
    DescribePolicies,
    DescribeScheduledActions,
    DescribeInstanceRefreshes,
    DescribeLifecycleHooks,
    DescribeWarmPool,
    UpdateAutoScalingGroup,
    RecordLifecycleActionHeartbeat,
    CompleteLifecycleAction,
    DescribeRegions,
    DescribeSpotPriceHistory,
    DescribeInstanceTypeOfferings,
    DescribeCapacityReservations,
    /// Only ever as a dry run.
    RunInstances,
    ReceiveMessage,
    DeleteMessageBatch,
    GetCallerIdentity,
    SimulatePrincipalPolicy,
    GetRole,
    ListServiceQuotas,
}

impl Call {
    /// Whether it changes something.
    pub fn is_mutation(self) -> bool {
        match self {
            Self::LaunchInstances
            | Self::SetDesiredCapacity
            | Self::TerminateInstanceInAutoScalingGroup
            | Self::SetInstanceProtection
            | Self::SuspendProcesses
            | Self::ResumeProcesses
            | Self::CreateOrUpdateTags
            | Self::UpdateAutoScalingGroup
            | Self::RecordLifecycleActionHeartbeat
            | Self::CompleteLifecycleAction
            | Self::DeleteMessageBatch => true,
            Self::DescribeAutoScalingGroups
            | Self::DescribeScalingActivities
            | Self::DescribeInstances
            | Self::DescribeInstanceTypes
            | Self::DescribeLaunchTemplateVersions
            | Self::DescribePolicies
            | Self::DescribeScheduledActions
            | Self::DescribeInstanceRefreshes
            | Self::DescribeLifecycleHooks
            | Self::DescribeWarmPool
            | Self::DescribeRegions
            | Self::DescribeSpotPriceHistory
            | Self::DescribeInstanceTypeOfferings
            | Self::DescribeCapacityReservations
            | Self::RunInstances
            | Self::ReceiveMessage
            | Self::GetCallerIdentity
            | Self::SimulatePrincipalPolicy
            | Self::GetRole
            | Self::ListServiceQuotas => false,
        }
    }

    /// The API that it is a call of.
    pub fn api(self) -> Api {
        match self {
            Self::DescribeAutoScalingGroups
            | Self::DescribeScalingActivities
            | Self::LaunchInstances
            | Self::SetDesiredCapacity
            | Self::TerminateInstanceInAutoScalingGroup
            | Self::SetInstanceProtection
            | Self::SuspendProcesses
            | Self::ResumeProcesses
            | Self::CreateOrUpdateTags
            | Self::DescribePolicies
            | Self::DescribeScheduledActions
            | Self::DescribeInstanceRefreshes
            | Self::DescribeLifecycleHooks
            | Self::DescribeWarmPool
            | Self::UpdateAutoScalingGroup
            | Self::RecordLifecycleActionHeartbeat
            | Self::CompleteLifecycleAction => Api::AutoScaling,
            Self::DescribeInstances
            | Self::DescribeInstanceTypes
            | Self::DescribeLaunchTemplateVersions
            | Self::DescribeRegions
            | Self::DescribeSpotPriceHistory
            | Self::DescribeInstanceTypeOfferings
            | Self::DescribeCapacityReservations
            | Self::RunInstances => Api::Ec2,
            Self::ReceiveMessage | Self::DeleteMessageBatch => Api::Sqs,
            Self::GetCallerIdentity => Api::Sts,
            Self::SimulatePrincipalPolicy | Self::GetRole => Api::Iam,
            Self::ListServiceQuotas => Api::ServiceQuotas,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
