//! What was asked of pools and what came of it: which pools matter to a request, and each long word of a provider once.
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
/// Words of so many bytes are not said twice.
const LONG: usize = 48;

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
                last.what.push_str(", ");
                last.what.push_str(what);
            }
            _ => told.push(Act {
                at: event.at,
                pool: &event.subject,
                what: what.to_owned(),
                why,
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
}

impl Act<'_> {
    /// On one line.
    pub(super) fn told(&self) -> String {
        let Self {
            at,
            pool,
            what,
            why,
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
    let pools = view.pools.iter();
    let pools = pools.filter(|pool| concerns(view, request, pool));
    let pools: BTreeSet<PoolId> = pools.map(|pool| pool.name.clone()).collect();
    let waits = request.units_missing > 0;
    let until = record.closed.as_ref().map(|(at, _)| *at);
    let until = until.or(record.served.filter(|_| !waits));
    move |event| {
        let launch = event.launch.as_ref();
        launch
            .and_then(|launch| known.get(launch).copied())
            .unwrap_or_else(|| {
                event.at >= record.submitted
                    && until.is_none_or(|until| event.at <= until)
                    && pools.iter().any(|pool| pool.as_str() == event.subject)
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

/// The same lines, with long words that an earlier line has said replaced.
pub(super) fn once(lines: Vec<String>) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        let short = shortened(&line, &said);
        said.push(line);
        if !shown.contains(&short) {
            shown.push(short);
        }
    }
    shown
}

/// From the first point on from which everything was said before.
fn shortened(line: &str, said: &[String]) -> String {
    let points = [": ", " ("].into_iter().flat_map(|mark| {
        let ends = line.match_indices(mark);
        ends.map(move |(at, _)| at + mark.len())
    });
    let mut points: Vec<usize> = points.collect();
    points.sort_unstable();
    // What it is about stays; so does what failed, in a line that tells when.
    let dated = line.starts_with(|first: char| first.is_ascii_digit());
    let kept = usize::from(dated || points.len() > 1);
    for at in points.into_iter().skip(kept) {
        let (before, rest) = line.split_at(at);
        let (rest, close) = match rest.strip_suffix(')') {
            Some(inner) if before.ends_with(" (") => (inner, ")"),
            _ => (rest, ""),
        };
        if rest.len() >= LONG && said.iter().any(|line| line.contains(rest)) {
            return format!("{before}as above{close}");
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Severity;

    const WORDS: &str = "LaunchInstances in us-east-1: config (ValidationError): the security group sg-1 does not exist";

    fn event(at: u64, what: &str, message: String) -> Arc<EventRecord> {
        Arc::new(EventRecord {
            seq: at,
            at: UnixMs(at),
            kind: "pool".to_owned(),
            subject: "p4".to_owned(),
            what: what.to_owned(),
            message,
            severity: Severity::Info,
            launch: None,
            requests: None,
        })
    }

    #[test]
    fn one_failure_of_four_zones_is_one_line_and_its_words_are_said_once() {
        let failed = |zone: &str| {
            let message = format!("p4/p4d/{zone}/on-demand: config ({WORDS})");
            event(7_000, "launch_failed", message)
        };
        let events = [
            event(5_000, "launch_asked", "asks for 2".to_owned()),
            failed("a"),
            failed("b"),
            failed("c"),
            failed("d"),
            event(7_000, "joined", "nothing of ours".to_owned()),
        ];
        let told: Vec<String> = acts(events.iter()).iter().map(Act::told).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[1].contains("p4/p4d/a/on-demand, p4/p4d/b/on-demand, "),
            "{told:?}"
        );

        let mut lines = vec![format!("stopped: config: {WORDS}; once that is mended")];
        lines.extend(told);
        lines.push(format!(
            "p4/p4d/a/on-demand: transient, probed with the next demand ({WORDS})"
        ));
        let shown = once(lines);
        let times = shown.iter().filter(|line| line.contains("sg-1")).count();
        assert_eq!(times, 1, "{shown:?}");
        assert!(shown[2].ends_with("config (as above)"), "{shown:?}");
        assert!(shown[3].ends_with("next demand (as above)"), "{shown:?}");
    }

    #[test]
    fn what_failed_is_never_shortened_away() {
        let offering = "p4/p4d.24xlarge/us-east-1a/on-demand: transient";
        let again = format!("2026-11-30 12:00:07Z p4: {offering} ({WORDS})");
        let lines = vec![
            format!("2026-11-30 12:00:01Z p4: {offering} ({WORDS})"),
            again,
        ];
        let shown = once(lines);
        let said = "12:00:07Z p4: p4/p4d.24xlarge/us-east-1a/on-demand: as above";
        assert!(shown[1].ends_with(said), "{shown:?}");
    }

    #[test]
    fn acts_of_several_pools_stand_as_they_happened() {
        let of = |pool: &str, what: &str, message: &str| {
            let mut found = event(7_000, what, message.to_owned());
            Arc::make_mut(&mut found).subject = pool.to_owned();
            found
        };
        let events = [
            of("p4", "launch_asked", "asks for 2"),
            of("p4", "launch_failed", "p4/a: shortage (none)"),
            of("b", "launch_asked", "asks for 2"),
            of("p4", "launch_failed", "p4/b: shortage (none)"),
        ];
        let told: Vec<&str> = acts(events.iter()).iter().map(|act| act.pool).collect();
        assert_eq!(told, ["p4", "p4", "b", "p4"]);
    }

    #[test]
    fn short_words_and_new_ones_stay() {
        let lines = [
            "a: shortage (none)",
            "b: shortage (none)",
            "a: shortage (none)",
        ];
        let shown = once(lines.map(str::to_owned).to_vec());
        assert_eq!(shown, ["a: shortage (none)", "b: shortage (none)"]);
    }
}
