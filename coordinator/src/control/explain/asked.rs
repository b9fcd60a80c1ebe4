//! What was asked of pools and what came of it: which pools and which asks matter to a request.
//!
//! Called by `explain`. Pure.

use crate::control::events::{failure_word, time};
use crate::control::input::probes;
use crate::control::view::{FleetView, PoolView, RequestView};
use crate::records::{AssignmentTarget, EventRecord, RequestSpec};
use drover_core::model::{LaunchId, PoolId, PoolInput, Reason, Source, UnixMs};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Acts that are told of each pool.
const TOLD: usize = 8;
/// What is an act of asking, or what came of it.
const ASKING: [&str; 8] = [
    "launch_asked",
    "launch_accepted",
    "launch_granted",
    "launch_failed",
    "launch_settled",
    "launch_missed",
    "launch_lost",
    "withdrawn",
];

/// Of these, what brought less than was asked for.
const FAILING: [&str; 4] = ["launch_failed", "launch_missed", "launch_lost", "withdrawn"];

/// The newest acts of asking each pool and what came of them, in the order in which they happened. What failed at once in
/// several offerings of a pool for one reason is one line.
pub(super) fn acts<'e>(events: impl Iterator<Item = &'e Arc<EventRecord>>) -> Vec<Act<'e>> {
    let mut told: Vec<Act<'e>> = Vec::new();
    for event in events.filter(|event| ASKING.contains(&event.what.as_str())) {
        let failed = (event.what == "launch_failed")
            .then(|| event.message.split_once(": "))
            .flatten();
        let (what, why) = failed.unwrap_or((&event.message, ""));
        match told.last_mut() {
            Some(last)
                if !why.is_empty()
                    && last.why == why
                    && last.at == event.at
                    && last.pool == event.subject =>
            {
                if !last.what.split(", ").any(|said| said == what) {
                    last.what.push_str(", ");
                    last.what.push_str(what);
                }
            }
            _ => told.push(Act {
                at: event.at,
                pool: &event.subject,
                what: what.to_owned(),
                why,
                // What a group says of nobody's ask is no ask that failed.
                failed: FAILING.contains(&event.what.as_str())
                    && (event.what != "launch_failed" || event.launch.is_some()),
            }),
        }
    }
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    let mut newest: Vec<Act<'e>> = told
        .into_iter()
        .rev()
        .filter(|act| {
            let count = left.entry(act.pool).or_default();
            *count += 1;
            *count <= TOLD
        })
        .collect();
    newest.reverse();
    newest
}

/// One act of asking, or what came of it.
pub(super) struct Act<'e> {
    at: UnixMs,
    /// Of which pool.
    pub(super) pool: &'e str,
    what: String,
    /// Why it failed; empty: it did not.
    why: &'e str,
    /// It brought less than was asked for.
    pub(super) failed: bool,
}

impl Act<'_> {
    /// On one line.
    pub(super) fn told(&self) -> String {
        let Self {
            at,
            pool,
            what,
            why,
            ..
        } = self;
        match *why {
            "" => format!("{} {pool}: {what}", time(*at)),
            why => format!("{} {pool}: {what}: {why}", time(*at)),
        }
    }
}

/// Whether an event tells of something that was asked for the request: what is known to be for others is nothing to it, and
/// where that is not known, what happened while it waited is told.
pub(super) fn its_own<'e>(
    view: &FleetView,
    request: &'e RequestView,
    events: &'e [Arc<EventRecord>],
) -> impl Fn(&EventRecord) -> bool + 'e {
    let record = &request.record;
    let mut known: BTreeMap<&LaunchId, bool> = BTreeMap::new();
    for event in events {
        if let (Some(launch), Some(requests)) = (&event.launch, &event.requests) {
            known.insert(launch, requests.contains(&record.name));
        }
    }
    // What it waits for it has been given, whoever it was asked for.
    for held in &record.assignments {
        if let AssignmentTarget::Launch(launch, _) = &held.target {
            known.insert(launch, true);
        }
    }
    // A withdrawal, which names no launch, is about what the pool was asked for last. A failure that names none may be of
    // whoever else changes the group: it is nobody's.
    let mut last: BTreeMap<&str, bool> = BTreeMap::new();
    let mut about_it: BTreeSet<u64> = BTreeSet::new();
    for event in events {
        let own = event.launch.as_ref().and_then(|launch| known.get(launch));
        if event.what == "launch_asked" {
            last.insert(&event.subject, own.copied().unwrap_or(false));
        } else if event.what == "withdrawn" && last.get(event.subject.as_str()) == Some(&true) {
            about_it.insert(event.seq);
        }
    }
    let pools = view.pools.iter();
    let pools = pools.filter(|pool| concerns(view, request, pool));
    let pools: BTreeSet<PoolId> = pools.map(|pool| pool.name.clone()).collect();
    let waits = request.units_missing > 0;
    let until = record.closed.as_ref().map(|(at, _)| *at);
    let until = until.or(record.served.filter(|_| !waits));
    move |event| {
        let launch = event.launch.as_ref();
        let own = launch.and_then(|launch| known.get(launch).copied());
        // There may have been another of that name.
        event.at >= record.submitted
            && own.unwrap_or_else(|| {
                let waited = until.is_none_or(|until| event.at <= until);
                let of_a_pool = || pools.iter().any(|pool| pool.as_str() == event.subject);
                about_it.contains(&event.seq) || (waited && of_a_pool())
            })
    }
}

