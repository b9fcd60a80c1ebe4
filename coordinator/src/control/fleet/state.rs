//! How a node stands: silent, faulty, there or leaving, and who keeps work off it.
//!
//! Used by the join. Pure.

use super::join::Sources;
use super::sizes::count;
use crate::config::PoolConfig;
use crate::control::orders::DROVER;
use crate::ports::actuate::InstanceState;
use crate::ports::link::AgentView;
use crate::records::{DesiredState, DrainRecord, NodeRecord, OrderRecord};
use drover_core::model::{Cordon, Millis};
use drover_core::rules::lifecycle::Provider;

/// Silent for too long, or never heard since the start.
pub(super) fn unreachable(sources: &Sources<'_>, view: Option<&AgentView>) -> bool {
    let Some(view) = view else { return true };
    let silent = sources.mono.0.saturating_sub(view.last_seen_mono);
    silent > sources.config.control.silence.0
}

/// Why it must not get work, in words.
pub(super) fn faulty(
    sources: &Sources<'_>,
    record: &NodeRecord,
    pool: Option<&PoolConfig>,
    view: Option<&AgentView>,
    expected: u32,
    kind: &str,
) -> Option<String> {
    let view = view?;
    let told: Vec<&str> = view
        .conditions
        .iter()
        .filter(|condition| condition.faulty)
        .map(|condition| condition.message.as_str())
        .collect();
    if !told.is_empty() {
        return Some(told.join("; "));
    }
    // GPUs may come late (drivers, operators): only after the pool's deadline is that a fault.
    let deadline = pool.map_or(Millis::ZERO, |pool| pool.deadline_of(kind));
    let late = record.ready_at.is_some() || sources.now > record.joined.after(deadline);
    few_gpus(view, expected).filter(|_| late && view.workloads.is_some())
}

fn few_gpus(view: &AgentView, expected: u32) -> Option<String> {
    let has = count(view.facts.gpus.len());
    (has < expected).then(|| format!("{has} of {expected} GPUs"))
}

/// What its agent has not told yet of what a node needs to be ready, in words; `None`: nothing, or no agent speaks.
pub(super) fn lacks(view: Option<&AgentView>, expected: u32) -> Option<String> {
    let view = view?;
    let unlisted = || "its agent has not told what runs there".to_owned();
    few_gpus(view, expected).or_else(|| view.workloads.is_none().then(unlisted))
}

/// As the rules know what its provider says.
pub(super) fn provider(state: InstanceState) -> Provider {
    match state {
        InstanceState::Pending | InstanceState::Running => Provider::There,
        InstanceState::Leaving => Provider::Leaving,
        // Not among the nodes at all, see `join`.
        InstanceState::Gone | InstanceState::Warm => Provider::Gone,
    }
}

/// Ours only while nobody else keeps work off too (I7).
pub(super) fn cordon(
    order: Option<&OrderRecord>,
    drain: Option<&DrainRecord>,
    view: Option<&AgentView>,
) -> Option<Cordon> {
    let actual = view.and_then(|view| view.actual.as_ref());
    if let Some(actual) = actual {
        if actual.released {
            return Some(Cordon::Person {
                who: "root on the host".to_owned(),
                why: "drover-agent release".to_owned(),
            });
        }
        if !actual.foreign_cordon.is_empty() {
            return Some(Cordon::Person {
                who: "somebody outside Drover".to_owned(),
                why: actual.foreign_cordon.clone(),
            });
        }
    }
    let by = |by: &str, why: &str| {
        if by == DROVER {
            Cordon::Drover
        } else {
            Cordon::Person {
                who: by.to_owned(),
                why: why.to_owned(),
            }
        }
    };
    if let Some(drain) = drain {
        return Some(by(&drain.by, &drain.reason));
    }
    let order = order?;
    match order.desired {
        DesiredState::Active => None,
        DesiredState::Cordoned | DesiredState::Draining => Some(by(&order.by, &order.reason)),
    }
}
