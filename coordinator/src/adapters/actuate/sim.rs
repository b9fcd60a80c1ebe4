//! Pools of the simulated cloud: over its gRPC service, or embedded in this process.

pub(crate) mod answers;
mod reading;

use crate::adapters::cloud::{Engine, rpc};
use crate::config::{PoolConfig, PoolSource};
use crate::ports::actuate::{ActuateError, Actuator, LaunchOrder, LaunchOutcome, PoolReading};
use answers::{config, failure, offering_id, outcome};
use async_trait::async_trait;
use drover_core::model::{FailureKind, InstanceId, MicroUsd, Millis, PoolId, PoolKind, UnixMs};
use drover_proto::sim;
use drover_proto::sim::cloud_service_client::CloudServiceClient;
use reading::reading;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// How long one call may take.
const CALL: Duration = Duration::from_secs(5);
/// An ask older than this is settled by looking, never by asking again (DESIGN 5).
const ASK_AGAIN: Millis = Millis::minutes(10);

/// Where the cloud is.
#[derive(Clone)]
enum Cloud {
    Remote(CloudServiceClient<Channel>),
    Embedded(Arc<Engine>),
}

/// Every sim pool of the config.
pub struct SimCloud {
    cloud: Cloud,
    /// Pool to group, prices from the config.
    pools: BTreeMap<PoolId, (String, BTreeMap<String, MicroUsd>)>,
}

impl SimCloud {
    /// Over the service of `drover sim-cloud`; connects when it is first asked.
    ///
    /// # Errors
    /// The address is none.
    pub fn remote(address: &str, pools: &[PoolConfig]) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?
            .timeout(CALL)
            .connect_timeout(CALL);
        let client = CloudServiceClient::new(endpoint.connect_lazy());
        Ok(Self {
            cloud: Cloud::Remote(client),
            pools: groups(pools),
        })
    }

    /// In this process.
    #[must_use]
    pub fn embedded(engine: Arc<Engine>, pools: &[PoolConfig]) -> Self {
        Self {
            cloud: Cloud::Embedded(engine),
            pools: groups(pools),
        }
    }

    async fn describe(&self, groups: Vec<String>) -> Result<sim::DescribeReply, ActuateError> {
        match &self.cloud {
            Cloud::Remote(client) => {
                let reply = client
                    .clone()
                    .describe(sim::DescribeRequest { groups })
                    .await;
                reply
                    .map(tonic::Response::into_inner)
                    .map_err(|e| failed("describe", &e))
            }
            Cloud::Embedded(engine) => Ok(rpc::describe(engine, &groups)),
        }
    }

    /// The cloud's group of a pool, as it is now.
    async fn group(&self, pool: &PoolId) -> Result<sim::Group, ActuateError> {
        let (name, _) = self
            .pools
            .get(pool)
            .ok_or_else(|| config(format!("{pool} is not a sim pool")))?;
        let reply = self.describe(vec![name.clone()]).await?;
        reply
            .groups
            .into_iter()
            .find(|group| group.name == *name)
            .ok_or_else(|| {
                config(format!(
                    "the simulated cloud has no group {name}: name one of its groups in the pool"
                ))
            })
    }
}

fn groups(pools: &[PoolConfig]) -> BTreeMap<PoolId, (String, BTreeMap<String, MicroUsd>)> {
    let sim = pools.iter().filter_map(|pool| match &pool.source {
        PoolSource::Sim(sim) => Some((pool.name.clone(), (sim.group.clone(), pool.prices.clone()))),
        _ => None,
    });
    sim.collect()
}

fn failed(call: &str, status: &Status) -> ActuateError {
    let kind = match status.code() {
        Code::NotFound | Code::InvalidArgument | Code::AlreadyExists => FailureKind::Config,
        _ => FailureKind::Transient,
    };
    ActuateError {
        kind,
        code: format!("{:?}", status.code()),
        message: format!("the simulated cloud, {call}: {}", status.message()),
    }
}

#[async_trait]
impl Actuator for SimCloud {
    fn kind(&self) -> PoolKind {
        PoolKind::Sim
    }

    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)> {
        let names = pools
            .iter()
            .filter_map(|pool| Some(self.pools.get(pool)?.0.clone()))
            .collect();
        let reply = self.describe(names).await;
        let one = |pool: &PoolId| {
            let reply = reply.as_ref().map_err(Clone::clone)?;
            let (name, prices) = self
                .pools
                .get(pool)
                .ok_or_else(|| config(format!("{pool} is not a sim pool")))?;
            let group = reply.groups.iter().find(|group| group.name == *name);
            let group =
                group.ok_or_else(|| config(format!("the simulated cloud has no group {name}")))?;
            Ok(reading(pool, group, prices, UnixMs(reply.now_unix_ms)))
        };
        pools.iter().map(|pool| (pool.clone(), one(pool))).collect()
    }

    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
        let group = self.group(&order.pool).await?;
        let offering = group
            .offerings
            .iter()
            .find(|o| {
                offering_id(&order.pool, &o.instance_type, &o.zone, &o.market) == order.offering
            })
            .ok_or_else(|| {
                config(format!(
                    "the simulated cloud no longer offers {}",
                    order.offering
                ))
            })?;
        let ask = sim::LaunchRequest {
            group: group.name.clone(),
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.clone(),
            market: offering.market.clone(),
            count: order.count,
            token: order.token.clone(),
        };
        let reply = match &self.cloud {
            Cloud::Remote(client) => client
                .clone()
                .launch(ask)
                .await
                .map(tonic::Response::into_inner),
            Cloud::Embedded(engine) => rpc::launch(engine, ask),
        };
        let reply = reply.map_err(|e| failed("launch", &e))?;
        let errors = reply.errors.iter().enumerate();
        let failures = errors
            .map(|(n, error)| failure(order, n, (&error.code, &error.message), order.asked))
            .collect();
        Ok(outcome(reply.instance_ids, failures))
    }

    async fn settle(
        &self,
        order: &LaunchOrder,
        _: &[InstanceId],
        now: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        if now.since(order.asked) < ASK_AGAIN {
            return self.launch(order).await;
        }
        let group = self.group(&order.pool).await?;
        let ours = group
            .instances
            .iter()
            .filter(|i| i.launch_token == order.token);
        Ok(outcome(ours.map(|i| i.id.clone()), Vec::new()))
    }

    async fn leave(&self, _: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let ended = match &self.cloud {
            Cloud::Remote(client) => {
                let ask = sim::TerminateRequest {
                    instance_id: instance.to_string(),
                };
                client.clone().terminate(ask).await.map(|_| ())
            }
            Cloud::Embedded(engine) => engine
                .terminate(instance.as_str())
                .map_err(|e| Status::not_found(e.to_string())),
        };
        match ended {
            // Gone already is what was wanted: the reading confirms it.
            Err(status) if status.code() == Code::NotFound => Ok(()),
            other => other.map_err(|e| failed("terminate", &e)),
        }
    }
}

#[cfg(test)]
mod tests;