/// What is remembered of a pool's offerings, in the provider's words.
pub(super) fn remembered(pool: &PoolView, now: UnixMs) -> Vec<String> {
    let all = pool.offerings.iter();
    all.filter_map(|(offering, memory)| {
        let memory = memory.as_ref()?;
        let next = if memory.next_probe > now {
            format!("next probe at {}", time(memory.next_probe))
        } else if pool.launches.iter().any(|l| probes(l, memory, now)) {
            "its probe is under way".to_owned()
        } else {
            "probed with the next demand".to_owned()
        };
        Some(format!(
            "{}: {}, {next} ({})",
            offering.id,
            failure_word(memory.kind),
            memory.message
        ))
    })
    .collect()
}

/// Whether a pool could serve a unit of the request, or has some: what was asked of others is nothing to it.
pub(super) fn concerns(view: &FleetView, request: &RequestView, pool: &PoolView) -> bool {
    let spec = &request.record.spec;
    if !spec.pools.is_empty() && !spec.pools.contains(&pool.name) {
        return false;
    }
    let mut places = request.assignments.iter();
    if places.any(|found| found.pool.as_ref() == Some(&pool.name)) {
        return true;
    }
    let source = Source::Request(request.record.name.clone());
    let Some((input, planned)) = view.plan.as_deref() else {
        return true;
    };
    let mut classes = input.classes.iter().zip(&planned.report.classes);
    let class = classes.find(|(class, _)| class.source == source);
    let mut reasons = class.iter().flat_map(|(_, outcome)| &outcome.reasons);
    let unfit = reasons.any(|reason| match reason {
        Reason::PoolDiffers { pool: of, .. }
        | Reason::PoolTooSmall { pool: of, .. }
        | Reason::UnknownType { pool: of, .. } => *of == pool.name,
        _ => false,
    });
    let template = input.pools.iter().find(|known| known.id == pool.name);
    if unfit || template.is_some_and(|template| !takes(template, spec)) {
        return false;
    }
    // When all of it has a place, no plan says more.
    let unit = spec.whole_unit();
    let model = plain(&spec.gpu_model);
    pool.offerings.is_empty()
        || pool.offerings.iter().any(|(offering, _)| {
            let room = offering.allocatable.as_ref();
            room.is_some_and(|room| unit.fits(room)) && plain(&offering.gpu_model).contains(&model)
        })
}

/// Labels and taints of the pool's nodes let a unit of the request in, as far as every node of it has them alike.
fn takes(pool: &PoolInput, spec: &RequestSpec) -> bool {
    let alike = |key: &str| !key.contains("kubernetes.io/");
    let mut labels = spec.labels.iter().filter(|(key, _)| alike(key));
    let mut rules = spec.rules.iter().filter(|rule| alike(&rule.key));
    let mut taints = pool.taints.iter();
    labels.all(|(key, value)| pool.labels.get(key) == Some(value))
        && rules.all(|rule| rule.holds(pool.labels.get(&rule.key).map(String::as_str)))
        && taints.all(|(key, value)| {
            let tolerated = spec.tolerations.get(key);
            tolerated.is_some_and(|values| values.is_empty() || values.contains(value))
        })
}

/// A GPU model without case, blanks and dashes.
fn plain(model: &str) -> String {
    let known = model.chars().filter(char::is_ascii_alphanumeric);
    known.collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
