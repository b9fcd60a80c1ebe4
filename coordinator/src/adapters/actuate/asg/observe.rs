//! Reads pools: one batch of describes per region, each region for itself.
//!
//! Called through the port. It changes nothing in AWS.

use std::collections::BTreeMap;
use std::time::Duration;

use drover_aws::{Activities, AwsApi, Group, Region, within};
use drover_core::model::{FailureKind, Millis, PoolId};
use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use futures::stream;

use super::reading::{self, Read};
use super::{AsgActuator, AsgPool, convert, template};
use crate::ports::actuate::{ActuateError, NO_SUCH_GROUP, PoolReading};

/// Longest time for one region, unless told otherwise: two attempts of a call.
pub(super) const REGION_DEADLINE: Duration = Duration::from_secs(10);
/// Groups of one region whose activities and types are read at once.
const AT_ONCE: usize = 8;
/// Without anything missing, activities are read this often: they also tell what AWS does by itself.
const ACTIVITIES_EVERY: Millis = Millis::minutes(1);
/// So old, they are waited for.
const ACTIVITIES_OVERDUE: Millis = Millis::minutes(3);
/// How far back the first reading looks. Older failures are in the capacity memory.
const FIRST_LOOK: Millis = Millis::minutes(5);

type Outcome = Result<PoolReading, ActuateError>;

impl<A: AwsApi> AsgActuator<A> {
    pub(super) async fn read_pools(&self, pools: &[PoolId]) -> Vec<(PoolId, Outcome)> {
        let mut regions: BTreeMap<Region, Vec<&AsgPool>> = BTreeMap::new();
        for pool in pools.iter().filter_map(|id| self.pools.get(id)) {
            regions.entry(pool.region.clone()).or_default().push(pool);
        }
        let mut reads: Vec<BoxFuture<'_, Vec<(PoolId, Outcome)>>> = Vec::new();
        for (region, pools) in regions {
            reads.push(Box::pin(self.read_region_in_time(region, pools)));
        }
        let mut found: BTreeMap<PoolId, Outcome> =
            join_all(reads).await.into_iter().flatten().collect();
        pools
            .iter()
            .map(|id| {
                let nobodys = || {
                    Err(convert::refused(
                        FailureKind::Config,
                        "",
                        format!("{id} is no asg pool"),
                    ))
                };
                (id.clone(), found.remove(id).unwrap_or_else(nobodys))
            })
            .collect()
    }

    async fn read_region_in_time(
        &self,
        region: Region,
        pools: Vec<&AsgPool>,
    ) -> Vec<(PoolId, Outcome)> {
        let ids: Vec<PoolId> = pools.iter().map(|p| p.pool.clone()).collect();
        // A call that gets no token in half of the time is left out of this reading: the rest must not be lost for it.
        let read = within(self.read_deadline / 2, self.read_region(&region, pools));
        match tokio::time::timeout(self.read_deadline, read).await {
            Ok(read) => read,
            Err(_) => {
                let text = format!(
                    "{region} did not answer within {} s",
                    self.read_deadline.as_secs()
                );
                let late = convert::refused(FailureKind::Transient, "", text);
                ids.into_iter().map(|id| (id, Err(late.clone()))).collect()
            }
        }
    }

