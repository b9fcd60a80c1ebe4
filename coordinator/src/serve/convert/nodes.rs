//! Nodes from the fleet's view to the wire. Used by `serve/admin`; decides nothing.

use crate::control::view::{AssignmentView, NodeView, UnitState};
use crate::records::{DesiredState, DrainPolicy, DrainRecord, DrainStep, OrderRecord, Then};
use drover_core::model::{Lifecycle, PoolKind, UnixMs};
use drover_proto::v1;

/// A node; `kind` is that of its pool, `now` goes into its order.
pub fn node(view: &NodeView, kind: Option<PoolKind>, now: UnixMs) -> v1::Node {
    let agent = view.agent.as_deref();
    let (cordoned_by, cordon_reason) = view.cordon.clone().unwrap_or_default();
    v1::Node {
        id: view.id.0.clone(),
        name: view.name.clone(),
        pool: view
            .pool
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        site: view
            .site
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        state: lifecycle(view.lifecycle).to_owned(),
        cordoned: view.cordon.is_some(),
        cordoned_by,
        cordon_reason,
        unreachable: view.unreachable,
        foreign: view.foreign,
        faulty: view.faulty.clone().unwrap_or_default(),
        reason: view.reason.clone(),
        facts: agent.map(|agent| agent.facts.as_ref().clone()),
        telemetry: agent.and_then(|agent| agent.telemetry.as_deref().cloned()),
        workloads: agent
            .and_then(|agent| agent.workloads.as_ref())
            .map(|list| list.items.clone())
            .unwrap_or_default(),
        conditions: agent
            .map(|agent| agent.conditions.clone())
            .unwrap_or_default(),
        instance_id: view
            .instance
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        instance_type: view.instance_type.clone(),
        zone: view.zone.clone(),
        price_micro_usd_per_hour: view.price.map(|price| price.0),
        joined_unix_ms: view.joined.map(|at| at.0).unwrap_or_default(),
        last_seen_unix_ms: view.last_seen.map(|at| at.0).unwrap_or_default(),
        idle_since_unix_ms: view.idle_since.map(|at| at.0),
        busy: view.busy.clone(),
        drain: view
            .drain
            .as_ref()
            .map(|drain| node_drain(view, drain, kind)),
        assignments: view.assignments.iter().map(assignment).collect(),
        gpus: view.gpus,
        gpus_free: view.gpus_free,
        gpu_model: view.gpu_model.clone(),
        desired: view.desired.as_ref().map(|record| order(record, now)),
        observed: agent.and_then(|agent| agent.observed.clone()),
        labels: view.labels.clone().into_iter().collect(),
        enrolled_with: view.enrolled_with.clone(),
        quarantine: view.quarantine.clone().unwrap_or_default(),
    }
}

/// Units of a request in one place.
pub fn assignment(view: &AssignmentView) -> v1::Assignment {
    v1::Assignment {
        request: view.request.0.clone(),
        node: view
            .node
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        node_name: view.node_name.clone(),
        instance_id: view
            .instance
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        pool: view
            .pool
            .as_ref()
            .map(|id| id.0.clone())
            .unwrap_or_default(),
        units: view.units,
        gpus: view.gpus,
        ready: view.state == UnitState::Ready,
    }
}

fn node_drain(view: &NodeView, drain: &DrainRecord, kind: Option<PoolKind>) -> v1::NodeDrain {
    // What the agent says counts only when it speaks of this drain.
    let status = view
        .agent
        .as_ref()
        .and_then(|agent| agent.order_status.as_ref())
        .filter(|status| status.drain_id == drain.id.0);
    let known = match drain.step {
        DrainStep::Requested => v1::DrainState::Requested,
        DrainStep::Running => v1::DrainState::Waiting,
        DrainStep::Drained | DrainStep::Leaving => v1::DrainState::Drained,
    };
    let said = status.map(v1::OrderStatus::drain_state);
    let state = match said {
        Some(said) if said != v1::DrainState::Unspecified && drain.step < DrainStep::Drained => {
            said
        }
        _ => known,
    };
    v1::NodeDrain {
        id: drain.id.0.clone(),
        policy: policy(drain.policy).into(),
        by: drain.by.clone(),
        reason: drain.reason.clone(),
        since_unix_ms: drain.since.0,
        deadline_unix_ms: drain.deadline.map(|at| at.0).unwrap_or_default(),
        state: state.into(),
        blockers: status
            .map(|status| status.blockers.clone())
            .unwrap_or_default(),
        workloads_at_start: status
            .map(|status| status.workloads_at_start)
            .unwrap_or_default(),
        workloads_now: status
            .map(|status| status.workloads_now)
            .unwrap_or_default(),
        then: then_word(drain.then, kind).to_owned(),
    }
}

