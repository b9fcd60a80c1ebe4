//! What a port onto the simulated cloud answers, whichever way it asks: ids of offerings, readings, outcomes, refusals.
//!
//! Called by the adapter and by the simulator's own port, so that a pool looks alike through both. Pure.

use crate::ports::actuate::{
    ActuateError, Instance, LaunchOrder, LaunchOutcome, PoolReading, ProviderFailure, Trace, Way,
};
use drover_core::model::{
    FailureKind, InstanceId, Offering, OfferingId, PoolId, Steering, Stop, UnixMs,
};

/// `pool/type/zone/market`.
pub(crate) fn offering_id(
    pool: &PoolId,
    instance_type: &str,
    zone: &str,
    market: &str,
) -> OfferingId {
    OfferingId::new(format!("{pool}/{instance_type}/{zone}/{market}"))
}

/// Something that is not as the config says.
pub(crate) fn config(message: String) -> ActuateError {
    ActuateError {
        kind: FailureKind::Config,
        code: String::new(),
        message,
    }
}

/// The pool of a group.
pub(crate) fn reading(
    (group, owner, max): (&str, &str, u32),
    instances: Vec<Instance>,
    offerings: Vec<Offering>,
    now: UnixMs,
) -> PoolReading {
    let unowned = owner.is_empty().then(|| Stop::NotOurs {
        why: format!("group {group} has no owner: set owner in the cloud's config"),
    });
    PoolReading {
        instances,
        offerings,
        steering: Steering::Zone,
        provider_max: Some(max),
        stops: unowned.into_iter().collect(),
        removable: true,
        ..PoolReading::empty(now)
    }
}

/// The n-th thing that went wrong with a launch, by the cloud's code and words.
pub(crate) fn failure(
    order: &LaunchOrder,
    n: usize,
    (code, message): (&str, &str),
    at: UnixMs,
) -> ProviderFailure {
    ProviderFailure {
        id: format!("{}/{n}", order.token),
        offering: Some(order.offering.clone()),
        kind: match code {
            "InsufficientInstanceCapacity" => FailureKind::Shortage,
            "ValidationError" => FailureKind::Quota,
            _ => FailureKind::Transient,
        },
        message: format!("{code}: {message}"),
        at,
        trace: Trace::Absent,
    }
}

/// A launch that brought these instances.
pub(crate) fn outcome(
    instances: impl IntoIterator<Item = String>,
    failures: Vec<ProviderFailure>,
) -> LaunchOutcome {
    let instances: Vec<InstanceId> = instances.into_iter().map(InstanceId::new).collect();
    LaunchOutcome {
        way: Way::Sim,
        granted: u32::try_from(instances.len()).unwrap_or(u32::MAX),
        instances,
        failures,
        raised: None,
    }
}
