//! [`AwsMend`] over the SDK: one attempt each.
//!
//! Called through the trait. It can switch on what protects and off what ends members, and nothing else.

use async_trait::async_trait;

use super::SdkAws;
use super::fault::fault;
use crate::{AwsError, AwsMend, Call, GroupName, Region};

/// The two processes by which AWS ends members of its own accord.
const OWN_REMOVALS: [&str; 2] = ["AZRebalance", "ReplaceUnhealthy"];

#[async_trait]
impl AwsMend for SdkAws {
    async fn protect_new(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        clients
            .mutate
            .update_auto_scaling_group()
            .auto_scaling_group_name(group.as_str())
            .new_instances_protected_from_scale_in(true)
            .send()
            .await
            .map_err(|e| fault(Call::UpdateAutoScalingGroup, region, e))?;
        Ok(())
    }

    async fn suspend_own_removals(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        clients
            .mutate
            .suspend_processes()
            .auto_scaling_group_name(group.as_str())
            .set_scaling_processes(Some(OWN_REMOVALS.map(str::to_owned).to_vec()))
            .send()
            .await
            .map_err(|e| fault(Call::SuspendProcesses, region, e))?;
        Ok(())
    }

    async fn capacity_rebalance_off(
        &self,
        region: &Region,
        group: &GroupName,
    ) -> Result<(), AwsError> {
        let clients = self.clients(region).await;
        clients
            .mutate
            .update_auto_scaling_group()
            .auto_scaling_group_name(group.as_str())
            .capacity_rebalance(false)
            .send()
            .await
            .map_err(|e| fault(Call::UpdateAutoScalingGroup, region, e))?;
        Ok(())
    }
}
