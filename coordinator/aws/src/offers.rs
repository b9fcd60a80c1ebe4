//! What AWS offers and what was paid for already: spot prices, reservations, capacity blocks, zones of a type.
//!
//! Implemented by `SdkAws` and by the fakes of tests; called by the `asg` adapter, at stated ages. It only reads.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::{AwsError, Region, Reservation, ReservationId, SpotPrice};

/// Offers of a region.
#[async_trait]
pub trait AwsOffers: Send + Sync {
    /// DescribeSpotPriceHistory for Linux, the present price of each of these types in each zone of the region.
    async fn spot_prices(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<Vec<SpotPrice>, AwsError>;

    /// DescribeInstanceTypeOfferings by zone: the zones where each type exists at all. A type that exists nowhere in the
    /// region is absent.
    async fn zones_of(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError>;

    /// DescribeCapacityReservations by id, or all that are active or scheduled when `ids` is empty; capacity blocks are
    /// among them. An unknown id is absent from the answer.
    async fn reservations(
        &self,
        region: &Region,
        ids: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError>;
}
