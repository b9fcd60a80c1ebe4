//! Which IAM action each call needs, for which mode, and how far AWS lets it be narrowed.
//!
//! Used by `drover pools policy`, which prints a policy, and by `drover pools doctor`, which asks IAM about it. A call that
//! is added without a word here does not compile. It knows nothing of any policy's text.

use crate::Call;

/// What a permission is needed for. The first three follow one another: each mode needs those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// To look: every mode.
    Observe,
    /// To ask for capacity and to protect it.
    Grow,
    /// To end drained nodes.
    Full,
    /// To judge a group (`drover pools doctor`, `adopt`). Only reads.
    Doctor,
    /// To mend it (`drover pools doctor --fix`).
    Mend,
    /// To read notices from a queue.
    Queue,
}

/// How far a permission can be narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Narrow {
    /// AWS knows no resource for it; only the region can be named.
    Region,
    /// A service without regions, or one that ignores them: nothing can be named.
    Nothing,
    /// To groups, by name and by the tag `drover:owner`.
    Group,
    /// To groups as above, and to the keys of Drover's own tags.
    GroupTags,
    /// To queues.
    Queue,
    /// To roles and users of the account.
    Principal,
}

/// One permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// What for.
    pub need: Need,
    /// How far it can be narrowed.
    pub narrow: Narrow,
    /// As IAM spells it.
    pub action: &'static str,
}

const fn grant(need: Need, narrow: Narrow, action: &'static str) -> Grant {
    Grant {
        need,
        narrow,
        action,
    }
}

/// Needed by what AWS does for a call, and not by a call of ours: LaunchInstances asks EC2 for a fleet in the caller's
/// name.
const BEHIND: [Grant; 1] = [grant(Need::Grow, Narrow::Region, "ec2:CreateFleet")];

impl Call {
    /// Every call.
    pub const ALL: [Self; 31] = [
        Self::DescribeAutoScalingGroups,
        Self::DescribeScalingActivities,
        Self::LaunchInstances,
        Self::SetDesiredCapacity,
        Self::TerminateInstanceInAutoScalingGroup,
        Self::SetInstanceProtection,
        Self::SuspendProcesses,
        Self::ResumeProcesses,
        Self::CreateOrUpdateTags,
        Self::DescribeInstances,
        Self::DescribeInstanceTypes,
        Self::DescribeLaunchTemplateVersions,
        Self::DescribePolicies,
        Self::DescribeScheduledActions,
        Self::DescribeInstanceRefreshes,
        Self::DescribeLifecycleHooks,
        Self::DescribeWarmPool,
        Self::UpdateAutoScalingGroup,
        Self::RecordLifecycleActionHeartbeat,
        Self::CompleteLifecycleAction,
        Self::DescribeRegions,
        Self::DescribeSpotPriceHistory,
        Self::DescribeInstanceTypeOfferings,
        Self::DescribeCapacityReservations,
        Self::RunInstances,
        Self::ReceiveMessage,
        Self::DeleteMessageBatch,
        Self::GetCallerIdentity,
        Self::SimulatePrincipalPolicy,
        Self::GetRole,
        Self::ListServiceQuotas,
    ];

