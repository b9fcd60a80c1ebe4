//! What is asked of AWS to judge a group before Drover drives it. Everything here only reads.
//!
//! Implemented by `SdkAws` and by the fakes of tests; called by `drover pools doctor` and `adopt`, and by discovery.
//! It must not change anything: what mends a group is in [`crate::AwsMend`].

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::{
    AwsError, DryRun, Group, GroupName, LifecycleHook, Permission, PolicyQuestion, QuotaFact,
    Refresh, Region, ScalingPolicy, ScheduledAction, TemplateRef, WarmPool,
};

/// The questions of a survey. Each is one or a few describes; one that is not permitted fails alone.
#[async_trait]
pub trait AwsSurvey: Send + Sync {
    /// DescribeAutoScalingGroups by tag key (`tag-key` filter), all pages: discovery.
    async fn groups_tagged(&self, region: &Region, key: &str) -> Result<Vec<Group>, AwsError>;

    /// DescribePolicies of one group, all pages.
    async fn scaling_policies(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError>;

    /// DescribeScheduledActions of one group, those to come, all pages.
    async fn scheduled_actions(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError>;

    /// DescribeInstanceRefreshes of one group, newest first, those that are not over and the newest that is.
    async fn instance_refreshes(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError>;

    /// DescribeLifecycleHooks of one group.
    async fn lifecycle_hooks(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError>;

    /// DescribeWarmPool of one group, all pages; `None` when it has none.
    async fn warm_pool(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Option<WarmPool>, AwsError>;

    /// The caller's ARN (STS GetCallerIdentity).
    async fn caller(&self, region: &Region) -> Result<String, AwsError>;

    /// EC2's dry run of what LaunchInstances needs of EC2: RunInstances with this template and one instance.
    async fn dry_run_launch(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<DryRun, AwsError>;

    /// IAM SimulatePrincipalPolicy of `caller` (the ARN that [`Self::caller`] gave: a user's, role's or assumed role's) for
    /// this question, all pages; by action. Organisation policies are not in its answer: an allowed action may still be
    /// denied. A root user cannot be simulated.
    async fn simulate_policy(
        &self,
        region: &Region,
        caller: &str,
        question: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError>;

    /// Service quotas of EC2's running on-demand and spot instances by family (Service Quotas ListServiceQuotas, code
    /// `ec2`), in virtual CPUs.
    async fn ec2_quotas(&self, region: &Region) -> Result<Vec<QuotaFact>, AwsError>;

    /// Whether the region answers at all and the credentials are taken there (DescribeRegions by name); an unknown region
    /// name is a `Config` failure that says so.
    async fn check_region(&self, region: &Region) -> Result<(), AwsError>;
}

/// What mends a group so that nothing but Drover ends its members. Sent once, never repeated.
#[async_trait]
pub trait AwsMend: Send + Sync {
    /// UpdateAutoScalingGroup: new members start protected from scale-in.
    async fn protect_new(&self, region: &Region, group: &GroupName) -> Result<(), AwsError>;

    /// SuspendProcesses, only for AZRebalance and ReplaceUnhealthy.
    async fn suspend_own_removals(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError>;

    /// UpdateAutoScalingGroup: capacity rebalancing off.
    async fn capacity_rebalance_off(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError>;
}
