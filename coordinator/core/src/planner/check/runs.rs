//! Placements: capacity is counted once (I4), only on what takes work (I6, I7), where the rules allow (I5), gangs whole
//! and together (I8).

use super::facts::Facts;
use super::names;
use super::near::Replay;
use super::taken::Targets;
use super::{Culprit, Violation};
use crate::model::{Action, Locality, PoolId, Run, SiteId, Source, Target};
use crate::planner::matching::Place;
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut targets = Targets::new(facts);
    let mut sums: Vec<Sum<'_>> = Vec::new();
    sums.resize_with(facts.input.classes.len(), Sum::default);
    let mut replay = Replay::new(facts);
    for (i, run) in facts.planned.plan.runs.iter().enumerate() {
        let mut say = |invariant, why: String| {
            found.push(Violation {
                invariant,
                why,
                culprit: Culprit::Run(i),
            })
        };
        let Some(class) = facts.class(run) else {
            say(names::I4, format!("no class {}", run.class));
            continue;
        };
        let sum = &mut sums[run.class as usize];
        if sum.units + u64::from(run.count) > u64::from(class.count) {
            say(
                names::I4,
                format!("more units placed than the {} that wait", class.count),
            );
            continue;
        }
        sum.units += u64::from(run.count);
        if !class.constraints.unsupported.is_empty() {
            say(
                names::I9,
                "the class has rules that Drover does not know".to_owned(),
            );
            continue;
        }
        if matches!(run.target, Target::New { would: true, .. }) {
            continue;
        }
        let slot = match targets.slot(run) {
            Ok(slot) => slot,
            Err((invariant, why)) => {
                say(invariant, why);
                continue;
            }
        };
        if let Some(differs) = slot.place.differs(&class.constraints) {
            say(names::I5, format!("may not go there: {differs}"));
            continue;
        }
        let assigned = match (&class.source, &run.target) {
            (Source::Request(_), Target::Node(id)) => {
                facts.nodes.get(id).map_or(0, |n| Facts::assigned(n, class))
            }
            _ => 0,
        };
        if let Err(why) = slot.put(run, class, assigned) {
            say(names::I4, why);
        }
        if let Err((of, why)) = replay.end_of_batch(Some(run.class)) {
            found.extend(uneven(&sums, of, why));
        }
        let sum = &mut sums[run.class as usize];
        sum.last = Some(i);
        if let Some(gang) = &class.gang
            && let Some(home) = home(gang.locality, run, &slot.place)
        {
            sum.apart |= *sum.home.get_or_insert(home) != home;
        }
        if let Err(why) = replay.place(run, class, slot) {
            found.push(Violation {
                invariant: names::I5,
                why: format!("may not go there: {why}"),
                culprit: Culprit::Run(i),
            });
        }
    }
    if let Err((of, why)) = replay.end_of_batch(None) {
        found.extend(uneven(&sums, of, why));
    }
    found.extend(gangs(facts, &sums));
    found
}

/// A class is spread unevenly: its last run is at fault.
fn uneven(sums: &[Sum<'_>], class: u32, why: String) -> Option<Violation> {
    let last = sums.get(class as usize)?.last;
    last.map(|run| Violation {
        invariant: names::I5,
        why: format!("spread: {why}"),
        culprit: Culprit::Run(run),
    })
}

/// Gangs: all of the minimum or nothing, in one domain.
fn gangs(facts: &Facts<'_>, sums: &[Sum<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut by_class: BTreeMap<u32, Vec<(usize, &Run)>> = BTreeMap::new();
    for (i, run) in facts.planned.plan.runs.iter().enumerate() {
        let class = facts.class(run);
        let gang = class.is_some_and(|c| c.gang.is_some());
        if gang && !matches!(run.target, Target::New { would: true, .. }) {
            by_class.entry(run.class).or_default().push((i, run));
        }
    }
    for (class, runs) in by_class {
        let Some(gang) = facts
            .input
            .classes
            .get(class as usize)
            .and_then(|c| c.gang.as_ref())
        else {
            continue;
        };
        let placed = runs
            .iter()
            .fold(gang.assigned, |sum, (_, r)| sum.saturating_add(r.count));
        let why = if placed < gang.min {
            Some(format!("{placed} of at least {} units placed", gang.min))
        } else if sums.get(class as usize).is_some_and(|sum| sum.apart) {
            Some(format!("units are not in one {:?}", gang.locality).to_lowercase())
        } else {
            None
        };
        if let Some(why) = why {
            let each = |(i, _): &(usize, &Run)| Violation {
                invariant: names::I8,
                why: why.clone(),
                culprit: Culprit::Run(*i),
            };
            found.extend(runs.iter().map(each));
        }
    }
    for (i, action) in facts.planned.plan.actions.iter().enumerate() {
        if let Action::Release { request, .. } = action {
            let held = facts.input.classes.iter().any(|c| {
                c.source == Source::Request(request.clone())
                    && c.gang.as_ref().is_some_and(|g| g.assigned > 0)
            });
            if !held {
                let why = format!("{request} has nothing to release");
                found.push(Violation {
                    invariant: names::I8,
                    why,
                    culprit: Culprit::Action(i),
                });
            }
        }
    }
    found
}

/// What the runs of one class come to.
#[derive(Default)]
struct Sum<'a> {
    units: u64,
    /// The last run that was looked at.
    last: Option<usize>,
    /// Where the first unit of a gang is.
    home: Option<Home<'a>>,
    /// Some unit of the gang is in another place.
    apart: bool,
}

/// Where a gang's unit is, as far as its locality goes.
#[derive(Clone, Copy, PartialEq)]
enum Home<'a> {
    Site(Option<&'a SiteId>),
    Zone(Option<&'a SiteId>, &'a str),
    Pool(Option<&'a PoolId>),
    Node(&'a Target),
}

fn home<'a>(locality: Locality, run: &'a Run, place: &Place<'a>) -> Option<Home<'a>> {
    match locality {
        Locality::Any => None,
        Locality::Site => Some(Home::Site(place.site)),
        Locality::Zone => Some(Home::Zone(place.site, place.zone)),
        Locality::Pool => Some(Home::Pool(place.pool)),
        Locality::Node => Some(Home::Node(&run.target)),
    }
}
