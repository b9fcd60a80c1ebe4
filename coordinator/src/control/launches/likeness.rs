//! Whether a node that joins is what its template promised, and what was asked: models, GPUs, memory.
//!
//! Called with joins, and where a pool's offerings are read. **Invariant:** what a node has not told is no difference: GPUs
//! that never come are another matter (SC-08).

use crate::control::cycle::Round;
use crate::control::failures::recipe;
use crate::control::fleet::FleetNode;
use crate::records::{AssignmentRecord, PoolRecord, RequestSpec, UnlikeRecord};
use drover_core::model::{Bytes, Offering, OfferingId, PoolId};
use drover_core::planner::is_model;

/// Why a node cannot serve what was assigned to it, and what of the node is less than its offering promises.
pub(super) struct Misfit {
    pub(super) why: String,
    gpus: Option<u32>,
    memory: Option<Bytes>,
}

/// The model that a node's agent has told; `None`: none yet.
fn model(node: &FleetNode) -> Option<&str> {
    let facts = &node.agent.as_ref()?.facts;
    facts.gpus.first().map(|gpu| gpu.name.as_str())
}

/// Compares what a request asks with what a node has. Amounts count only once it is complete: GPUs may come late.
pub(super) fn misfit(
    node: &FleetNode,
    spec: &RequestSpec,
    held: &AssignmentRecord,
) -> Option<Misfit> {
    let misfit = |why: String, gpus, memory| Some(Misfit { why, gpus, memory });
    let (name, wanted) = (&node.name, &spec.gpu_model);
    if let Some(has) = model(node)
        && !wanted.is_empty()
        && !is_model(has, wanted)
    {
        let why = format!("{name} has {has}, the request asks for {wanted}");
        return misfit(why, None, None);
    }
    if !node.is_ready() || spec.whole_nodes {
        return None;
    }
    let facts = &node.agent.as_ref()?.facts;
    let gpus = u32::try_from(facts.gpus.len()).unwrap_or(u32::MAX);
    if gpus > 0 && gpus < held.amount.gpus {
        let asked = held.amount.gpus;
        let why = format!("{name} has {gpus} GPUs, the request asks for {asked} there");
        return misfit(why, Some(gpus), None);
    }
    let memory = facts.memory_bytes?;
    (memory < held.amount.memory.0).then(|| Misfit {
        why: format!(
            "{name} has {} of memory, the request asks for {} there",
            gib(memory),
            gib(held.amount.memory.0)
        ),
        gpus: None,
        memory: Some(Bytes(memory)),
    })
}

/// "61.5 GiB".
fn gib(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// What a join teaches about a pool's offerings; what is as promised takes back what another had taught. `asked` is what
/// its launch asked for. True: something new is not as promised.
pub(super) fn learn(
    round: &Round,
    settings: &mut PoolRecord,
    pool: &PoolId,
    node: &FleetNode,
    asked: Option<&OfferingId>,
    misfits: &[Misfit],
) -> bool {
    let reading = round.readings.get(pool);
    let of = node.offering.as_ref().or(asked);
    let mut offerings = reading.iter().flat_map(|reading| &reading.offerings);
    let Some(offering) = offerings.find(|found| Some(&found.id) == of) else {
        return false;
    };
    // A group that gives several types has one offering for all: only what was dropped says something of it.
    let (kind, promised) = (&node.instance_type, &offering.instance_type);
    let other = !kind.is_empty() && !promised.is_empty() && kind != promised;
    if other && misfits.is_empty() {
        return false;
    }
    let known = settings.unlike.iter().find(|one| one.is_of(offering));
    let before = known.cloned();
    let mut found = before.clone().unwrap_or_else(|| UnlikeRecord {
        instance_type: offering.instance_type.clone(),
        promised: offering.gpu_model.clone(),
        gpu_model: String::new(),
        gpus: None,
        memory: None,
        node: String::new(),
        recipe: None,
    });
    if let Some(has) = model(node).filter(|_| !offering.gpu_model.is_empty()) {
        let same = is_model(has, &offering.gpu_model);
        found.gpu_model = if same { String::new() } else { has.to_owned() };
    }
    if let (Some(room), Some(view)) = (&offering.allocatable, &node.agent) {
        let gpus = u32::try_from(view.facts.gpus.len()).unwrap_or(u32::MAX);
        found.gpus = found.gpus.filter(|_| gpus < room.gpus);
        let memory = view.facts.memory_bytes.map(Bytes);
        let enough = memory.is_some_and(|memory| memory >= room.memory);
        found.memory = found.memory.filter(|_| !enough);
    }
    for misfit in misfits {
        found.gpus = misfit.gpus.or(found.gpus);
        found.memory = misfit.memory.or(found.memory);
    }
    settings.unlike.retain(|one| !one.is_of(offering));
    if !found.differs() {
        return false;
    }
    let same = before.as_ref().is_some_and(|before| *before == found);
    if !same {
        found.node.clone_from(&node.name);
        found.recipe = recipe(round, pool);
    }
    settings.unlike.push(found);
    before.is_none()
}

/// An offering as its nodes really are.
pub(in crate::control) fn as_found(settings: &PoolRecord, offering: &mut Offering) {
    let Some(found) = settings.unlike.iter().find(|one| one.is_of(offering)) else {
        return;
    };
    if !found.gpu_model.is_empty() {
        offering.gpu_model.clone_from(&found.gpu_model);
    }
    if let Some(room) = &mut offering.allocatable {
        room.gpus = found.gpus.map_or(room.gpus, |gpus| gpus.min(room.gpus));
        room.memory = found
            .memory
            .map_or(room.memory, |most| most.min(room.memory));
    }
}

/// "host-7 has Tesla K80 where g5.xlarge should have a10g"; `None`: the pool's nodes are what was promised.
pub(in crate::control) fn told(settings: &PoolRecord, offerings: &[Offering]) -> Option<String> {
    let now = |one: &&UnlikeRecord| offerings.iter().any(|offering| one.is_of(offering));
    let all = settings.unlike.iter().filter(now).map(|one| {
        let (node, kind) = (&one.node, &one.instance_type);
        let kind = match kind.as_str() {
            "" => "its template",
            kind => kind,
        };
        let mut said = Vec::new();
        if !one.gpu_model.is_empty() {
            said.push(format!(
                "{} where {kind} should have {}",
                one.gpu_model, one.promised
            ));
        }
        if let Some(gpus) = one.gpus {
            said.push(format!("{gpus} GPUs, less than {kind} promises"));
        }
        if let Some(memory) = one.memory {
            said.push(format!(
                "{} of memory, less than {kind} promises",
                gib(memory.0)
            ));
        }
        format!("{node} has {}", said.join(" and "))
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join("; "))
}
