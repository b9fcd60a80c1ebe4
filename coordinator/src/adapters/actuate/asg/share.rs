//! Whether another coordinator drives our groups by the same store: looked at once, at the start, before anything is done.
//!
//! Called by `app` through [`AsgActuator::refuse_to_share`]. It changes nothing. A region that does not answer is no
//! reason not to start: the tag is read again before every change.

use std::collections::BTreeMap;

use drover_aws::{AwsApi, Region};
use futures::future::join_all;

use super::owner::OWNER_TAG;
use super::{AsgActuator, AsgPool};

impl<A: AwsApi> AsgActuator<A> {
    /// `copied`: the store is a copy of the one that it was made in.
    ///
    /// # Errors
    /// Why this coordinator must not start, with the way out.
    pub async fn refuse_to_share(&self, copied: bool) -> Result<(), String> {
        let mut regions: BTreeMap<&Region, Vec<&AsgPool>> = BTreeMap::new();
        for pool in self.pools.values() {
            regions.entry(&pool.region).or_default().push(pool);
        }
        let looks = regions
            .into_iter()
            .map(|(region, pools)| self.look_for_others(region, pools, copied));
        join_all(looks).await.into_iter().collect()
    }

    async fn look_for_others(
        &self,
        region: &Region,
        pools: Vec<&AsgPool>,
        copied: bool,
    ) -> Result<(), String> {
        let names: Vec<_> = pools.iter().map(|pool| pool.group.clone()).collect();
        let describe = self.api.describe_groups(region, &names);
        let groups = match tokio::time::timeout(self.read_deadline, describe).await {
            Ok(Ok(groups)) => groups,
            Ok(Err(error)) => {
                tracing::warn!(%region, %error, "owner tags cannot be read at the start");
                return Ok(());
            }
            Err(_) => {
                tracing::warn!(%region, "owner tags cannot be read at the start: no answer");
                return Ok(());
            }
        };
        for pool in pools {
            let tags = groups.get(&pool.group).map(|group| &group.tags);
            if let Some(why) = tags.and_then(|tags| self.owner.shared(tags, copied)) {
                return Err(format!(
                    "pool {}: group {} in {region}: {why}; run one coordinator on a store, never two. If the other is gone \
                     for good, tag the group {OWNER_TAG}=unclaimed and start again",
                    pool.pool, pool.group
                ));
            }
        }
        Ok(())
    }
}
