//! [`AwsMend`] over the SDK: one attempt each.
//!
//! Called through the trait. It can switch on what protects and off what ends members, and nothing else.

use async_trait::async_trait;
use aws_sdk_autoscaling::operation::update_auto_scaling_group::builders::UpdateAutoScalingGroupFluentBuilder as Update;

use super::SdkAws;
use crate::{AwsError, AwsMend, Call, GroupName, Region};

/// The two processes by which AWS ends members of its own accord.
const OWN_REMOVALS: [&str; 2] = ["AZRebalance", "ReplaceUnhealthy"];

#[async_trait]
impl AwsMend for SdkAws {
    async fn protect_new(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        let protect = |update: Update| update.new_instances_protected_from_scale_in(true);
        self.update(region, group, protect).await
    }

    async fn suspend_own_removals(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        let request = clients
            .autoscaling
            .suspend_processes()
            .auto_scaling_group_name(group.as_str())
            .set_scaling_processes(Some(OWN_REMOVALS.map(str::to_owned).to_vec()));
        self.turn(region, Call::SuspendProcesses)
            .once(request.send())
            .await?;
        Ok(())
    }

    async fn capacity_rebalance_off(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let off = |update: Update| update.capacity_rebalance(false);
        self.update(region, group, off).await
    }
}

impl SdkAws {
    /// UpdateAutoScalingGroup with one change.
    async fn update(
        &self,
        region: &Region,
        group: &GroupName,
        change: impl FnOnce(Update) -> Update + Send,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        let update = clients
            .autoscaling
            .update_auto_scaling_group()
            .auto_scaling_group_name(group.as_str());
        self.turn(region, Call::UpdateAutoScalingGroup)
            .once(change(update).send())
            .await?;
        Ok(())
    }
}
