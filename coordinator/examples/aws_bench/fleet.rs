//! A coordinator over the AWS of plain values: the real cycle and the real driver, a store in memory, no agents.

use crate::cloud::Cloud;
use drover::adapters::actuate::asg::{AsgActuator, AsgPool, Owner};
use drover::adapters::demand::requests::Requests;
use drover::adapters::store::memory::{Disk, MemoryStore};
use drover::config;
use drover::control::commands::Commands;
use drover::control::cycle::{Control, Ports};
use drover::control::journal::Journal;
use drover::control::settings::Asks;
use drover::ports::clock::Clock;
use drover::ports::link::{AgentLink, AgentNotice, AgentView};
use drover::ports::store::Store;
use drover::records::{OrderRecord, RequestSpec};
use drover_core::model::{Locality, Millis, NodeId, PoolId, Resources};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::sync::watch;

/// Nobody speaks.
struct NoAgents(watch::Sender<u64>);

impl AgentLink for NoAgents {
    fn views(&self) -> Vec<Arc<AgentView>> {
        Vec::new()
    }
    fn view(&self, _: &NodeId) -> Option<Arc<AgentView>> {
        None
    }
    fn notices(&self) -> Vec<AgentNotice> {
        Vec::new()
    }
    fn settle_notices(&self, _: &[(NodeId, String)]) {}
    fn desire(&self, _: &NodeId, _: OrderRecord) {}
    fn forget(&self, _: &NodeId) {}
    fn changed(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// A pool: name, region, USD per hour.
pub struct Pool {
    pub name: String,
    pub region: &'static str,
    pub price: f64,
    pub max: u32,
}

/// The coordinator's heart and the wishes of people. Nothing is missed or ended within the bench.
pub async fn coordinator(
    pools: &[Pool],
    cloud: &Cloud,
    clock: &Arc<dyn Clock>,
) -> (Control, Commands, Asks) {
    let mut text = String::from("[control]\nsettle = \"1s\"\n");
    for pool in pools {
        let Pool {
            name,
            region,
            price,
            max,
        } = pool;
        let _ = writeln!(
            text,
            "[[pool]]\nname = \"{name}\"\nkind = \"asg\"\nsite = \"{region}\"\nregion = \"{region}\"\ngroup = \"{name}\"\n\
             mode = \"grow\"\nmax = {max}\nprovision_deadline = \"24h\"\nprices = {{ \"g5.xlarge\" = {price} }}"
        );
    }
    let config = Arc::new(config::parse(&text).expect("the config"));
    let store = Arc::new(MemoryStore::open(&Disk::default()));
    let journal = Journal::open(store.clone(), clock.clone())
        .await
        .expect("a journal");
    let owner = Owner::new(store.store_id(), store.fence().0).expect("an owner");
    let driven: Vec<AsgPool> = config.pools.iter().filter_map(AsgPool::of).collect();
    let actuator = AsgActuator::new(cloud.clone(), owner, driven, clock.clone());
    let control = Control::new(
        config,
        Ports {
            journal: Arc::new(journal),
            link: Arc::new(NoAgents(watch::channel(0).0)),
            actuators: vec![Arc::new(actuator)],
            sources: vec![Arc::new(Requests::new(store, Millis::minutes(20)))],
            clock: clock.clone(),
        },
    );
    let (commands, asks) = control.commands();
    (control, commands, asks)
}

/// A request for units of one GPU, of these pools or of any.
pub async fn ask(commands: &Commands, name: &str, units: u32, pools: &[&str]) {
    let spec = RequestSpec {
        units,
        unit: Resources {
            gpus: 1,
            ..Resources::default()
        },
        whole_nodes: false,
        gpu_model: String::new(),
        duration: None,
        gang_min: None,
        locality: Locality::Any,
        priority: 0,
        pools: pools.iter().map(|name| PoolId::from(*name)).collect(),
        labels: BTreeMap::new(),
        hold: None,
        ..RequestSpec::default()
    };
    commands
        .create_request("admin/bench", name, &spec)
        .await
        .expect("a request");
}
