//! An instance or host that its provider or the list names and that no agent speaks for, as a node. See `fleet`.

use super::FleetNode;
use super::marks;
use super::sizes::{model, template};
use super::state::provider;
use crate::config::{PoolConfig, PoolSource};
use crate::ports::actuate::{Instance, PoolReading};
use drover_core::model::{Busy, InstanceId, LaunchId, NodeId, Resources};
use drover_core::rules::lifecycle::{self, Levels};
use std::collections::BTreeMap;

/// An instance or host that no agent speaks for.
pub(super) fn silent(
    pool: &PoolConfig,
    reading: &PoolReading,
    instance: &Instance,
    launched: &BTreeMap<InstanceId, LaunchId>,
) -> FleetNode {
    let fixed = match &pool.source {
        PoolSource::Static(fixed) => Some(fixed),
        PoolSource::Asg(_) | PoolSource::Sim(_) => None,
    };
    let offering = instance
        .offering
        .as_ref()
        .and_then(|id| reading.offerings.iter().find(|found| found.id == *id));
    let lifecycle = lifecycle::of(Levels {
        joined: false,
        drain: None,
        provider: Some(provider(instance.state)),
        physical: fixed.is_some(),
        off: fixed.is_some_and(|fixed| fixed.power.on.is_some()),
        complete: false,
    });
    let kind = if fixed.is_some() { "host" } else { "instance" };
    FleetNode {
        id: NodeId(format!("{kind}/{}", instance.id)),
        name: instance.id.0.clone(),
        pool: Some(pool.name.clone()),
        site: Some(pool.site.clone()),
        record: None,
        order: None,
        drain: None,
        agent: None,
        instance_id: Some(instance.id.clone()),
        launch: launched.get(&instance.id).cloned(),
        offering: instance.offering.clone(),
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        price: offering.map(|offering| offering.price),
        lifecycle,
        cordon: None,
        unreachable: fixed.is_some_and(|fixed| fixed.power.on.is_none()),
        faulty: None,
        lacks: None,
        notices: Vec::new(),
        taken: None,
        allocatable: offering
            .and_then(|offering| offering.allocatable.clone())
            .or_else(|| template(pool))
            .unwrap_or_default(),
        used: Resources::default(),
        reserved: Vec::new(),
        gpu_shares: Vec::new(),
        workloads: Vec::new(),
        launched: instance.launched,
        gpu_model: model(None, offering, Some(pool)),
        labels: marks::labels(pool, Some(reading)),
        taints: marks::taints(pool, Some(reading)),
        busy: Busy::Unknown {
            why: "no agent speaks for it".to_owned(),
        },
        idle_since: None,
        instance: Some(instance.clone()),
    }
}
