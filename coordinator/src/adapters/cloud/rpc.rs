//! The cloud's gRPC service, and `serve`: service, metadata and the passing of time in one process.

use super::config::CloudConfig;
use super::engine::{Engine, now_ms, state_of};
use super::metadata;
use crate::world::{Ask, GroupState, MarketSpec, WorldError};
use drover_proto::sim::cloud_service_server::{CloudService, CloudServiceServer};
use drover_proto::sim::{
    DescribeReply, DescribeRequest, Group, Instance, LaunchError, LaunchReply, LaunchRequest,
    LedgerReply, LedgerRequest, Offering, TerminateReply, TerminateRequest,
};
use std::future::Future;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Runs the cloud until `shutdown` resolves; then every instance's process is ended.
///
/// # Errors
/// An address cannot be bound or a server fails.
pub async fn serve(config: CloudConfig, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    use anyhow::Context as _;
    std::fs::create_dir_all(&config.work_dir)
        .with_context(|| format!("cannot make {}", config.work_dir.display()))?;
    let rpc = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let imds = TcpListener::bind(config.metadata)
        .await
        .with_context(|| format!("cannot listen on {}", config.metadata))?;
    let metadata_address = imds.local_addr()?;
    tracing::info!(listen = %rpc.local_addr()?, metadata = %metadata_address, "the simulated cloud runs");
    let command = config
        .instance
        .map(|command| (command, config.work_dir, metadata_address));
    let engine = Engine::new(config.world, config.seed, command);
    let service = CloudServiceServer::new(Cloud(engine.clone()));
    let server = tonic::transport::Server::builder().add_service(service);
    let result = tokio::select! {
        served = server.serve_with_incoming(TcpListenerStream::new(rpc)) => served.context("the cloud's service failed"),
        served = axum::serve(imds, metadata::router(engine.clone())) => served.context("the metadata service failed"),
        () = engine.run() => Ok(()),
        () = shutdown => Ok(()),
    };
    engine.shut_down();
    result
}

struct Cloud(Arc<Engine>);

#[tonic::async_trait]
impl CloudService for Cloud {
    async fn describe(
        &self,
        request: Request<DescribeRequest>,
    ) -> Result<Response<DescribeReply>, Status> {
        Ok(Response::new(describe(
            &self.0,
            &request.into_inner().groups,
        )))
    }

    async fn launch(
        &self,
        request: Request<LaunchRequest>,
    ) -> Result<Response<LaunchReply>, Status> {
        launch(&self.0, request.into_inner()).map(Response::new)
    }

    async fn terminate(
        &self,
        request: Request<TerminateRequest>,
    ) -> Result<Response<TerminateReply>, Status> {
        self.0
            .terminate(&request.into_inner().instance_id)
            .map_err(|e| status(&e))?;
        Ok(Response::new(TerminateReply {}))
    }

    async fn ledger(&self, _: Request<LedgerRequest>) -> Result<Response<LedgerReply>, Status> {
        let (tally, witness, cost_micro_usd, running) = self.0.ledger();
        Ok(Response::new(LedgerReply {
            launched: tally.launched,
            terminated: tally.terminated,
            running,
            peak_running: tally.peak,
            regions_used: tally.regions.into_iter().collect(),
            shortages: tally.shortages,
            died: witness.died,
            killed_jobs: witness.killed_jobs,
            cost_micro_usd,
            failovers: tally.failovers,
        }))
    }
}

/// Every group asked for (all when `names` is empty), as of now. Instances that ended over ten minutes ago are left
/// out, as EC2 does after about an hour.
#[must_use]
pub fn describe(engine: &Engine, names: &[String]) -> DescribeReply {
    let groups = engine.with_world(|world| {
        world
            .groups()
            .iter()
            .filter(|g| names.is_empty() || names.contains(&g.spec.name))
            .map(group)
            .collect()
    });
    DescribeReply {
        groups,
        now_unix_ms: now_ms(),
    }
}

/// Launches, in the wire's words.
///
/// # Errors
/// An unknown group or offering, or a token used for another ask.
pub fn launch(engine: &Engine, request: LaunchRequest) -> Result<LaunchReply, Status> {
    let market = match request.market.as_str() {
        "on-demand" | "" => MarketSpec::OnDemand,
        "spot" => MarketSpec::Spot,
        other => {
            return Err(Status::invalid_argument(format!(
                "market: {other} is neither on-demand nor spot"
            )));
        }
    };
    if request.token.is_empty() {
        return Err(Status::invalid_argument(
            "token: is empty: every ask needs one",
        ));
    }
    let ask = Ask {
        group: request.group,
        instance_type: request.instance_type,
        zone: request.zone,
        market,
        count: request.count,
        token: request.token,
    };
    let granted = engine.launch(&ask).map_err(|e| status(&e))?;
    let errors = granted.refusal.map(|refusal| LaunchError {
        code: refusal.code,
        message: refusal.message,
        zone: ask.zone,
        instance_type: ask.instance_type,
    });
    Ok(LaunchReply {
        instance_ids: granted.instances,
        errors: errors.into_iter().collect(),
    })
}

fn group(state: &GroupState<'_>) -> Group {
    let now = now_ms();
    Group {
        name: state.spec.name.clone(),
        region: state.spec.region.clone(),
        max: state.spec.max,
        owner: state.spec.owner.clone(),
        offerings: state
            .spec
            .offerings
            .iter()
            .map(|o| Offering {
                instance_type: o.instance_type.clone(),
                zone: o.zone.clone(),
                market: o.market.as_str().to_owned(),
                price_micro_usd_per_hour: o.price_micro_usd_per_hour,
                gpus: o.gpus,
                gpu_model: o.gpu_model.clone(),
                milli_cpus: o.milli_cpus(),
                memory_bytes: o.memory_bytes(),
                boot_ms: o.boot_ms + o.boot_jitter_ms,
            })
            .collect(),
        instances: state
            .instances
            .iter()
            .filter(|i| {
                i.terminated_ms
                    .is_none_or(|at| now.saturating_sub(at) < 600_000)
            })
            .map(|i| {
                let offering = &state.spec.offerings[i.offering];
                Instance {
                    id: i.id.clone(),
                    instance_type: offering.instance_type.clone(),
                    zone: offering.zone.clone(),
                    market: offering.market.as_str().to_owned(),
                    state: state_of(i).to_owned(),
                    launched_unix_ms: i.launched_ms,
                    launch_token: i.token.clone(),
                }
            })
            .collect(),
    }
}

fn status(error: &WorldError) -> Status {
    let text = error.to_string();
    match error {
        WorldError::NoGroup(_) | WorldError::NoOffering(..) | WorldError::NoInstance(_) => {
            Status::not_found(text)
        }
        WorldError::TokenMismatch => Status::already_exists(text),
        WorldError::Away(_) => Status::unavailable(text),
        WorldError::Throttled(_) => Status::resource_exhausted(text),
    }
}
