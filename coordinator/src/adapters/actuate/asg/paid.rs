//! Capacity that is paid for already: on-demand capacity reservations and capacity blocks of a region, and the warm pools
//! of groups; each with the age that it may have.
//!
//! Called by `observe`; asks AWS through [`AwsOffers`] and [`AwsSurvey`] and waits a moment only: what is not known is
//! absent, and a region is not read late for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drover_aws::{AwsError, AwsOffers, AwsSurvey, Group, GroupName, Region, Reservation, WarmPool};
use drover_core::model::{Millis, UnixMs};

/// How old an answer may become before it is asked for again.
const AGE: Millis = Millis::minutes(1);
/// After a failure nothing is asked again for so long.
const FAILED_AGE: Millis = Millis::minutes(5);
/// For so long after a change of ours an answer may still be that of before, and is asked for in each reading: what was
/// free a moment ago would be taken twice.
const SETTLING: Millis = Millis::seconds(10);
/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// AWS begins to end a capacity block's instances so long before the block's end (EC2 user guide, "Capacity Blocks for
/// ML").
pub(super) const BLOCK_MARGIN: Millis = Millis::minutes(30);

/// When AWS begins to end what runs in this reservation; `None` when it does not: instances outlive an on-demand
/// reservation, at the on-demand price.
pub(super) fn ends(reservation: &Reservation) -> Option<UnixMs> {
    if reservation.kind != drover_aws::ReservationKind::CapacityBlock {
        return None;
    }
    let end = super::convert::unix_ms(reservation.end_unix_ms?)?;
    Some(UnixMs(end.0.saturating_sub(BLOCK_MARGIN.0)))
}

/// One answer, its age, and the last failure.
struct Held<T> {
    found: Option<(Millis, T)>,
    failed: Option<(Millis, String)>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self {
            found: None,
            failed: None,
        }
    }
}

impl<T: Clone> Held<T> {
    async fn get(
        &mut self,
        now: Millis,
        changed: Option<Millis>,
        ask: impl Future<Output = Result<T, AwsError>>,
    ) -> (Option<T>, Option<String>) {
        let fresh = self.found.as_ref().is_some_and(|(at, _)| {
            now.minus(*at) < AGE && changed.is_none_or(|changed| *at >= changed.plus(SETTLING))
        });
        let held = self
            .failed
            .as_ref()
            .is_some_and(|(at, _)| now.minus(*at) < FAILED_AGE);
        if !fresh && !held {
            match tokio::time::timeout(PATIENCE, ask).await {
                Ok(Ok(found)) => {
                    self.found = Some((now, found));
                    self.failed = None;
                }
                Ok(Err(error)) => self.failed = Some((now, error.to_string())),
                Err(_) => {
                    let text = format!("no answer within {} s", PATIENCE.as_secs());
                    self.failed = Some((now, text));
                }
            }
        }
        (
            self.found.as_ref().map(|(_, found)| found.clone()),
            self.failed.as_ref().map(|(_, why)| why.clone()),
        )
    }
}

type Slots<K, T> = Mutex<BTreeMap<K, Arc<tokio::sync::Mutex<Held<T>>>>>;

fn slot<K: Ord, T>(slots: &Slots<K, T>, key: K) -> Arc<tokio::sync::Mutex<Held<T>>> {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    slots.entry(key).or_default().clone()
}

/// What is known for one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paid {
    /// Reservations of the region, active or to come.
    pub(super) reservations: Vec<Reservation>,
    /// The group's warm pool.
    pub(super) warm: Option<WarmPool>,
    /// What could not be read.
    pub(super) troubles: Vec<String>,
}

/// Reservations of all regions and warm pools of all groups.
#[derive(Default)]
pub(super) struct Treasury {
    reservations: Slots<Region, Vec<Reservation>>,
    warm: Slots<(Region, GroupName), Option<WarmPool>>,
    /// When we changed a group last.
    changed: Mutex<BTreeMap<(Region, GroupName), Millis>>,
}

impl Treasury {
    /// A group grew or shrank by us: what it has taken or left is read soon. `now` is monotonic.
    pub(super) fn changed(&self, region: &Region, group: &GroupName, now: Millis) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.insert((region.clone(), group.clone()), now);
    }

    /// When we changed this group last, and any group of its region.
    fn changes(&self, region: &Region, group: &GroupName) -> (Option<Millis>, Option<Millis>) {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let here = changed.iter().filter(|((at, _), _)| at == region);
        (
            changed.get(&(region.clone(), group.clone())).copied(),
            here.map(|(_, at)| *at).max(),
        )
    }

    /// What is known for `group`. `now` is monotonic.
    pub(super) async fn paid(
        &self,
        offers: Option<&dyn AwsOffers>,
        survey: Option<&dyn AwsSurvey>,
        region: &Region,
        group: &Group,
        now: Millis,
    ) -> Paid {
        let mut paid = Paid::default();
        let (own, near) = self.changes(region, &group.name);
        if let Some(offers) = offers {
            let slot = slot(&self.reservations, region.clone());
            let (found, why) = (slot.lock().await)
                .get(now, near, offers.reservations(region, &[]))
                .await;
            paid.reservations = found.unwrap_or_default();
            paid.troubles.extend(why.map(|why| {
                format!("capacity reservations cannot be read, so none is counted on: {why}")
            }));
        }
        if let (Some(survey), Some(_)) = (survey, group.warm_pool_size) {
            let slot = slot(&self.warm, (region.clone(), group.name.clone()));
            let (found, why) = (slot.lock().await)
                .get(now, own, survey.warm_pool(region, &group.name))
                .await;
            paid.warm = found.flatten();
            paid.troubles
                .extend(why.map(|why| format!("the warm pool cannot be read: {why}")));
        }
        paid
    }
}
