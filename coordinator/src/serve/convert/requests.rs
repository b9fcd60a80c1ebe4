//! Capacity requests and demand, both ways. Used by `serve/admin`. What comes from outside is bounded here and named
//! when it is wrong; whether it makes sense for the fleet is judged by `control::commands`.

use super::nodes::assignment;
use crate::control::view::{DemandView, RequestShown, RequestView};
use crate::records::RequestSpec;
use drover_core::model::{Bytes, Locality, MilliCpu, Millis, PoolId, Resources, UnixMs};
use drover_proto::{limits, v1};

/// Pools and labels that one request may name.
pub(super) const NAMED: usize = 64;

/// A field of a wish that is wrong: which, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadField(pub &'static str, pub String);

/// A short text of a wish.
///
/// # Errors
/// It is too long.
pub fn short(field: &'static str, text: &str, most: usize) -> Result<(), BadField> {
    if text.len() > most {
        return Err(BadField(
            field,
            format!("is longer than {most} bytes; shorten it"),
        ));
    }
    Ok(())
}

/// What is asked for, and under which name (empty: one is made). `now` is what a span until the deadline counts from.
///
/// # Errors
/// The first field that is wrong.
pub fn spec_from(
    mut spec: v1::RequestSpec,
    now: UnixMs,
) -> Result<(String, RequestSpec), BadField> {
    short("team", &spec.team, limits::NAME_BYTES)?;
    short("name", &spec.name, limits::NAME_BYTES)?;
    short("gpu_model", &spec.gpu_model, limits::NAME_BYTES)?;
    if spec.pools.len() > NAMED {
        return Err(BadField("pools", format!("are more than {NAMED}")));
    }
    if spec.labels.len() > NAMED {
        return Err(BadField("labels", format!("are more than {NAMED}")));
    }
    for pool in &spec.pools {
        short("pools", pool, limits::NAME_BYTES)?;
    }
    for (key, value) in &spec.labels {
        short("labels", key, limits::NAME_BYTES)?;
        short("labels", value, limits::NAME_BYTES)?;
        if key.is_empty() {
            return Err(BadField("labels", "one has no key".to_owned()));
        }
    }
    if !spec.gang && (spec.min_units > 0 || spec.hold_ms > 0) {
        let field = if spec.min_units > 0 {
            "min_units"
        } else {
            "hold_ms"
        };
        return Err(BadField(
            field,
            "is only for gangs; set gang as well".to_owned(),
        ));
    }
    let least = if spec.min_units == 0 {
        spec.units
    } else {
        spec.min_units
    };
    let deadline = deadline(&spec, now)?;
    let mut places = RequestSpec::default();
    super::places::take(&mut spec, &mut places)?;
    let wish = RequestSpec {
        gpu_milli: spec.gpu_milli_per_unit,
        team: spec.team,
        max_wait: span(spec.max_wait_ms),
        deadline,
        units: spec.units,
        unit: Resources {
            cpu: MilliCpu(spec.milli_cpus_per_unit),
            memory: Bytes(spec.memory_bytes_per_unit),
            gpus: spec.gpus_per_unit,
            ..Resources::default()
        },
        whole_nodes: spec.whole_nodes,
        gpu_model: spec.gpu_model,
        duration: span(spec.duration_ms),
        gang_min: spec.gang.then_some(least),
        locality: locality_from(&spec.locality)?,
        priority: spec.priority,
        pools: spec.pools.into_iter().map(PoolId).collect(),
        labels: spec.labels.into_iter().collect(),
        hold: span(spec.hold_ms),
        ..places
    };
    Ok((spec.name, wish))
}

/// A moment, or a span from now on, and not both.
fn deadline(spec: &v1::RequestSpec, now: UnixMs) -> Result<Option<UnixMs>, BadField> {
    match (spec.deadline_unix_ms, span(spec.deadline_in_ms)) {
        (Some(_), Some(_)) => {
            let why = "stands beside deadline_unix_ms; give one of the two";
            Err(BadField("deadline_in_ms", why.to_owned()))
        }
        (Some(at), None) => Ok(Some(UnixMs(at))),
        (None, Some(span)) => Ok(Some(now.after(span))),
        (None, None) => Ok(None),
    }
}