    /// The permission that it needs. `None` for GetCallerIdentity, which needs none, and for RunInstances, which is only
    /// ever tried as a dry run: a policy that allowed it would allow launches past every group, so it is in none of ours,
    /// and a dry run that is denied says nothing.
    pub const fn grant(self) -> Option<Grant> {
        use Narrow::{Group, GroupTags, Nothing, Principal, Region};
        use Need::{Doctor, Full, Grow, Mend, Observe};
        Some(match self {
            Self::GetCallerIdentity | Self::RunInstances => return None,
            Self::DescribeAutoScalingGroups => {
                grant(Observe, Region, "autoscaling:DescribeAutoScalingGroups")
            }
            Self::DescribeScalingActivities => {
                grant(Observe, Region, "autoscaling:DescribeScalingActivities")
            }
            Self::DescribeLifecycleHooks => {
                grant(Observe, Region, "autoscaling:DescribeLifecycleHooks")
            }
            Self::DescribeWarmPool => grant(Observe, Region, "autoscaling:DescribeWarmPool"),
            Self::DescribeInstances => grant(Observe, Region, "ec2:DescribeInstances"),
            Self::DescribeInstanceTypes => grant(Observe, Region, "ec2:DescribeInstanceTypes"),
            Self::DescribeLaunchTemplateVersions => {
                grant(Observe, Region, "ec2:DescribeLaunchTemplateVersions")
            }
            Self::DescribeRegions => grant(Observe, Region, "ec2:DescribeRegions"),
            Self::DescribeSpotPriceHistory => {
                grant(Observe, Region, "ec2:DescribeSpotPriceHistory")
            }
            Self::DescribeInstanceTypeOfferings => {
                grant(Observe, Region, "ec2:DescribeInstanceTypeOfferings")
            }
            Self::DescribeCapacityReservations => {
                grant(Observe, Region, "ec2:DescribeCapacityReservations")
            }
            Self::LaunchInstances => grant(Grow, Group, "autoscaling:LaunchInstances"),
            Self::SetDesiredCapacity => grant(Grow, Group, "autoscaling:SetDesiredCapacity"),
            Self::SetInstanceProtection => grant(Grow, Group, "autoscaling:SetInstanceProtection"),
            Self::SuspendProcesses => grant(Grow, Group, "autoscaling:SuspendProcesses"),
            Self::ResumeProcesses => grant(Grow, Group, "autoscaling:ResumeProcesses"),
            Self::RecordLifecycleActionHeartbeat => {
                grant(Grow, Group, "autoscaling:RecordLifecycleActionHeartbeat")
            }
            Self::CompleteLifecycleAction => {
                grant(Grow, Group, "autoscaling:CompleteLifecycleAction")
            }
            Self::CreateOrUpdateTags => grant(Grow, GroupTags, "autoscaling:CreateOrUpdateTags"),
            Self::TerminateInstanceInAutoScalingGroup => grant(
                Full,
                Group,
                "autoscaling:TerminateInstanceInAutoScalingGroup",
            ),
            Self::DescribePolicies => grant(Doctor, Region, "autoscaling:DescribePolicies"),
            Self::DescribeScheduledActions => {
                grant(Doctor, Region, "autoscaling:DescribeScheduledActions")
            }
            Self::DescribeInstanceRefreshes => {
                grant(Doctor, Region, "autoscaling:DescribeInstanceRefreshes")
            }
            Self::SimulatePrincipalPolicy => {
                grant(Doctor, Principal, "iam:SimulatePrincipalPolicy")
            }
            Self::GetRole => grant(Doctor, Principal, "iam:GetRole"),
            Self::ListServiceQuotas => grant(Doctor, Nothing, "servicequotas:ListServiceQuotas"),
            Self::UpdateAutoScalingGroup => {
                grant(Mend, Group, "autoscaling:UpdateAutoScalingGroup")
            }
            Self::ReceiveMessage => grant(Need::Queue, Narrow::Queue, "sqs:ReceiveMessage"),
            Self::DeleteMessageBatch => grant(Need::Queue, Narrow::Queue, "sqs:DeleteMessage"),
        })
    }
}

/// Every permission that is needed for something, in order.
pub fn grants() -> Vec<Grant> {
    let mut all: Vec<Grant> = Call::ALL
        .into_iter()
        .filter_map(Call::grant)
        .chain(BEHIND)
        .collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each method of a trait with the words above it.
    fn methods(source: &str) -> Vec<(String, String)> {
        let mut words = String::new();
        let mut found = Vec::new();
        for line in source.lines().map(str::trim) {
            if let Some(doc) = line.strip_prefix("///") {
                words.push_str(doc);
                words.push('\n');
            } else if let Some(name) = line.strip_prefix("async fn ") {
                let name = name.split('(').next().unwrap_or_default();
                found.push((name.to_owned(), std::mem::take(&mut words)));
            } else if line.starts_with("pub trait") {
                words.clear();
            }
        }
        found
    }

    #[test]
    fn every_call_of_the_traits_has_its_permission_and_no_permission_is_without_a_call() {
        let sources = [
            include_str!("api.rs"),
            include_str!("survey.rs"),
            include_str!("offers.rs"),
            include_str!("events.rs"),
        ];
        // The traits alone: what implements one for a pointer calls the same.
        let traits = sources.map(|text| text.split("\nimpl").next().unwrap_or_default());
        let methods: Vec<_> = traits.iter().flat_map(|text| methods(text)).collect();
        assert!(methods.len() > 30, "{methods:?}");
        let names = Call::ALL.map(|call| call.to_string());
        for (method, words) in &methods {
            assert!(
                names.iter().any(|name| words.contains(name.as_str())),
                "{method} says no call that is known: {words}"
            );
        }
        // GetRole is a step of the simulation: a session's role may have a path.
        for name in names.iter().filter(|name| *name != "GetRole") {
            let used = methods
                .iter()
                .any(|(_, words)| words.contains(name.as_str()));
            assert!(used, "{name} is no method's call");
        }
    }

    #[test]
    fn all_calls_are_listed_once() {
        let source = include_str!("failure/call.rs");
        let body = source
            .split("pub enum Call {")
            .nth(1)
            .and_then(|rest| rest.split('}').next())
            .expect("the calls");
        let named: Vec<&str> = body
            .lines()
            .map(|line| line.trim().trim_end_matches(','))
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .collect();
        let mut all = Call::ALL.map(|call| call.to_string()).to_vec();
        assert_eq!(all, named);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Call::ALL.len());
    }

    #[test]
    fn a_permission_is_named_as_its_call() {
        for call in Call::ALL {
            let Some(grant) = call.grant() else { continue };
            let name = match call {
                Call::DeleteMessageBatch => "DeleteMessage".to_owned(),
                other => other.to_string(),
            };
            let api = call.api();
            assert_eq!(grant.action, format!("{api}:{name}"));
            if call.is_mutation() {
                assert_ne!(grant.need, Need::Observe, "{call} changes something");
                assert_ne!(grant.need, Need::Doctor, "{call} changes something");
            }
        }
    }
}
