//! Pools that are EC2 Auto Scaling groups, driven as the house plan's section on them says.
//!
//! Made by `app` with an [`AwsApi`]; called by `control` through [`Actuator`]. Growing is LaunchInstances, or
//! SetDesiredCapacity where that cannot be used; leaving is TerminateInstanceInAutoScalingGroup by id with decrement.
//! The desired capacity is lowered in one other way only, by giving back what was never filled (`withdraw`); scale-in
//! protection is never taken off, and no group is changed that does not carry our owner tag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use drover_aws::{AwsApi, AwsOffers, AwsSurvey, GroupName, Region};
use drover_core::model::{FailureKind, InstanceId, MicroUsd, PoolId, PoolKind, UnixMs};

use crate::config::{PoolConfig, PoolSource};
use crate::ports::actuate::{
    ActuateError, Actuator, LaunchOrder, LaunchOutcome, PoolReading, Withdrawal,
};
use crate::ports::clock::Clock;
use crate::ports::hooks::Hook;

mod again;
mod beside;
pub mod calls;
mod catalogue;
mod convert;
mod desired;
mod discover;
mod doctor;
mod grow;
mod hooks;
mod journal;
mod launch;
mod leave;
mod look;
mod memory;
mod observe;
mod owner;
mod paid;
mod prepare;
mod quotes;
mod reading;
mod settle;
mod share;
mod tags;
mod template;
#[cfg(test)]
mod tests;
mod withdraw;

pub use discover::{Discovery, Found, POOL_TAG};
pub use doctor::Doctor;
pub use owner::{BadOwner, FREEZE_TAG, OWNER_TAG, Owner, UNCLAIMED};

/// A pool and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsgPool {
    /// The pool.
    pub pool: PoolId,
    /// Where its group lives.
    pub region: Region,
    /// Its group.
    pub group: GroupName,
    /// USD per hour by instance type, before the compiled-in prices.
    pub prices: BTreeMap<String, MicroUsd>,
    /// The only zones that are asked, the most liked first; empty: all of the group's.
    pub zones: Vec<String>,
    /// The types of the group that are planned with; empty: all of them.
    pub instance_types: Vec<String>,
}

impl AsgPool {
    /// From the config; nothing for pools of another kind.
    #[must_use]
    pub fn of(config: &PoolConfig) -> Option<Self> {
        let PoolSource::Asg(asg) = &config.source else {
            return None;
        };
        let region = Region::new(asg.region.clone());
        Some(Self {
            pool: config.name.clone(),
            region: match &asg.role_arn {
                Some(role) => region.with_role(role.clone()),
                None => region,
            },
            group: GroupName::new(asg.group.clone()),
            prices: config.prices.clone(),
            zones: asg.zones.clone(),
            instance_types: asg.instance_types.clone(),
        })
    }
}

/// What is remembered of groups and types in this process; it outlives a reload of the config.
#[derive(Default)]
pub struct Memories {
    groups: BTreeMap<(Region, GroupName), Arc<memory::PoolMemory>>,
    catalogue: Arc<catalogue::Catalogue>,
    market: Arc<quotes::Market>,
    treasury: Arc<paid::Treasury>,
}

/// The adapter.
pub struct AsgActuator<A> {
    api: A,
    owner: Owner,
    pools: BTreeMap<PoolId, AsgPool>,
    memories: BTreeMap<PoolId, Arc<memory::PoolMemory>>,
    catalogue: Arc<catalogue::Catalogue>,
    offers: Option<Arc<dyn AwsOffers>>,
    survey: Option<Arc<dyn AwsSurvey>>,
    market: Arc<quotes::Market>,
    treasury: Arc<paid::Treasury>,
    clock: Arc<dyn Clock>,
    pause: Duration,
    read_deadline: Duration,
    hooks: Option<hooks::Hooks>,
}

impl<A: AwsApi> AsgActuator<A> {
    /// The adapter for these pools.
    pub fn new(
        api: A,
        owner: Owner,
        pools: impl IntoIterator<Item = AsgPool>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let pools: BTreeMap<PoolId, AsgPool> =
            pools.into_iter().map(|p| (p.pool.clone(), p)).collect();
        let adapter = Self {
            api,
            owner,
            pools,
            memories: BTreeMap::new(),
            catalogue: Arc::default(),
            offers: None,
            survey: None,
            market: Arc::default(),
            treasury: Arc::default(),
            clock,
            pause: again::PAUSE,
            read_deadline: observe::REGION_DEADLINE,
            hooks: None,
        };
        adapter.with_memories(&mut Memories::default())
    }

