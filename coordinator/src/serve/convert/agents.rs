//! Our records as the agents' wire types. Called by the session; what agents send stays in wire types within the
//! link's views, checked by `limits`.

use crate::control::orders::Obeyed;
use crate::records::{DesiredState, DrainPolicy, OrderRecord};
use drover_core::model::UnixMs;
use drover_proto::v1;

/// An order as it is sent at `now`.
#[must_use]
pub fn order(record: &OrderRecord, now: UnixMs) -> v1::Order {
    let desired = match record.desired {
        DesiredState::Active => v1::Desired::Active,
        DesiredState::Cordoned => v1::Desired::Cordoned,
        DesiredState::Draining => v1::Desired::Draining,
    };
    v1::Order {
        epoch: record.epoch,
        generation: record.generation,
        desired: desired.into(),
        drain: record.drain.as_ref().map(|drain| v1::Drain {
            id: drain.id.0.clone(),
            policy: policy(drain.policy).into(),
            deadline_unix_ms: drain.deadline.map_or(0, |at| at.0),
            grace_ms: drain.grace.0,
            reason: record.reason.clone(),
        }),
        now_unix_ms: now.0,
    }
}

/// The order that a node says it obeys; `None` when it says none, or one that this release does not know.
#[must_use]
pub fn obeyed(order: &v1::Order) -> Option<Obeyed<'_>> {
    let desired = match order.desired() {
        v1::Desired::Active => DesiredState::Active,
        v1::Desired::Cordoned => DesiredState::Cordoned,
        v1::Desired::Draining => DesiredState::Draining,
        v1::Desired::Unspecified => return None,
    };
    let drain = order.drain.as_ref();
    Some(Obeyed {
        number: (order.epoch, order.generation),
        desired,
        drain: drain.map(|drain| (drain.id.as_str(), drain.reason.as_str())),
    })
}

fn policy(policy: DrainPolicy) -> v1::DrainPolicy {
    match policy {
        DrainPolicy::Wait => v1::DrainPolicy::Wait,
        DrainPolicy::Evict => v1::DrainPolicy::Evict,
        DrainPolicy::Force => v1::DrainPolicy::Force,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::order::OrderedDrain;
    use drover_core::model::{DrainId, Millis};

    #[test]
    fn an_order_says_what_the_record_says() {
        let record = OrderRecord {
            epoch: 7,
            generation: 2,
            desired: DesiredState::Draining,
            drain: Some(OrderedDrain {
                id: DrainId::from("d-1"),
                policy: DrainPolicy::Evict,
                deadline: None,
                grace: Millis(30_000),
            }),
            by: "admin/ada".into(),
            reason: "maintenance".into(),
        };
        let wire = order(&record, UnixMs(5));
        assert_eq!((wire.epoch, wire.generation, wire.now_unix_ms), (7, 2, 5));
        assert_eq!(wire.desired(), v1::Desired::Draining);
        let drain = wire.drain.unwrap();
        assert_eq!(drain.policy(), v1::DrainPolicy::Evict);
        assert_eq!((drain.deadline_unix_ms, drain.grace_ms), (0, 30_000));
        assert_eq!(
            (drain.id.as_str(), drain.reason.as_str()),
            ("d-1", "maintenance")
        );
    }
}