    async fn read_region(&self, region: &Region, pools: Vec<&AsgPool>) -> Vec<(PoolId, Outcome)> {
        let names: Vec<_> = pools.iter().map(|p| p.group.clone()).collect();
        let groups = match self.api.describe_groups(region, &names).await {
            Ok(groups) => groups,
            Err(error) => {
                let failed = convert::failed(&error);
                return pools
                    .into_iter()
                    .map(|p| (p.pool.clone(), Err(failed.clone())))
                    .collect();
            }
        };
        self.look_at_instances(region, &pools, &groups).await;
        let mut reads: Vec<BoxFuture<'_, (PoolId, Outcome)>> = Vec::new();
        for pool in pools {
            reads.push(Box::pin(self.read_one(pool, groups.get(&pool.group))));
        }
        stream::iter(reads)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    async fn read_one(&self, pool: &AsgPool, group: Option<&Group>) -> (PoolId, Outcome) {
        let outcome = match group {
            Some(group) => Ok(self.read_group(pool, group).await),
            None => Err(missing(pool)),
        };
        (pool.pool.clone(), outcome)
    }

    async fn read_group(&self, pool: &AsgPool, group: &Group) -> PoolReading {
        let mut troubles = Vec::new();
        let mono = self.clock.mono();
        let read = template::facts(&self.catalogue, &self.api, pool, group, mono);
        let facts = read.await.unwrap_or_else(|error| {
            troubles.push(format!("what the group launches cannot be read: {error}"));
            Default::default()
        });
        let types: Vec<String> = facts.types.iter().map(|t| t.name.clone()).collect();
        let quotes = self
            .market
            .quotes(
                self.offers.as_deref(),
                &pool.region,
                &types,
                facts.spot,
                mono,
            )
            .await;
        let paid = self
            .treasury
            .paid(
                self.offers.as_deref(),
                self.survey.as_deref(),
                &pool.region,
                group,
                mono,
            )
            .await;
        let activities = self.new_activities(pool, group, &mut troubles).await;
        let now = self.clock.wall();
        let mut seen = self.memory(pool).seen();
        let (mut reading, zones) = reading::reading(&Read {
            pool,
            owner: &self.owner,
            group,
            facts: &facts,
            quotes: &quotes,
            paid: &paid,
            activities: &activities,
            known: &seen.instances,
            no_launch: seen.no_launch(self.clock.mono()),
            now,
        });
        seen.zones.extend(zones);
        seen.misshapen = reading::no_launch_instances(group).is_some();
        let ended = std::mem::take(&mut seen.ended);
        reading
            .failures
            .extend(reading::ends(&ended, &reading.offerings));
        reading.remarks.extend(quotes.troubles);
        reading.warnings.extend(troubles);
        reading
    }

    /// Activities since the last look; none when it is not time for one.
    async fn new_activities(
        &self,
        pool: &AsgPool,
        group: &Group,
        troubles: &mut Vec<String>,
    ) -> Activities {
        let now = self.clock.mono();
        let last = self.memory(pool).seen().activities;
        let due =
            group.coming() > 0 || last.is_none_or(|(at, _)| now.minus(at) >= ACTIVITIES_EVERY);
        if !due {
            return Activities::default();
        }
        let first = self.clock.wall().0.saturating_sub(FIRST_LOOK.0);
        let since = last.map_or(i64::try_from(first).unwrap_or(0), |(_, since)| since);
        // Where nothing is missing they wait for no token: many groups are then read in turn, over the cycles of a minute.
        let calm =
            group.coming() == 0 && last.is_none_or(|(at, _)| now.minus(at) < ACTIVITIES_OVERDUE);
        let ask = self
            .api
            .describe_activities(&pool.region, &pool.group, since);
        let asked = if calm {
            within(Duration::ZERO, ask).await
        } else {
            ask.await
        };
        match asked {
            Ok(found) => {
                if !found.complete {
                    troubles.push(
                        "more activities than are read in one go: some failures may be missing"
                            .to_owned(),
                    );
                }
                // From the oldest that is still at work: its end is still to be seen. Repetitions are told by id.
                let open = found
                    .items
                    .iter()
                    .filter(|a| matches!(a.status, drover_aws::ActivityStatus::Running(_)));
                let oldest_open = open.filter_map(|a| a.started_unix_ms).min();
                let newest = found.items.iter().filter_map(|a| a.started_unix_ms).max();
                let next = oldest_open.or(newest).map_or(since, |at| at.max(since));
                self.memory(pool).seen().activities = Some((now, next));
                found
            }
            Err(error) if calm && error.was_held_back() => Activities::default(),
            Err(error) => {
                troubles.push(format!("activities cannot be read: {error}"));
                Activities::default()
            }
        }
    }
}

/// A group that AWS does not know: only when a describe was answered, and the answer lacks it.
pub(super) fn missing(pool: &AsgPool) -> ActuateError {
    let text = format!("there is no group {} in {}", pool.group, pool.region);
    convert::refused(FailureKind::Config, NO_SUCH_GROUP, text)
}