fn span(ms: u64) -> Option<Millis> {
    Some(Millis(ms)).filter(|span| *span != Millis::ZERO)
}

fn locality_from(word: &str) -> Result<Locality, BadField> {
    const ALL: [Locality; 5] = [
        Locality::Node,
        Locality::Pool,
        Locality::Zone,
        Locality::Site,
        Locality::Any,
    ];
    if word.is_empty() {
        return Ok(Locality::Any);
    }
    ALL.into_iter()
        .find(|l| locality_word(*l) == word)
        .ok_or_else(|| {
            BadField(
                "locality",
                format!("{word:?} is not known; say node, pool, zone, site or any"),
            )
        })
}

const fn locality_word(locality: Locality) -> &'static str {
    match locality {
        Locality::Node => "node",
        Locality::Pool => "pool",
        Locality::Zone => "zone",
        Locality::Site => "site",
        Locality::Any => "any",
    }
}

/// What was asked for.
pub fn spec(name: &str, spec: &RequestSpec) -> v1::RequestSpec {
    let mut told = v1::RequestSpec {
        team: spec.team.clone(),
        max_wait_ms: spec.max_wait.map(|span| span.0).unwrap_or_default(),
        deadline_unix_ms: spec.deadline.map(|at| at.0),
        gpu_milli_per_unit: spec.gpu_milli,
        name: name.to_owned(),
        units: spec.units,
        gpus_per_unit: spec.unit.gpus,
        milli_cpus_per_unit: spec.unit.cpu.0,
        memory_bytes_per_unit: spec.unit.memory.0,
        whole_nodes: spec.whole_nodes,
        gpu_model: spec.gpu_model.clone(),
        duration_ms: spec.duration.map(|span| span.0).unwrap_or_default(),
        gang: spec.gang_min.is_some(),
        min_units: spec.gang_min.unwrap_or_default(),
        locality: locality_word(spec.locality).to_owned(),
        priority: spec.priority,
        pools: spec.pools.iter().map(|id| id.0.clone()).collect(),
        labels: spec.labels.clone().into_iter().collect(),
        hold_ms: spec.hold.map(|span| span.0).unwrap_or_default(),
        ..v1::RequestSpec::default()
    };
    super::places::put(spec, &mut told);
    told
}

/// A request.
pub fn request(view: &RequestView) -> v1::Request {
    let record = &view.record;
    v1::Request {
        spec: Some(spec(record.name.as_str(), &record.spec)),
        state: view.shown.word().to_owned(),
        owner: record.owner.clone(),
        submitted_unix_ms: record.submitted.0,
        served_unix_ms: record.served.map(|at| at.0),
        // What is over ends no more.
        ends_unix_ms: record
            .ends
            .filter(|_| view.shown != RequestShown::Cancelled)
            .map(|at| at.0),
        assignments: view.assignments.iter().map(assignment).collect(),
        units_ready: view.units_ready,
        units_coming: view.units_coming,
        units_missing: view.units_missing,
        units_unavailable: view.units_unavailable,
        reasons: view.reasons.clone(),
    }
}

/// A class of demand.
pub fn demand(view: &DemandView) -> v1::Demand {
    let class = &view.class;
    v1::Demand {
        source: view.source.clone(),
        members: view.members.clone(),
        units: view.placed + view.unplaced,
        placed: view.placed,
        unplaced: view.unplaced,
        gpus_per_unit: class.unit.gpus,
        milli_cpus_per_unit: class.unit.cpu.0,
        memory_bytes_per_unit: class.unit.memory.0,
        gang: class.gang.is_some(),
        priority: class.priority,
        oldest_unix_ms: class.submitted.0,
        reasons: view.reasons.clone(),
    }
}

#[cfg(test)]
mod tests;
