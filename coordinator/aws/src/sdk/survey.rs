//! [`AwsSurvey`] over the SDK.
//!
//! Called through the trait. It only reads; the one call that could change something is sent as a dry run.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_autoscaling::types::Filter;
use aws_sdk_ec2::types::LaunchTemplateSpecification;

use super::fault::{fault, incomplete};
use super::{SdkAws, convert_group, convert_survey as convert};
use crate::{
    AwsError, AwsSurvey, Call, DryRun, FailureKind, Group, GroupName, LifecycleHook, Permission,
    PolicyQuestion, QuotaFact, Refresh, Region, ScalingPolicy, ScheduledAction, TemplateRef,
    WarmPool,
};

mod permission;
mod region;

/// Records a page; AWS's default is 50, its maximum 100.
const PAGE: i32 = 100;
/// The most records of a page of warm instances (AWS's limit).
const WARM_PAGE: i32 = 50;
/// EC2's code in Service Quotas.
const EC2: &str = "ec2";

#[async_trait]
impl AwsSurvey for SdkAws {
    async fn groups_tagged(&self, region: &Region, key: &str) -> Result<Vec<Group>, AwsError> {
        let call = Call::DescribeAutoScalingGroups;
        let clients = self.clients(region).await;
        let mut pages = clients
            .read
            .describe_auto_scaling_groups()
            .filters(Filter::builder().name("tag-key").values(key).build())
            .max_records(PAGE)
            .into_paginator()
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| fault(call, region, e))?;
            for raw in page.auto_scaling_groups.unwrap_or_default() {
                let group = convert_group::group(raw)
                    .map_err(|e| incomplete(call, region, e.to_string()))?;
                found.push(group);
            }
        }
        Ok(found)
    }

    async fn scaling_policies(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        let clients = self.clients(region).await;
        let mut pages = clients
            .read
            .describe_policies()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE)
            .into_paginator()
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| fault(Call::DescribePolicies, region, e))?;
            let policies = page.scaling_policies.unwrap_or_default();
            found.extend(policies.into_iter().map(convert::scaling_policy));
        }
        Ok(found)
    }

    async fn scheduled_actions(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        let clients = self.clients(region).await;
        let mut pages = clients
            .read
            .describe_scheduled_actions()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE)
            .into_paginator()
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| fault(Call::DescribeScheduledActions, region, e))?;
            let actions = page.scheduled_update_group_actions.unwrap_or_default();
            found.extend(actions.into_iter().map(convert::scheduled_action));
        }
        Ok(found)
    }

    async fn instance_refreshes(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        let call = Call::DescribeInstanceRefreshes;
        let clients = self.clients(region).await;
        // AWS lists the newest first and lets one run at a time: the first page has all that are not over.
        let reply = clients
            .read
            .describe_instance_refreshes()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE)
            .send()
            .await
            .map_err(|e| fault(call, region, e))?;
        let mut found = Vec::new();
        let mut over = false;
        for raw in reply.instance_refreshes.unwrap_or_default() {
            let refresh =
                convert::refresh(raw).map_err(|e| incomplete(call, region, e.to_string()))?;
            if refresh.at_work || !over {
                over |= !refresh.at_work;
                found.push(refresh);
            }
        }
        Ok(found)
    }

    async fn lifecycle_hooks(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError> {
        let call = Call::DescribeLifecycleHooks;
        let clients = self.clients(region).await;
        let reply = clients
            .read
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(group.as_str())
            .send()
            .await
            .map_err(|e| fault(call, region, e))?;
        reply
            .lifecycle_hooks
            .unwrap_or_default()
            .into_iter()
            .map(|raw| {
                convert::lifecycle_hook(raw).map_err(|e| incomplete(call, region, e.to_string()))
            })
            .collect()
    }

    async fn warm_pool(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Option<WarmPool>, AwsError> {
        let call = Call::DescribeWarmPool;
        let clients = self.clients(region).await;
        let mut pages = clients
            .read
            .describe_warm_pool()
            .auto_scaling_group_name(group.as_str())
            .max_records(WARM_PAGE)
            .into_paginator()
            .send();
        let mut pool: Option<WarmPool> = None;
        let mut members = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| fault(call, region, e))?;
            pool = pool.or(page.warm_pool_configuration.map(convert::warm_pool));
            for raw in page.instances.unwrap_or_default() {
                let member = convert_group::member(group.as_str(), raw)
                    .map_err(|e| incomplete(call, region, e.to_string()))?;
                members.push(member);
            }
        }
        Ok(pool.map(|pool| WarmPool { members, ..pool }))
    }

    async fn caller(&self, region: &Region) -> Result<String, AwsError> {
        let call = Call::GetCallerIdentity;
        let clients = self.clients(region).await;
        let reply = clients
            .sts
            .get_caller_identity()
            .send()
            .await
            .map_err(|e| fault(call, region, e))?;
        reply
            .arn
            .ok_or_else(|| incomplete(call, region, "a caller without an Arn".to_owned()))
    }

    async fn dry_run_launch(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<DryRun, AwsError> {
        let call = Call::RunInstances;
        let clients = self.clients(region).await;
        let spec = LaunchTemplateSpecification::builder().set_version(template.version.clone());
        // AWS takes the id or the name, not both.
        let spec = match (&template.id, &template.name) {
            (Some(id), _) => spec.launch_template_id(id),
            (None, name) => spec.set_launch_template_name(name.clone()),
        };
        let answer = clients
            .ec2
            .run_instances()
            .dry_run(true)
            .launch_template(spec.build())
            .min_count(1)
            .max_count(1)
            .send()
            .await;
        let error = match answer {
            Ok(_) => return Ok(DryRun::Allowed),
            Err(error) => fault(call, region, error),
        };
        match (error.kind, error.code.as_deref()) {
            // What EC2 says instead of launching.
            (_, Some("DryRunOperation")) => Ok(DryRun::Allowed),
            _ if error.is_credentials() => Err(error),
            (FailureKind::Permission, _) => Ok(DryRun::Denied(error.message)),
            (FailureKind::Throttle | FailureKind::Transient | FailureKind::UnparsableReply, _) => {
                Err(error)
            }
            (_, code) => Ok(DryRun::Wrong(format!(
                "{}: {}",
                code.unwrap_or_default(),
                error.message
            ))),
        }
    }

    async fn simulate_policy(
        &self,
        region: &Region,
        caller: &str,
        question: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError> {
        permission::simulate(&self.clients(region).await.iam, region, caller, question).await
    }

    async fn ec2_quotas(&self, region: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        let clients = self.clients(region).await;
        let mut pages = clients
            .quotas
            .list_service_quotas()
            .service_code(EC2)
            .max_results(PAGE)
            .into_paginator()
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| fault(Call::ListServiceQuotas, region, e))?;
            let quotas = page.quotas.unwrap_or_default();
            found.extend(quotas.into_iter().filter_map(convert::quota));
        }
        Ok(found)
    }

    async fn check_region(&self, region: &Region) -> Result<(), AwsError> {
        region::check(self, region).await
    }
}