    /// The same with what an adapter before it remembers of the groups that both drive: a group is changed by one call at
    /// a time, whoever makes it.
    #[must_use]
    pub fn with_memories(mut self, kept: &mut Memories) -> Self {
        let mut of = |pool: &AsgPool| {
            let group = (pool.region.clone(), pool.group.clone());
            kept.groups.entry(group).or_default().clone()
        };
        self.catalogue = kept.catalogue.clone();
        self.market = kept.market.clone();
        self.treasury = kept.treasury.clone();
        self.memories = self
            .pools
            .iter()
            .map(|(id, pool)| (id.clone(), of(pool)))
            .collect();
        self
    }

    /// The same with AWS's own word on spot prices and on the zones of types. Without it spot groups need prices in the
    /// config, and every zone of a group counts as one of its types.
    #[must_use]
    pub fn with_offers(mut self, offers: Arc<dyn AwsOffers>) -> Self {
        self.offers = Some(offers);
        self
    }

    /// The same with AWS's own word on warm pools. Without it their instances are not known.
    #[must_use]
    pub fn with_survey(mut self, survey: Arc<dyn AwsSurvey>) -> Self {
        self.survey = Some(survey);
        self
    }

    /// The same with another pause before a call is repeated; it doubles each time.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The same with another deadline for reading a region.
    #[must_use]
    pub fn with_read_deadline(mut self, deadline: Duration) -> Self {
        self.read_deadline = deadline;
        self
    }

    fn memory(&self, pool: &AsgPool) -> &memory::PoolMemory {
        // Made together with the pools.
        &self.memories[&pool.pool]
    }

    fn pool(&self, id: &PoolId) -> Result<&AsgPool, ActuateError> {
        let nobodys = || convert::refused(FailureKind::Config, "", format!("{id} is no asg pool"));
        self.pools.get(id).ok_or_else(nobodys)
    }
}

#[async_trait]
impl<A: AwsApi + 'static> Actuator for AsgActuator<A> {
    fn kind(&self) -> PoolKind {
        PoolKind::Asg
    }

    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)> {
        self.read_pools(pools).await
    }

    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
        let pool = self.pool(&order.pool)?;
        let outcome = self.grow(pool, order).await;
        self.treasury
            .changed(&pool.region, &pool.group, self.clock.mono());
        outcome
    }

    async fn settle(
        &self,
        order: &LaunchOrder,
        known: &[InstanceId],
        now: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        let pool = self.pool(&order.pool)?;
        let found = self.find_out(pool, order, known, now).await;
        found.map_err(convert::not_settled)
    }

    async fn leave(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let pool = self.pool(pool)?;
        let left = self.let_go(pool, instance).await;
        self.treasury
            .changed(&pool.region, &pool.group, self.clock.mono());
        left.map_err(convert::failed_change)
    }

    async fn bury(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let buried = self.take_off_the_books(self.pool(pool)?, instance).await;
        buried.map_err(convert::failed_change)
    }

    async fn guard(&self, pool: &PoolId) -> Result<(), ActuateError> {
        let pool = self.pool(pool)?;
        let mut flight = self.memory(pool).alone().await;
        let ready = self.prepare(pool, &mut flight).await;
        ready.map(|_| ()).map_err(convert::failed_change)
    }

    async fn hooks(&self, pool: &PoolId) -> Result<Vec<Hook>, ActuateError> {
        self.read_hooks(self.pool(pool)?).await
    }

    async fn beat(
        &self,
        pool: &PoolId,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        self.hold_hook(self.pool(pool)?, hook, instance).await
    }

    async fn complete(
        &self,
        pool: &PoolId,
        hook: &str,
        instance: &InstanceId,
    ) -> Result<bool, ActuateError> {
        self.complete_hook(self.pool(pool)?, hook, instance).await
    }

    async fn withdraw(&self, pool: &PoolId) -> Result<Withdrawal, ActuateError> {
        let given = self.give_back(self.pool(pool)?).await;
        given.map_err(convert::failed_change)
    }
}
