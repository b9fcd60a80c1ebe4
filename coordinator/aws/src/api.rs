//! The one trait between Drover and AWS.
//!
//! Implemented by [`crate::SdkAws`] and by the fakes of tests; called by the coordinator's `asg` adapter. It
//! offers only what Drover may do: protection can be switched on and not off, an instance leaves only by id
//! and with decrement, and only the Launch process can be suspended.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::{
    Activities, AwsError, Group, GroupName, Instance, InstanceId, InstanceTypeFacts, LaunchAsk,
    LaunchReply, Region, TemplateFacts, TemplateRef,
};

/// AWS in plain types. Every call names its region; one region's trouble stays in that region's calls.
///
/// Mutations are sent once and never repeated by the implementation: whether to ask again is the caller's
/// decision. [`AwsError::may_have_applied`] says whether a failed one can have taken effect. Reads may be
/// repeated by the implementation.
#[async_trait]
#[auto_impl::auto_impl(Arc)]
pub trait AwsApi: Send + Sync {
    /// DescribeAutoScalingGroups by name, all pages. A group that does not exist is absent from the answer.
    async fn describe_groups(
        &self,
        region: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError>;

    /// DescribeScalingActivities of one group, newest first, back to those that started at or after
    /// `since_unix_ms`. Bounded: [`Activities::complete`] is false when older ones were left out.
    async fn describe_activities(
        &self,
        region: &Region,
        group: &GroupName,
        since_unix_ms: i64,
    ) -> Result<Activities, AwsError>;

    /// LaunchInstances with RetryStrategy `none`: answers with ids, with refusals, or with both.
    async fn launch_instances(
        &self,
        region: &Region,
        ask: &LaunchAsk,
    ) -> Result<LaunchReply, AwsError>;

    /// SetDesiredCapacity (absolute), ignoring the cooldown.
    async fn set_desired_capacity(
        &self,
        region: &Region,
        group: &GroupName,
        desired: u32,
    ) -> Result<(), AwsError>;

    /// TerminateInstanceInAutoScalingGroup, always with decrement of the desired capacity.
    async fn terminate_with_decrement(
        &self,
        region: &Region,
        instance: &InstanceId,
    ) -> Result<(), AwsError>;

    /// SetInstanceProtection, only ever on. In calls of at most 50 instances; stops at the first that fails.
    async fn protect_from_scale_in(
        &self,
        region: &Region,
        group: &GroupName,
        instances: &[InstanceId],
    ) -> Result<(), AwsError>;

    /// SuspendProcesses for Launch, and for nothing else.
    async fn suspend_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError>;

    /// ResumeProcesses for Launch, and for nothing else.
    async fn resume_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError>;

    /// CreateOrUpdateTags: one tag on the group, not propagated to its instances.
    async fn tag_group(
        &self,
        region: &Region,
        group: &GroupName,
        key: &str,
        value: &str,
    ) -> Result<(), AwsError>;

    /// EC2 DescribeInstances by id, all pages. An unknown id is absent from the answer, not an error.
    async fn describe_instances(
        &self,
        region: &Region,
        instances: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError>;

    /// EC2 DescribeInstanceTypes by name. A type that the region does not know is a `Config` failure.
    async fn describe_instance_types(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError>;

    /// EC2 DescribeLaunchTemplateVersions of one version. `None` when AWS answers with no version.
    async fn describe_template(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError>;
}