fn order(record: &OrderRecord, now: UnixMs) -> v1::Order {
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
            deadline_unix_ms: drain.deadline.map(|at| at.0).unwrap_or_default(),
            grace_ms: drain.grace.0,
            reason: record.reason.clone(),
        }),
        now_unix_ms: now.0,
    }
}

const fn policy(policy: DrainPolicy) -> v1::DrainPolicy {
    match policy {
        DrainPolicy::Wait => v1::DrainPolicy::Wait,
        DrainPolicy::Evict => v1::DrainPolicy::Evict,
        DrainPolicy::Force => v1::DrainPolicy::Force,
    }
}

/// The policy of a wish; unspecified is wait.
pub const fn policy_from(policy: v1::DrainPolicy) -> DrainPolicy {
    match policy {
        v1::DrainPolicy::Unspecified | v1::DrainPolicy::Wait => DrainPolicy::Wait,
        v1::DrainPolicy::Evict => DrainPolicy::Evict,
        v1::DrainPolicy::Force => DrainPolicy::Force,
    }
}

const fn then_word(then: Then, kind: Option<PoolKind>) -> &'static str {
    match (then, kind) {
        (Then::Leave, Some(PoolKind::Static)) => "power_off",
        (Then::Leave, _) => "terminate",
        (Then::Cordoned, _) => "cordoned",
        (Then::Return, _) => "return",
    }
}

/// What follows a drain, as wished for a node of a pool of this kind.
///
/// # Errors
/// An unknown word, or one that does not fit the pool; the text says what would.
pub fn then_from(word: &str, kind: Option<PoolKind>) -> Result<Then, String> {
    match (word, kind) {
        ("" | "cordoned", _) => Ok(Then::Cordoned),
        ("return", _) => Ok(Then::Return),
        ("terminate", Some(PoolKind::Asg | PoolKind::Sim)) | ("power_off", Some(PoolKind::Static)) => {
            Ok(Then::Leave)
        }
        ("terminate", Some(PoolKind::Static)) => {
            Err("a physical host cannot be terminated; say power_off".to_owned())
        }
        ("power_off", Some(PoolKind::Asg | PoolKind::Sim)) => {
            Err("an instance is not powered off; say terminate".to_owned())
        }
        ("terminate" | "power_off", None) => {
            Err("the node is in no pool that the config names, so Drover cannot let it leave; say cordoned".to_owned())
        }
        (other, _) => Err(format!(
            "{other:?} is not known; say cordoned, terminate, power_off or return"
        )),
    }
}

/// A node's place in its life, in one word.
pub const fn lifecycle(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Requested => "requested",
        Lifecycle::Launched => "launched",
        Lifecycle::Joined => "joined",
        Lifecycle::Ready => "ready",
        Lifecycle::Draining => "draining",
        Lifecycle::Drained => "drained",
        Lifecycle::Leaving => "leaving",
        Lifecycle::Gone => "gone",
        Lifecycle::Off => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_drain_must_fit_the_pool() {
        for (word, kind, want) in [
            ("", None, Ok(Then::Cordoned)),
            ("cordoned", Some(PoolKind::Static), Ok(Then::Cordoned)),
            ("return", None, Ok(Then::Return)),
            ("terminate", Some(PoolKind::Asg), Ok(Then::Leave)),
            ("terminate", Some(PoolKind::Sim), Ok(Then::Leave)),
            ("power_off", Some(PoolKind::Static), Ok(Then::Leave)),
            ("terminate", Some(PoolKind::Static), Err("say power_off")),
            ("power_off", Some(PoolKind::Asg), Err("say terminate")),
            ("terminate", None, Err("say cordoned")),
            ("explode", None, Err("not known")),
        ] {
            match (then_from(word, kind), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{word}"),
                (Err(got), Err(want)) => assert!(got.contains(want), "{word}: {got}"),
                (got, want) => panic!("{word} {kind:?}: {got:?}, not {want:?}"),
            }
        }
    }
}
