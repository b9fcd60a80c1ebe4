//! Orders from the wire and to it, and what is said of them: the state of a drain and its blockers.
//!
//! A part of `convert`, for `session`. Checks what comes in and names the bad field; judges no order, which is `order`'s.

use drover_proto::{limits, v1};

use super::cut;
use crate::drain::status::{Blocker, Phase, Status};
use crate::order::{Desired, DrainSpec, Order, OrderId, Policy};

/// A field of a message that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct BadField {
    /// Path of the field.
    pub field: &'static str,
    /// What is wrong.
    pub problem: &'static str,
}

/// An order with the coordinator's clock when it was sent.
///
/// # Errors
/// Names the bad field.
pub fn order(wire: v1::Order) -> Result<(Order, u64), BadField> {
    let bad = |field, problem| Err(BadField { field, problem });
    let desired = match (wire.desired(), wire.drain) {
        (v1::Desired::Active, None) => Desired::Active,
        (v1::Desired::Cordoned, None) => Desired::Cordoned,
        (v1::Desired::Draining, Some(drain)) => Desired::Draining(spec(drain)?),
        (v1::Desired::Draining, None) => return bad("order.drain", "is missing"),
        (v1::Desired::Unspecified, _) => return bad("order.desired", "is not set"),
        (_, Some(_)) => return bad("order.drain", "is set but nothing is drained"),
    };
    let id = OrderId {
        epoch: wire.epoch,
        generation: wire.generation,
    };
    Ok((Order { id, desired }, wire.now_unix_ms))
}

fn spec(drain: v1::Drain) -> Result<DrainSpec, BadField> {
    let bad = |field, problem| Err(BadField { field, problem });
    let policy = match drain.policy() {
        v1::DrainPolicy::Wait => Policy::Wait,
        v1::DrainPolicy::Evict => Policy::Evict,
        v1::DrainPolicy::Force => Policy::Force,
        v1::DrainPolicy::Unspecified => return bad("order.drain.policy", "is not set"),
    };
    if drain.id.is_empty() {
        return bad("order.drain.id", "is empty");
    }
    if drain.id.len() > limits::NAME_BYTES {
        return bad("order.drain.id", "is too long");
    }
    if drain.reason.len() > limits::TEXT_BYTES {
        return bad("order.drain.reason", "is too long");
    }
    Ok(DrainSpec {
        id: drain.id,
        policy,
        deadline_unix_ms: (drain.deadline_unix_ms != 0).then_some(drain.deadline_unix_ms),
        grace_ms: drain.grace_ms,
        reason: drain.reason,
    })
}

/// The order in force, for Hello.
#[must_use]
pub fn order_to_wire(order: &Order) -> v1::Order {
    let (desired, drain) = match &order.desired {
        Desired::Active => (v1::Desired::Active, None),
        Desired::Cordoned => (v1::Desired::Cordoned, None),
        Desired::Draining(spec) => (v1::Desired::Draining, Some(spec_to_wire(spec))),
    };
    v1::Order {
        epoch: order.id.epoch,
        generation: order.id.generation,
        desired: desired.into(),
        drain,
        now_unix_ms: 0,
    }
}

fn spec_to_wire(spec: &DrainSpec) -> v1::Drain {
    let policy = match spec.policy {
        Policy::Wait => v1::DrainPolicy::Wait,
        Policy::Evict => v1::DrainPolicy::Evict,
        Policy::Force => v1::DrainPolicy::Force,
    };
    v1::Drain {
        id: spec.id.clone(),
        policy: policy.into(),
        deadline_unix_ms: spec.deadline_unix_ms.unwrap_or(0),
        grace_ms: spec.grace_ms,
        reason: spec.reason.clone(),
    }
}

/// The state of an order.
#[must_use]
pub fn status(status: Status) -> v1::OrderStatus {
    let state = match status.phase {
        None => v1::DrainState::Unspecified,
        Some(Phase::Requested) => v1::DrainState::Requested,
        Some(Phase::Cordoning) => v1::DrainState::Cordoning,
        Some(Phase::Waiting) => v1::DrainState::Waiting,
        Some(Phase::Evicting) => v1::DrainState::Evicting,
        Some(Phase::Confirming) => v1::DrainState::Confirming,
        Some(Phase::Drained) => v1::DrainState::Drained,
        Some(Phase::Blocked) => v1::DrainState::Blocked,
        Some(Phase::Cancelled) => v1::DrainState::Cancelled,
        Some(Phase::RolledBack) => v1::DrainState::RolledBack,
    };
    v1::OrderStatus {
        epoch: status.order.epoch,
        generation: status.order.generation,
        refused: status.refused.unwrap_or_default(),
        drain_id: status.drain_id,
        drain_state: state.into(),
        blockers: status
            .blockers
            .iter()
            .take(limits::BLOCKERS)
            .map(blocker)
            .collect(),
        workloads_at_start: status.workloads_at_start,
        workloads_now: status.workloads_now,
        reason: cut(&status.reason, limits::TEXT_BYTES),
        ended: status.ended.into_iter().take(limits::WORKLOADS).collect(),
    }
}

fn blocker(blocker: &Blocker) -> v1::Blocker {
    v1::Blocker {
        kind: blocker.kind.as_str().to_owned(),
        subject: cut(&blocker.subject, limits::NAME_BYTES),
        message: cut(&blocker.message, limits::TEXT_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(desired: v1::Desired, drain: Option<v1::Drain>) -> v1::Order {
        v1::Order {
            epoch: 3,
            generation: 7,
            desired: desired.into(),
            drain,
            now_unix_ms: 11,
        }
    }

    fn drain(policy: v1::DrainPolicy, id: &str) -> Option<v1::Drain> {
        Some(v1::Drain {
            id: id.into(),
            policy: policy.into(),
            deadline_unix_ms: 0,
            grace_ms: 5,
            reason: "r".into(),
        })
    }

    #[test]
    fn orders_go_both_ways_and_bad_fields_are_named() {
        use v1::Desired::{Active, Cordoned, Draining, Unspecified};
        use v1::DrainPolicy::{Force, Unspecified as NoPolicy, Wait};
        for good in [
            wire(Active, None),
            wire(Cordoned, None),
            wire(Draining, drain(Wait, "d")),
            wire(Draining, drain(Force, "d")),
        ] {
            let (plain, now) = order(good.clone()).unwrap();
            assert_eq!(now, 11);
            let back = v1::Order {
                now_unix_ms: 11,
                ..order_to_wire(&plain)
            };
            assert_eq!(back, good);
        }
        for (bad, field) in [
            (wire(Unspecified, None), "order.desired"),
            (wire(Active, drain(Wait, "d")), "order.drain"),
            (wire(Draining, None), "order.drain"),
            (wire(Draining, drain(NoPolicy, "d")), "order.drain.policy"),
            (wire(Draining, drain(Wait, "")), "order.drain.id"),
            (
                wire(Draining, drain(Wait, &"x".repeat(257))),
                "order.drain.id",
            ),
        ] {
            assert_eq!(order(bad).unwrap_err().field, field);
        }
    }
}
