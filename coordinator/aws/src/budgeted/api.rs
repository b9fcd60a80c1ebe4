//! [`AwsApi`] and [`AwsMend`] within a budget.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Budgeted;
use crate::{
    Activities, AwsApi, AwsError, AwsMend, Call, FailureKind, Group, GroupName, Instance,
    InstanceId, InstanceTypeFacts, LaunchAsk, LaunchReply, Region, TemplateFacts, TemplateRef,
};

#[async_trait]
impl<A: AwsApi> AwsApi for Budgeted<A> {
    async fn describe_groups(
        &self,
        region: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError> {
        if names.is_empty() {
            // Nothing is sent for nothing.
            return Ok(BTreeMap::new());
        }
        let work = self.inner.describe_groups(region, names);
        self.pay(region, Call::DescribeAutoScalingGroups, work)
            .await
    }

    async fn describe_activities(
        &self,
        region: &Region,
        group: &GroupName,
        since_unix_ms: i64,
    ) -> Result<Activities, AwsError> {
        let work = self.inner.describe_activities(region, group, since_unix_ms);
        self.pay(region, Call::DescribeScalingActivities, work)
            .await
    }

    async fn launch_instances(
        &self,
        region: &Region,
        ask: &LaunchAsk,
    ) -> Result<LaunchReply, AwsError> {
        let call = Call::LaunchInstances;
        let work = self.inner.launch_instances(region, ask);
        let reply = self.pay(region, call, work).await?;
        // What Auto Scaling asks of EC2 in its turn may be throttled there: that is in the reply.
        if reply
            .refused
            .iter()
            .any(|r| r.class.kind == FailureKind::Throttle)
        {
            self.budget.throttled(region, call);
        }
        Ok(reply)
    }

    async fn set_desired_capacity(
        &self,
        region: &Region,
        group: &GroupName,
        desired: u32,
    ) -> Result<(), AwsError> {
        let work = self.inner.set_desired_capacity(region, group, desired);
        self.pay(region, Call::SetDesiredCapacity, work).await
    }

    async fn terminate_with_decrement(
        &self,
        region: &Region,
        instance: &InstanceId,
    ) -> Result<(), AwsError> {
        let work = self.inner.terminate_with_decrement(region, instance);
        self.pay(region, Call::TerminateInstanceInAutoScalingGroup, work)
            .await
    }

    async fn protect_from_scale_in(
        &self,
        region: &Region,
        group: &GroupName,
        instances: &[InstanceId],
    ) -> Result<(), AwsError> {
        if instances.is_empty() {
            return Ok(());
        }
        let work = self.inner.protect_from_scale_in(region, group, instances);
        self.pay(region, Call::SetInstanceProtection, work).await
    }

    async fn suspend_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        let work = self.inner.suspend_launch(region, group);
        self.pay(region, Call::SuspendProcesses, work).await
    }

    async fn resume_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        let work = self.inner.resume_launch(region, group);
        self.pay(region, Call::ResumeProcesses, work).await
    }

    async fn tag_group(
        &self,
        region: &Region,
        group: &GroupName,
        key: &str,
        value: &str,
    ) -> Result<(), AwsError> {
        let work = self.inner.tag_group(region, group, key, value);
        self.pay(region, Call::CreateOrUpdateTags, work).await
    }

    async fn describe_instances(
        &self,
        region: &Region,
        instances: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
        if instances.is_empty() {
            return Ok(BTreeMap::new());
        }
        let work = self.inner.describe_instances(region, instances);
        self.pay(region, Call::DescribeInstances, work).await
    }

    async fn describe_instance_types(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
        if types.is_empty() {
            return Ok(BTreeMap::new());
        }
        let work = self.inner.describe_instance_types(region, types);
        self.pay(region, Call::DescribeInstanceTypes, work).await
    }

    async fn describe_template(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        let work = self.inner.describe_template(region, template);
        self.pay(region, Call::DescribeLaunchTemplateVersions, work)
            .await
    }
}

#[async_trait]
impl<A: AwsMend> AwsMend for Budgeted<A> {
    async fn protect_new(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        let work = self.inner.protect_new(region, group);
        self.pay(region, Call::UpdateAutoScalingGroup, work).await
    }

    async fn suspend_own_removals(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let work = self.inner.suspend_own_removals(region, group);
        self.pay(region, Call::SuspendProcesses, work).await
    }

    async fn capacity_rebalance_off(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let work = self.inner.capacity_rebalance_off(region, group);
        self.pay(region, Call::UpdateAutoScalingGroup, work).await
    }
}
