//! [`AwsSurvey`] within a budget.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::Budgeted;
use crate::{
    AwsError, AwsSurvey, Call, DryRun, Group, GroupName, LifecycleHook, Permission, PolicyQuestion,
    QuotaFact, Refresh, Region, ScalingPolicy, ScheduledAction, TemplateRef, WarmPool,
};

#[async_trait]
impl<A: AwsSurvey> AwsSurvey for Budgeted<A> {
    async fn groups_tagged(&self, region: &Region, key: &str) -> Result<Vec<Group>, AwsError> {
        let work = self.inner.groups_tagged(region, key);
        self.pay(region, Call::DescribeAutoScalingGroups, work)
            .await
    }

    async fn scaling_policies(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        let work = self.inner.scaling_policies(region, group);
        self.pay(region, Call::DescribePolicies, work).await
    }

    async fn scheduled_actions(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        let work = self.inner.scheduled_actions(region, group);
        self.pay(region, Call::DescribeScheduledActions, work).await
    }

    async fn instance_refreshes(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        let work = self.inner.instance_refreshes(region, group);
        self.pay(region, Call::DescribeInstanceRefreshes, work)
            .await
    }

    async fn lifecycle_hooks(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError> {
        let work = self.inner.lifecycle_hooks(region, group);
        self.pay(region, Call::DescribeLifecycleHooks, work).await
    }

    async fn warm_pool(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Option<WarmPool>, AwsError> {
        let work = self.inner.warm_pool(region, group);
        self.pay(region, Call::DescribeWarmPool, work).await
    }

    async fn caller(&self, region: &Region) -> Result<String, AwsError> {
        let work = self.inner.caller(region);
        self.pay(region, Call::GetCallerIdentity, work).await
    }

    async fn dry_run_launch(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<DryRun, AwsError> {
        let work = self.inner.dry_run_launch(region, template);
        self.pay(region, Call::RunInstances, work).await
    }

    async fn simulate_policy(
        &self,
        region: &Region,
        caller: &str,
        question: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError> {
        let work = self.inner.simulate_policy(region, caller, question);
        self.pay(region, Call::SimulatePrincipalPolicy, work).await
    }

    async fn ec2_quotas(&self, region: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        let work = self.inner.ec2_quotas(region);
        self.pay(region, Call::ListServiceQuotas, work).await
    }

    async fn check_region(&self, region: &Region) -> Result<(), AwsError> {
        let work = self.inner.check_region(region);
        self.pay(region, Call::DescribeRegions, work).await
    }
}
