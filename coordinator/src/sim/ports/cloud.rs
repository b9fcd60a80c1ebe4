//! The pure cloud behind [`Actuator`]: the same answers as `adapters::actuate::sim` gives, at virtual time and without a
//! process between.

use super::super::offered::allocatable;
use super::super::stage::node::State;
use super::super::stage::{Pool, Shared, Stage};
use crate::adapters::actuate::sim::answers::{self, config, failure, offering_id, outcome};
use crate::ports::actuate::{
    ActuateError, Actuator, Instance, InstanceState, LaunchOrder, LaunchOutcome, PoolReading,
};
use crate::world::{ApiTrouble, Ask, GroupSpec, MarketSpec, OfferingSpec};
use async_trait::async_trait;
use drover_core::model::{
    FailureKind, InstanceId, Market, MicroUsd, Millis, Offering, OfferingId, PoolId, PoolKind,
    UnixMs,
};

/// Every sim pool of the config.
pub(in crate::sim) struct Cloud(pub(in crate::sim) Shared);

fn id_of(pool: &PoolId, offering: &OfferingSpec) -> OfferingId {
    let (kind, zone) = (&offering.instance_type, &offering.zone);
    offering_id(pool, kind, zone, offering.market.as_str())
}

fn offered(pool: &Pool, offering: &OfferingSpec) -> Offering {
    let price = pool.prices.get(&offering.instance_type).copied();
    Offering {
        id: id_of(&pool.id, offering),
        instance_type: offering.instance_type.clone(),
        zone: offering.zone.clone(),
        market: match offering.market {
            MarketSpec::Spot => Market::Spot,
            MarketSpec::OnDemand => Market::OnDemand,
        },
        price: price.unwrap_or(MicroUsd(offering.price_micro_usd_per_hour)),
        allocatable: Some(allocatable(offering)),
        gpu_model: offering.gpu_model.clone(),
        boot: Millis(offering.boot_ms),
        available: None,
        reservations: Vec::new(),
    }
}

fn group_of<'s>(stage: &'s Stage, pool: &Pool) -> Result<&'s GroupSpec, ActuateError> {
    let mut groups = stage.world.spec().groups.iter();
    let found = groups.find(|group| group.name == pool.group);
    found.ok_or_else(|| config(format!("the simulated cloud has no group {}", pool.group)))
}

/// Why the pool's API gives no answer now.
fn unanswered(stage: &Stage, pool: &Pool) -> Option<ActuateError> {
    let (kind, code) = match stage.world.api_trouble(&pool.group, stage.now.0)? {
        ApiTrouble::Away => (FailureKind::Transient, "ServiceUnavailable"),
        ApiTrouble::Throttled => (FailureKind::Throttle, "RequestLimitExceeded"),
    };
    Some(ActuateError {
        kind,
        code: code.to_owned(),
        message: format!("{code}: the API of group {}", pool.group),
    })
}

fn reading(stage: &Stage, pool: &PoolId) -> Result<PoolReading, ActuateError> {
    let pool = stage
        .pools
        .get(pool)
        .ok_or_else(|| config(format!("{pool} is not a sim pool")))?;
    if let Some(error) = unanswered(stage, pool) {
        return Err(error);
    }
    let group = group_of(stage, pool)?;
    let offerings: Vec<Offering> = group.offerings.iter().map(|o| offered(pool, o)).collect();
    let shown = |at: usize| {
        let node = stage.nodes.get(at)?;
        let (record, _, _) = stage.world.instance(&node.instance)?;
        let offering = offerings.get(record.offering)?;
        Some(Instance {
            id: InstanceId::new(node.instance.clone()),
            state: match node.state {
                State::Booting if record.running_ms > stage.now.0 => InstanceState::Pending,
                State::Booting | State::Up => InstanceState::Running,
                State::Ended => InstanceState::Gone,
            },
            offering: Some(offering.id.clone()),
            zone: offering.zone.clone(),
            instance_type: offering.instance_type.clone(),
            protected: Some(true),
            launched: Some(node.launched.after(stage.mishaps.ahead)),
            ends: None,
        })
    };
    let alive = stage.world.alive_in(&group.name);
    let alive = alive.filter_map(|record| stage.by_instance.get(&record.id).copied());
    let ended = stage.ended.get(&pool.id).into_iter().flatten();
    let mut instances: Vec<Instance> = alive
        .chain(ended.map(|(_, at)| *at))
        .filter_map(shown)
        .collect();
    instances.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(answers::reading(
        (&group.name, &group.owner, group.max),
        instances,
        offerings,
        stage.wall(),
    ))
}

fn launch(stage: &mut Stage, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
    let pool = stage
        .pools
        .get(&order.pool)
        .ok_or_else(|| config(format!("{} is not a sim pool", order.pool)))?;
    if let Some(error) = unanswered(stage, pool) {
        return Err(error);
    }
    let group = group_of(stage, pool)?;
    let mut wanted = group.offerings.iter();
    let offering = wanted
        .find(|offering| id_of(&order.pool, offering) == order.offering)
        .ok_or_else(|| {
            config(format!(
                "the simulated cloud does not offer {}",
                order.offering
            ))
        })?;
    let ask = Ask {
        group: group.name.clone(),
        instance_type: offering.instance_type.clone(),
        zone: offering.zone.clone(),
        market: offering.market,
        count: order.count,
        token: order.token.clone(),
    };
    let granted = stage
        .launch(&order.pool, &ask)
        .map_err(|error| config(error.to_string()))?;
    let refusal = granted.refusal.as_ref();
    let failure = refusal.map(|why| failure(order, 0, (&why.code, &why.message), stage.wall()));
    if let Some(failure) = &failure {
        let kind = format!("{:?}", failure.kind).to_lowercase();
        *stage.history.refusals.entry(kind).or_insert(0) += 1;
    }
    Ok(outcome(granted.instances, failure.into_iter().collect()))
}

#[async_trait]
impl Actuator for Cloud {
    fn kind(&self) -> PoolKind {
        PoolKind::Sim
    }

    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)> {
        let stage = self.0.lock();
        let all = pools.iter();
        all.map(|pool| (pool.clone(), reading(&stage, pool)))
            .collect()
    }

    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
        launch(&mut self.0.lock(), order)
    }

    async fn settle(
        &self,
        order: &LaunchOrder,
        _: &[InstanceId],
        _: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        let stage = self.0.lock();
        let ours = stage.nodes.iter().filter(|node| node.token == order.token);
        Ok(outcome(ours.map(|node| node.instance.clone()), Vec::new()))
    }

    async fn leave(&self, _: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let mut stage = self.0.lock();
        // Gone already is what was wanted.
        let Some(&at) = stage.by_instance.get(instance.as_str()) else {
            return Ok(());
        };
        let pool = stage.pools.get(&stage.nodes[at].pool);
        if let Some(error) = pool.and_then(|pool| unanswered(&stage, pool)) {
            return Err(error);
        }
        if stage.mishaps.cordoned.contains(&at) {
            let what = format!("{instance} was ended although a person had cordoned it");
            stage.violated("I7 undo_only_own", what);
        }
        if stage.is_silent(at) && !stage.nodes[at].cordoned {
            let what = format!("{instance} was ended while its agent was silent");
            stage.violated("I6 silence_is_not_death", what);
        }
        let killed = stage.end_node(at, "its node was told to leave");
        if !killed.is_empty() {
            let what = format!("{instance} was ended with {} jobs on it", killed.len());
            stage.violated("I1 no_job_killed", what);
        }
        Ok(())
    }
}
