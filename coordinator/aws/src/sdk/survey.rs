//! [`AwsSurvey`] over the SDK.
//!
//! Called through the trait. It only reads; the one call that could change something is sent as a dry run.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_autoscaling::types::Filter;
use aws_sdk_ec2::types::LaunchTemplateSpecification;

use super::turn::each_page;
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
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeAutoScalingGroups);
        let request = clients
            .autoscaling
            .describe_auto_scaling_groups()
            .filters(Filter::builder().name("tag-key").values(key).build())
            .max_records(PAGE);
        let mut found = Vec::new();
        each_page!(turn, request, page => {
            for raw in page.auto_scaling_groups.unwrap_or_default() {
                let group = convert_group::group(raw)
                    .map_err(|e| turn.lacks(e))?;
                found.push(group);
            }
        });
        Ok(found)
    }

    async fn scaling_policies(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribePolicies);
        let request = clients
            .autoscaling
            .describe_policies()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE);
        let mut found = Vec::new();
        each_page!(turn, request, page => {
            let policies = page.scaling_policies.unwrap_or_default();
            found.extend(policies.into_iter().map(convert::scaling_policy));
        });
        Ok(found)
    }

    async fn scheduled_actions(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeScheduledActions);
        let request = clients
            .autoscaling
            .describe_scheduled_actions()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE);
        let mut found = Vec::new();
        each_page!(turn, request, page => {
            let actions = page.scheduled_update_group_actions.unwrap_or_default();
            found.extend(actions.into_iter().map(convert::scheduled_action));
        });
        Ok(found)
    }

    async fn instance_refreshes(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeInstanceRefreshes);
        // AWS lists the newest first and lets one run at a time: the first page has all that are not over.
        let request = clients
            .autoscaling
            .describe_instance_refreshes()
            .auto_scaling_group_name(group.as_str())
            .max_records(PAGE);
        let reply = turn.read(|| request.clone().send()).await?;
        let mut found = Vec::new();
        let mut over = false;
        for raw in reply.instance_refreshes.unwrap_or_default() {
            let refresh = convert::refresh(raw).map_err(|e| turn.lacks(e))?;
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
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeLifecycleHooks);
        let request = clients
            .autoscaling
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(group.as_str());
        let reply = turn.read(|| request.clone().send()).await?;
        reply
            .lifecycle_hooks
            .unwrap_or_default()
            .into_iter()
            .map(|raw| convert::lifecycle_hook(raw).map_err(|e| turn.lacks(e)))
            .collect()
    }

    async fn warm_pool(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<Option<WarmPool>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeWarmPool);
        let request = clients
            .autoscaling
            .describe_warm_pool()
            .auto_scaling_group_name(group.as_str())
            .max_records(WARM_PAGE);
        let mut pool: Option<WarmPool> = None;
        let mut members = Vec::new();
        each_page!(turn, request, page => {
            pool = pool.or(page.warm_pool_configuration.map(convert::warm_pool));
            for raw in page.instances.unwrap_or_default() {
                let member = convert_group::member(group.as_str(), raw)
                    .map_err(|e| turn.lacks(e))?;
                members.push(member);
            }
        });
        Ok(pool.map(|pool| WarmPool { members, ..pool }))
    }

    async fn caller(&self, region: &Region) -> Result<String, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::GetCallerIdentity);
        let request = clients.sts.get_caller_identity();
        let reply = turn.read(|| request.clone().send()).await?;
        reply
            .arn
            .ok_or_else(|| turn.lacks("a caller without an Arn"))
    }

    async fn dry_run_launch(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<DryRun, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::RunInstances);
        let spec = LaunchTemplateSpecification::builder().set_version(template.version.clone());
        // AWS takes the id or the name, not both.
        let spec = match (&template.id, &template.name) {
            (Some(id), _) => spec.launch_template_id(id),
            (None, name) => spec.set_launch_template_name(name.clone()),
        };
        let request = clients
            .ec2
            .run_instances()
            .dry_run(true)
            .launch_template(spec.build())
            .min_count(1)
            .max_count(1);
        // Once: to EC2 even the good answer is an error.
        let error = match turn.once(request.send()).await {
            Ok(_) => return Ok(DryRun::Allowed),
            Err(error) => error,
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
        permission::simulate(self, region, caller, question).await
    }

    async fn ec2_quotas(&self, region: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::ListServiceQuotas);
        let request = clients
            .quotas
            .list_service_quotas()
            .service_code(EC2)
            .max_results(PAGE);
        let mut found = Vec::new();
        each_page!(turn, request, page => {
            let quotas = page.quotas.unwrap_or_default();
            found.extend(quotas.into_iter().filter_map(convert::quota));
        });
        Ok(found)
    }

    async fn check_region(&self, region: &Region) -> Result<(), AwsError> {
        region::check(self, region).await
    }
}
