//! Pools of the simulated cloud: over its gRPC service, or embedded in this process.

use crate::adapters::cloud::{Engine, rpc};
use crate::config::{PoolConfig, PoolSource};
use crate::ports::actuate::{
    ActuateError, Actuator, Instance, InstanceState, LaunchOrder, LaunchOutcome, PoolReading,
    ProviderFailure, Recipe, Way,
};
use async_trait::async_trait;
use drover_core::model::{
    Bytes, FailureKind, InstanceId, Market, MicroUsd, MilliCpu, Millis, Offering, OfferingId,
    PoolId, PoolKind, Resources, Steering, Stop, UnixMs,
};
use drover_proto::sim;
use drover_proto::sim::cloud_service_client::CloudServiceClient;
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

fn config(message: String) -> ActuateError {
    ActuateError {
        kind: FailureKind::Config,
        code: String::new(),
        message,
    }
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

/// `pool/type/zone/market`.
fn offering_id(pool: &PoolId, instance_type: &str, zone: &str, market: &str) -> OfferingId {
    OfferingId::new(format!("{pool}/{instance_type}/{zone}/{market}"))
}

fn reading(
    pool: &PoolId,
    group: &sim::Group,
    prices: &BTreeMap<String, MicroUsd>,
    now: UnixMs,
) -> PoolReading {
    let id = |o: &sim::Offering| offering_id(pool, &o.instance_type, &o.zone, &o.market);
    let offerings = group.offerings.iter().map(|o| Offering {
        id: id(o),
        instance_type: o.instance_type.clone(),
        zone: o.zone.clone(),
        market: if o.market == "spot" {
            Market::Spot
        } else {
            Market::OnDemand
        },
        price: prices
            .get(&o.instance_type)
            .copied()
            .unwrap_or(MicroUsd(o.price_micro_usd_per_hour)),
        allocatable: Some(Resources {
            gpu_milli: 0,
            cpu: MilliCpu(o.milli_cpus),
            memory: Bytes(o.memory_bytes),
            gpus: o.gpus,
            extended: BTreeMap::new(),
        }),
        gpu_model: o.gpu_model.clone(),
        boot: Millis(o.boot_ms),
        available: None,
        reservations: Vec::new(),
    });
    let instances = group.instances.iter().map(|i| Instance {
        id: InstanceId::new(i.id.clone()),
        state: match i.state.as_str() {
            "pending" => InstanceState::Pending,
            "running" => InstanceState::Running,
            "terminating" => InstanceState::Leaving,
            _ => InstanceState::Gone,
        },
        offering: Some(offering_id(pool, &i.instance_type, &i.zone, &i.market)),
        zone: i.zone.clone(),
        instance_type: i.instance_type.clone(),
        protected: Some(true),
        launched: Some(UnixMs(i.launched_unix_ms)),
        ends: None,
    });
    let unowned = group.owner.is_empty().then(|| Stop::NotOurs {
        why: format!(
            "group {} has no owner: set owner in the cloud's config",
            group.name
        ),
    });
    PoolReading {
        instances: instances.collect(),
        offerings: offerings.collect(),
        steering: Steering::Zone,
        provider_min: None,
        provider_max: Some(group.max),
        stops: unowned.into_iter().collect(),
        removable: true,
        labels: BTreeMap::new(),
        taints: BTreeMap::new(),
        warnings: Vec::new(),
        remarks: Vec::new(),
        failures: Vec::new(),
        unfilled: 0,
        withdrawing: false,
        dead: Vec::new(),
        recipe: Recipe::default(),
        read_at: now,
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
        let failures = reply
            .errors
            .iter()
            .enumerate()
            .map(|(n, error)| ProviderFailure {
                id: format!("{}/{n}", order.token),
                offering: Some(order.offering.clone()),
                kind: match error.code.as_str() {
                    "InsufficientInstanceCapacity" => FailureKind::Shortage,
                    "ValidationError" => FailureKind::Quota,
                    _ => FailureKind::Transient,
                },
                message: format!("{}: {}", error.code, error.message),
                at: order.asked,
            });
        Ok(LaunchOutcome {
            way: Way::Sim,
            granted: u32::try_from(reply.instance_ids.len()).unwrap_or(u32::MAX),
            failures: failures.collect(),
            instances: reply
                .instance_ids
                .into_iter()
                .map(InstanceId::new)
                .collect(),
        })
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
        let instances: Vec<_> = ours.map(|i| InstanceId::new(i.id.clone())).collect();
        let granted = u32::try_from(instances.len()).unwrap_or(u32::MAX);
        Ok(LaunchOutcome {
            way: Way::Sim,
            instances,
            granted,
            failures: Vec::new(),
        })
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
mod tests {
    use super::*;
    use crate::config as settings;
    use crate::world::WorldSpec;

    fn cloud() -> SimCloud {
        let world: WorldSpec = toml::from_str(
            "[[group]]\nname = \"g\"\nregion = \"west\"\nmax = 10\n[[group.offering]]\ninstance_type = \"p2\"\n\
             zone = \"west-a\"\nprice_micro_usd_per_hour = 5\ngpus = 16\ngpu_model = \"k80\"\ncpus = 64\n\
             memory_gib = 732\nboot_ms = 0\ncapacity = 2\n",
        )
        .expect("a sound world");
        let text = "[[pool]]\nname = \"p\"\nkind = \"sim\"\nsite = \"west\"\ngroup = \"g\"\nmax = 10\n\
                    [sim]\ncloud = \"http://127.0.0.1:7900\"\n";
        let pools = settings::parse(text).expect("a sound config").pools;
        SimCloud::embedded(Engine::new(world, 7, None), &pools)
    }

    fn order(token: &str, count: u32) -> LaunchOrder {
        LaunchOrder {
            id: "l-1".into(),
            token: token.into(),
            pool: "p".into(),
            offering: "p/p2/west-a/on-demand".into(),
            count,
            asked: UnixMs(1_000),
            hosts: Vec::new(),
        }
    }

    #[tokio::test]
    async fn asks_once_names_the_shortage_and_leaves_by_id() {
        let cloud = cloud();
        let first = cloud.launch(&order("t", 3)).await.expect("asked");
        assert_eq!((first.granted, first.failures.len()), (2, 1));
        assert_eq!(first.failures[0].kind, FailureKind::Shortage);
        assert_eq!(
            cloud.launch(&order("t", 3)).await.expect("asked again"),
            first
        );
        cloud
            .leave(&"p".into(), &first.instances[0])
            .await
            .expect("it is there");
        cloud
            .leave(&"p".into(), &first.instances[0])
            .await
            .expect("gone already is well");
        let read = cloud.read(&["p".into()]).await;
        let reading = read[0].1.as_ref().expect("the group is there");
        let gone = reading
            .instances
            .iter()
            .filter(|i| i.state == InstanceState::Gone)
            .count();
        assert_eq!((reading.instances.len(), gone), (2, 1));
        assert_eq!(reading.offerings[0].id, order("t", 1).offering);
    }

    #[tokio::test]
    async fn an_old_intent_is_settled_by_looking() {
        let cloud = cloud();
        let late = UnixMs(1_000 + ASK_AGAIN.0);
        assert_eq!(
            cloud
                .settle(&order("never", 1), &[], late)
                .await
                .expect("looked")
                .granted,
            0
        );
        let asked = cloud.launch(&order("t", 1)).await.expect("asked");
        assert_eq!(
            cloud
                .settle(&order("t", 1), &[], late)
                .await
                .expect("looked")
                .instances,
            asked.instances
        );
        assert_eq!(
            cloud
                .settle(&order("u", 1), &[], UnixMs(2_000))
                .await
                .expect("asked")
                .granted,
            1
        );
    }
}
