//! Where a type exists and what it costs on the spot market, each with the age that it may have.
//!
//! Called by `observe` for each group; asks AWS through [`AwsOffers`] at most once per region and age, and waits a moment
//! only: prices and zones are no reason to read a region late. What is not known is absent, and what follows from that is
//! the reading's to say.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drover_aws::{AwsError, AwsOffers, Region};
use drover_core::model::{MicroUsd, Millis};

/// How old a spot price may become before it is asked for again.
pub(super) const SPOT_AGE: Millis = Millis::minutes(10);
/// How old one may become that cannot be asked for again.
const SPOT_LAST: Millis = Millis::minutes(60);
/// How long it is known in which zones a type exists.
const ZONES_AGE: Millis = Millis::minutes(24 * 60);
/// After a failure nothing is asked of the region for so long.
const FAILED_AGE: Millis = Millis::minutes(1);
/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// By type and zone.
type SpotPrices = BTreeMap<String, BTreeMap<String, MicroUsd>>;

/// What is known for one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Quotes {
    /// Spot prices.
    pub(super) spot: SpotPrices,
    /// Zones where a type exists; a type that is absent here may exist anywhere.
    pub(super) zones: BTreeMap<String, BTreeSet<String>>,
    /// What could not be read.
    pub(super) troubles: Vec<String>,
}

/// What was learnt of a region.
#[derive(Default)]
struct Learnt {
    spot: BTreeMap<String, (Millis, BTreeMap<String, MicroUsd>)>,
    zones: BTreeMap<String, (Millis, BTreeSet<String>)>,
    spot_failed: Option<(Millis, String)>,
    zones_failed: Option<(Millis, String)>,
}

/// Quotes of all regions.
#[derive(Default)]
pub(super) struct Market {
    regions: Mutex<BTreeMap<Region, Arc<tokio::sync::Mutex<Learnt>>>>,
}

fn stale<T>(
    known: &BTreeMap<String, (Millis, T)>,
    types: &[String],
    age: Millis,
    now: Millis,
) -> Vec<String> {
    let fresh = |name: &&String| known.get(*name).is_some_and(|(at, _)| now.minus(*at) < age);
    types.iter().filter(|t| !fresh(t)).cloned().collect()
}

fn held(failed: Option<&(Millis, String)>, now: Millis) -> bool {
    failed.is_some_and(|(at, _)| now.minus(*at) < FAILED_AGE)
}

async fn in_time<T>(call: impl Future<Output = Result<T, AwsError>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

impl Market {
    /// What is known of these types in this region; spot prices only where they count. `now` is monotonic.
    pub(super) async fn quotes(
        &self,
        offers: Option<&dyn AwsOffers>,
        region: &Region,
        types: &[String],
        spot: bool,
        now: Millis,
    ) -> Quotes {
        let Some(offers) = offers else {
            return Quotes::default();
        };
        let learnt = {
            let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
            regions.entry(region.clone()).or_default().clone()
        };
        // One group of a region asks; the others find what it learnt.
        let mut learnt = learnt.lock().await;
        let mut quotes = Quotes::default();
        let asked = stale(&learnt.zones, types, ZONES_AGE, now);
        if !asked.is_empty() && !held(learnt.zones_failed.as_ref(), now) {
            match in_time(offers.zones_of(region, &asked)).await {
                Ok(mut found) => {
                    learnt.zones_failed = None;
                    for name in asked {
                        let zones = found.remove(&name).unwrap_or_default();
                        learnt.zones.insert(name, (now, zones));
                    }
                }
                Err(why) => learnt.zones_failed = Some((now, why)),
            }
        }
        for name in types {
            // What was known once stays true: types do not leave zones by the day.
            if let Some((_, zones)) = learnt.zones.get(name) {
                quotes.zones.insert(name.clone(), zones.clone());
            }
        }
        if let Some((_, why)) = &learnt.zones_failed
            && quotes.zones.len() < types.len()
        {
            quotes.troubles.push(format!(
                "in which zones the group's types exist cannot be read, so each is taken for a zone of theirs: {why}"
            ));
        }
        if spot {
            learn_spot(&mut learnt, offers, region, types, now).await;
            for name in types {
                if let Some((at, prices)) = learnt.spot.get(name)
                    && now.minus(*at) < SPOT_LAST
                {
                    quotes.spot.insert(name.clone(), prices.clone());
                }
            }
            if let Some((_, why)) = &learnt.spot_failed {
                quotes
                    .troubles
                    .push(format!("spot prices cannot be read: {why}"));
            }
        }
        quotes
    }
}

async fn learn_spot(
    learnt: &mut Learnt,
    offers: &dyn AwsOffers,
    region: &Region,
    types: &[String],
    now: Millis,
) {
    let asked = stale(&learnt.spot, types, SPOT_AGE, now);
    if asked.is_empty() || held(learnt.spot_failed.as_ref(), now) {
        return;
    }
    match in_time(offers.spot_prices(region, &asked)).await {
        Ok(found) => {
            learnt.spot_failed = None;
            let mut by_type: SpotPrices = asked.into_iter().map(|t| (t, BTreeMap::new())).collect();
            for price in found {
                if let Some(zones) = by_type.get_mut(&price.instance_type)
                    && price.micro_usd_per_hour > 0
                {
                    zones.insert(price.zone, MicroUsd(price.micro_usd_per_hour));
                }
            }
            for (name, zones) in by_type {
                learnt.spot.insert(name, (now, zones));
            }
        }
        Err(why) => learnt.spot_failed = Some((now, why)),
    }
}
