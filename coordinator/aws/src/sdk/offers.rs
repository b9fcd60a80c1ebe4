//! [`AwsOffers`] over the SDK: spot prices, zones of types, capacity reservations.
//!
//! Called through the trait. It only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use async_trait::async_trait;
use aws_sdk_ec2::types::{Filter, InstanceType, LocationType};

use super::SdkAws;
use super::convert_survey::{reservation, spot_price};
use super::turn::{Turn, each_page};
use crate::{AwsError, AwsOffers, Call, Region, Reservation, ReservationId, SpotPrice};

/// Types of one call: as many values as one EC2 filter takes at most.
const TYPES_AT_ONCE: usize = 200;
/// Records a page (AWS's limit).
const PAGE: i32 = 1000;
/// Reservations of one call by id.
const RESERVATIONS_AT_ONCE: usize = 100;
/// What EC2 calls Linux in spot prices: accounts of EC2-Classic see the first, all others the second.
const LINUX: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

fn filter(name: &str, values: &[String]) -> Filter {
    Filter::builder()
        .name(name)
        .set_values(Some(values.to_vec()))
        .build()
}

#[async_trait]
impl AwsOffers for SdkAws {
    async fn spot_prices(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<Vec<SpotPrice>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeSpotPriceHistory);
        // With the present as start, AWS answers with the price that holds now, one for each type and zone.
        let now = SystemTime::now();
        let mut found: BTreeMap<(String, String), SpotPrice> = BTreeMap::new();
        for some in types.chunks(TYPES_AT_ONCE) {
            let request = clients
                .ec2
                .describe_spot_price_history()
                .set_instance_types(Some(
                    some.iter()
                        .map(|t| InstanceType::from(t.as_str()))
                        .collect(),
                ))
                .set_product_descriptions(Some(LINUX.map(str::to_owned).to_vec()))
                .start_time(now.into())
                .max_results(PAGE);
            each_page!(turn, request, page => {
                for raw in page.spot_price_history.unwrap_or_default() {
                    let price =
                        spot_price(raw).map_err(|e| turn.lacks(e))?;
                    let key = (price.instance_type.clone(), price.zone.clone());
                    let newer = found
                        .get(&key)
                        .is_none_or(|known| known.since_unix_ms < price.since_unix_ms);
                    if newer {
                        found.insert(key, price);
                    }
                }
            });
        }
        Ok(found.into_values().collect())
    }

    async fn zones_of(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError> {
        let clients = self.clients(region).await;
        let mut turn = self.turn(region, Call::DescribeInstanceTypeOfferings);
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for some in types.chunks(TYPES_AT_ONCE) {
            let request = clients
                .ec2
                .describe_instance_type_offerings()
                .location_type(LocationType::AvailabilityZone)
                .filters(filter("instance-type", some))
                .max_results(PAGE);
            each_page!(turn, request, page => {
                for raw in page.instance_type_offerings.unwrap_or_default() {
                    if let (Some(kind), Some(zone)) = (raw.instance_type, raw.location) {
                        found
                            .entry(kind.as_str().to_owned())
                            .or_default()
                            .insert(zone);
                    }
                }
            });
        }
        Ok(found)
    }

    async fn reservations(
        &self,
        region: &Region,
        ids: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError> {
        let mut turn = self.turn(region, Call::DescribeCapacityReservations);
        if ids.is_empty() {
            let states = ["active".to_owned(), "scheduled".to_owned()];
            return self
                .list_reservations(&mut turn, region, &[], Some(filter("state", &states)))
                .await;
        }
        let mut found = Vec::new();
        for some in ids.chunks(RESERVATIONS_AT_ONCE) {
            match self.list_reservations(&mut turn, region, some, None).await {
                Ok(known) => found.extend(known),
                // One that AWS does not know fails the whole call, and there is no filter by id: all are read.
                Err(e) if e.code.as_deref() == Some("InvalidCapacityReservationId.NotFound") => {
                    let all = self.list_reservations(&mut turn, region, &[], None).await?;
                    found.extend(all.into_iter().filter(|r| some.contains(&r.id)));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(found)
    }
}

impl SdkAws {
    async fn list_reservations(
        &self,
        turn: &mut Turn<'_>,
        region: &Region,
        ids: &[ReservationId],
        only: Option<Filter>,
    ) -> Result<Vec<Reservation>, AwsError> {
        let clients = self.clients(region).await;
        let by_id: Vec<String> = ids.iter().map(|id| id.as_str().to_owned()).collect();
        // AWS refuses a page size beside ids.
        let page_size = by_id.is_empty().then_some(PAGE);
        let request = clients
            .ec2
            .describe_capacity_reservations()
            .set_capacity_reservation_ids((!by_id.is_empty()).then_some(by_id))
            .set_filters(only.map(|f| vec![f]))
            .set_max_results(page_size);
        let mut found = Vec::new();
        each_page!(turn, request, page => {
            for raw in page.capacity_reservations.unwrap_or_default() {
                found.push(reservation(raw).map_err(|e| turn.lacks(e))?);
            }
        });
        Ok(found)
    }
}
