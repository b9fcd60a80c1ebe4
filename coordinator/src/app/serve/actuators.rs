//! One actuator per kind of pool in the config.

use super::aws::{Client, Cloud};
use crate::adapters::actuate::asg::calls::{BudgetCalls, budget_settings};
use crate::adapters::actuate::asg::{AsgActuator, AsgPool, Memories, Owner};
use crate::adapters::actuate::sim::SimCloud;
use crate::adapters::actuate::static_hosts::StaticHosts;
use crate::adapters::cloud::{Engine, load_world};
use crate::adapters::notices::{Queue, Queues};
use crate::config::Config;
use crate::ports::actuate::Actuator;
use crate::ports::calls::CallCounts;
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::records::keys;
use anyhow::{Context as _, Result, bail};
use drover_aws::{AwsApi, Budget, BudgetSettings, Region, TokioClock};
use drover_core::model::PoolKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Seed of an embedded cloud: its ids and delays are the same at every start.
const SEED: u64 = 1;

/// What outlives a reload of the config.
pub(super) struct Kept {
    /// Buckets and counts of calls to AWS.
    budget: Arc<Budget>,
    /// What AWS tells by itself.
    queues: Queues,
    /// The embedded cloud, and the file it was made from: it is not made anew under its instances.
    world: Option<(PathBuf, Arc<Engine>)>,
    /// Calls at work on groups, and what was last wanted of them.
    groups: Memories,
    /// AWS.
    client: Client,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            budget: Arc::new(Budget::new(
                BudgetSettings::default(),
                Arc::new(TokioClock::start()),
            )),
            queues: Queues::default(),
            world: None,
            groups: Memories::default(),
            client: Client::default(),
        }
    }
}

impl Kept {
    /// AWS, where the config needs it and this program was built with it.
    pub(super) async fn cloud(&mut self, config: &Config) -> Option<Cloud> {
        self.client.of(config, &self.budget).await
    }

    /// What calls to AWS are paid from.
    #[cfg(feature = "aws")]
    pub(super) fn budget(&self) -> Arc<Budget> {
        self.budget.clone()
    }

    /// What AWS tells by itself.
    pub(super) fn queues(&self) -> Queues {
        self.queues.clone()
    }

    /// What is asked of AWS, in numbers.
    pub(super) fn calls(&self) -> Arc<dyn CallCounts> {
        Arc::new(BudgetCalls(self.budget.clone()))
    }
}

/// All that the config needs.
///
/// # Errors
/// A pool of a kind that this program was built without, or a simulated cloud that cannot be had.
pub(super) async fn all(
    config: &Config,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    kept: &mut Kept,
) -> Result<Vec<Arc<dyn Actuator>>> {
    kept.budget.set(budget_settings(&config.aws.budget));
    let has = |kind| config.pools.iter().any(|pool| pool.kind() == kind);
    let mut actuators: Vec<Arc<dyn Actuator>> = Vec::new();
    if has(PoolKind::Static) {
        let clock = clock.clone();
        actuators.push(Arc::new(StaticHosts::new(&config.pools, move || {
            clock.wall()
        })));
    }
    if has(PoolKind::Sim) {
        actuators.push(Arc::new(sim(config, kept)?));
    }
    if has(PoolKind::Asg) {
        actuators.push(asg(config, store, clock, kept).await?);
    } else {
        // Without a group nobody is listened for.
        kept.queues.stop();
    }
    Ok(actuators)
}

fn sim(config: &Config, kept: &mut Kept) -> Result<SimCloud> {
    if let Some(address) = &config.sim.cloud {
        return SimCloud::remote(address, &config.pools).context("sim.cloud is no address");
    }
    let Some(world) = &config.sim.world else {
        bail!("[sim]: a pool of kind sim needs `cloud` or `world`");
    };
    let engine = match &kept.world {
        Some((path, engine)) if path == world => engine.clone(),
        _ => {
            let engine = Engine::new(load_world(world)?, SEED, None);
            let living = engine.clone();
            tokio::spawn(async move { living.run().await });
            kept.world = Some((world.clone(), engine.clone()));
            engine
        }
    };
    Ok(SimCloud::embedded(engine, &config.pools))
}

/// Looks at the owner tags of all groups before anything is done: what another coordinator drives by this store is not
/// driven by a copy of it. A restored store may start as long as it is frozen.
///
/// # Errors
/// A group whose tag says so, with the way out.
pub(super) async fn refuse_to_share(
    config: &Config,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    kept: &mut Kept,
    copied: bool,
) -> Result<()> {
    let restored = store.get(keys::RESTORED).await?.is_some();
    let frozen = store.get(&keys::named(keys::FREEZE, "*")).await?.is_some();
    let has_groups = config.pools.iter().any(|pool| pool.kind() == PoolKind::Asg);
    if (restored && frozen) || !has_groups {
        return Ok(());
    }
    let adapter = groups(config, store, clock, kept).await?;
    adapter
        .refuse_to_share(copied)
        .await
        .map_err(anyhow::Error::msg)
}

async fn asg(
    config: &Config,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    kept: &mut Kept,
) -> Result<Arc<dyn Actuator>> {
    if let Some(cloud) = kept.cloud(config).await {
        kept.queues.follow(&cloud.events, queues(config));
    }
    let adapter = groups(config, store, clock, kept).await?;
    Ok(Arc::new(adapter.with_memories(&mut kept.groups)))
}

async fn groups(
    config: &Config,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    kept: &mut Kept,
) -> Result<AsgActuator<Arc<dyn AwsApi>>> {
    let pools: Vec<AsgPool> = config.pools.iter().filter_map(AsgPool::of).collect();
    let Some(cloud) = kept.cloud(config).await else {
        let name = pools.first().map(|pool| pool.pool.to_string());
        bail!(
            "pool {} is of kind asg, and this program was built without the feature `aws`: use a release, or build with \
             default features",
            name.unwrap_or_default()
        );
    };
    let owner = Owner::new(store.store_id(), store.fence().0)?;
    Ok(AsgActuator::new(cloud.api, owner, pools, clock.clone())
        .with_offers(cloud.offers)
        .with_survey(cloud.survey.clone())
        .with_hooks(cloud.events, cloud.survey))
}

/// The queues that the config names.
fn queues(config: &Config) -> Vec<Queue> {
    let queue = |queue: &crate::config::Queue| {
        let region = Region::new(queue.region.clone());
        Queue {
            region: match &queue.role_arn {
                Some(role) => region.with_role(role.clone()),
                None => region,
            },
            url: queue.url.clone(),
        }
    };
    config.aws.queues.iter().map(queue).collect()
}
