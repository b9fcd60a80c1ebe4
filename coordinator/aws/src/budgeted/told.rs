//! [`AwsOffers`] and [`AwsEvents`] within a budget.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::Budgeted;
use crate::{
    AwsError, AwsEvents, AwsOffers, Call, GroupName, HookAnswer, InstanceId, QueueMessage, Region,
    Reservation, ReservationId, SpotPrice,
};

#[async_trait]
impl<A: AwsOffers> AwsOffers for Budgeted<A> {
    async fn spot_prices(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<Vec<SpotPrice>, AwsError> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let work = self.inner.spot_prices(region, types);
        self.pay(region, Call::DescribeSpotPriceHistory, work).await
    }

    async fn zones_of(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError> {
        if types.is_empty() {
            return Ok(BTreeMap::new());
        }
        let work = self.inner.zones_of(region, types);
        self.pay(region, Call::DescribeInstanceTypeOfferings, work)
            .await
    }

    async fn reservations(
        &self,
        region: &Region,
        ids: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError> {
        let work = self.inner.reservations(region, ids);
        self.pay(region, Call::DescribeCapacityReservations, work)
            .await
    }
}

#[async_trait]
impl<A: AwsEvents> AwsEvents for Budgeted<A> {
    async fn receive(
        &self,
        region: &Region,
        queue_url: &str,
        wait_seconds: u32,
    ) -> Result<Vec<QueueMessage>, AwsError> {
        let work = self.inner.receive(region, queue_url, wait_seconds);
        self.pay(region, Call::ReceiveMessage, work).await
    }

    async fn delete(
        &self,
        region: &Region,
        queue_url: &str,
        receipts: &[String],
    ) -> Result<(), AwsError> {
        if receipts.is_empty() {
            return Ok(());
        }
        let work = self.inner.delete(region, queue_url, receipts);
        self.pay(region, Call::DeleteMessageBatch, work).await
    }

    async fn heartbeat(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<(), AwsError> {
        let work = self.inner.heartbeat(region, group, hook, instance);
        self.pay(region, Call::RecordLifecycleActionHeartbeat, work)
            .await
    }

    async fn complete(
        &self,
        region: &Region,
        group: &GroupName,
        hook: &str,
        instance: &InstanceId,
        answer: HookAnswer,
    ) -> Result<(), AwsError> {
        let work = self.inner.complete(region, group, hook, instance, answer);
        self.pay(region, Call::CompleteLifecycleAction, work).await
    }
}
