//! From a group of the simulated cloud to what control reads of a pool. Called by the adapter. Pure.

use super::answers::{self, offering_id};
use crate::ports::actuate::{Instance, InstanceState, PoolReading};
use drover_core::model::{
    Bytes, InstanceId, Market, MicroUsd, MilliCpu, Millis, Offering, PoolId, Resources, UnixMs,
};
use drover_proto::sim;
use std::collections::BTreeMap;

pub(super) fn reading(
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
    answers::reading(
        (&group.name, &group.owner, group.max),
        instances.collect(),
        offerings.collect(),
        now,
    )
}
