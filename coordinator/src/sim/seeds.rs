//! Many days of small fleets with mishaps, one per seed; and the smallest scenario that still shows what a seed found.
//!
//! Called by `drover simulate seeds` and by the benchmarks. Uses no clock: who wants days per minute takes the time.

use super::config;
use super::engine::{self, SimError};
use super::history::History;
use super::scenario::Scenario;
use super::trace::Trace;
use serde::Serialize;

/// Runs that a minimiser makes at most.
const MOST_RUNS: u32 = 2_000;

/// What a seed violated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Seed.
    pub seed: u64,
    /// Name of the invariant.
    pub invariant: String,
    /// What happened first.
    pub what: String,
    /// Milliseconds since the start of the day.
    pub at_ms: u64,
}

/// What one day gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    /// First violation, if any.
    pub found: Option<Found>,
    /// Plans made.
    pub plans: u64,
    /// Jobs that were to run.
    pub jobs: u32,
    /// Jobs that ended.
    pub done: u32,
    /// Kills, whoever did it.
    pub kills: u32,
}

/// Plays the day of a seed.
///
/// # Errors
/// The simulation broke off: a fault of Drover's.
pub fn day(seed: u64) -> Result<Day, SimError> {
    let (history, jobs) = play(&Scenario::new(seed))?;
    let first = history.violations.first();
    Ok(Day {
        found: first.map(|(at, invariant, what)| Found {
            seed,
            invariant: invariant.clone(),
            what: what.clone(),
            at_ms: at.0,
        }),
        plans: history.plans,
        jobs,
        done: u32::try_from(history.jobs.iter().filter(|j| j.ended.is_some()).count())
            .unwrap_or(u32::MAX),
        kills: history.jobs.iter().map(|job| job.kills).sum(),
    })
}

fn play(scenario: &Scenario) -> Result<(History, u32), SimError> {
    let setup = config::parse(&scenario.text()).map_err(|problems| {
        SimError::Broke(format!("a scenario of ours is wrong: {problems:?}"))
    })?;
    let mut trace = Trace {
        name: format!("seed {}", scenario.seed),
        jobs: setup.simulate.jobs.clone(),
        skipped: Vec::new(),
    };
    trace.sort();
    engine::leave_out_unfit(&mut trace, &setup);
    let jobs = u32::try_from(trace.jobs.len()).unwrap_or(u32::MAX);
    Ok((engine::run(&trace, &setup, scenario.seed)?, jobs))
}

/// The file of a seed's scenario, made as small as it still violates the same invariant. A seed that violates nothing
/// gives its whole scenario.
#[must_use]
pub fn smallest(seed: u64) -> String {
    let whole = Scenario::new(seed);
    let wanted = violated(&whole);
    let Some(wanted) = wanted else {
        return whole.text();
    };
    minimise(whole, |scenario| {
        violated(scenario).as_ref() == Some(&wanted)
    })
    .text()
}

/// The first invariant that it violates; a run that breaks off counts as one of its own.
fn violated(scenario: &Scenario) -> Option<String> {
    match play(scenario) {
        Ok((history, _)) => history
            .violations
            .first()
            .map(|(_, which, _)| which.clone()),
        Err(SimError::Stuck { awaited, .. }) => Some(format!("waits for ever for {awaited}")),
        Err(error) => Some(format!("broke off: {error}")),
    }
}

/// One way to make a scenario smaller; false when there is nothing left to try at this place.
type Cut = fn(&mut Scenario, usize) -> bool;

const CUTS: [Cut; 6] = [
    |scenario, at| cut(&mut scenario.faults, at, 1),
    |scenario, at| {
        let half = scenario.jobs.len() / 2;
        half > 1 && cut(&mut scenario.jobs, at * half, half)
    },
    |scenario, at| cut(&mut scenario.jobs, at, 1),
    |scenario, at| scenario.regions.len() > 1 && cut(&mut scenario.regions, at, 1),
    |scenario, at| {
        let mut at = at;
        for region in &mut scenario.regions {
            if at < region.windows.len() {
                return cut(&mut region.windows, at, 1);
            }
            at -= region.windows.len();
        }
        false
    },
    |scenario, at| {
        let mut at = at;
        for region in &mut scenario.regions {
            if at < region.trouble.len() {
                return cut(&mut region.trouble, at, 1);
            }
            at -= region.trouble.len();
        }
        false
    },
];

fn cut<T>(list: &mut Vec<T>, at: usize, count: usize) -> bool {
    if at >= list.len() {
        return false;
    }
    let end = (at + count).min(list.len());
    list.drain(at..end);
    true
}

/// Takes away whatever `fails` does not need, until nothing more can go.
fn minimise(mut scenario: Scenario, mut fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    let mut runs = 0;
    let mut smaller = true;
    while std::mem::take(&mut smaller) {
        for cut in CUTS {
            let mut at = 0;
            while runs < MOST_RUNS {
                let mut tried = scenario.clone();
                if !cut(&mut tried, at) {
                    break;
                }
                runs += 1;
                if fails(&tried) {
                    scenario = tried;
                    smaller = true;
                } else {
                    at += 1;
                }
            }
        }
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimiser_keeps_only_what_the_failure_needs() {
        let whole = (0..100)
            .map(Scenario::new)
            .find(|s| s.faults.len() > 2 && s.jobs.len() > 10 && s.regions.len() > 1)
            .expect("such a seed");
        let (job, fault) = (whole.jobs[7].clone(), whole.faults[1].clone());
        let region = whole.regions[1].clone();
        let small = minimise(whole.clone(), |scenario| {
            scenario.jobs.contains(&job)
                && scenario.faults.contains(&fault)
                && scenario.regions.iter().any(|r| r.name == region.name)
        });
        assert_eq!((&small.jobs, &small.faults), (&vec![job], &vec![fault]));
        assert_eq!(small.regions.len(), 1);
        assert!(small.regions[0].windows.is_empty() && small.regions[0].trouble.is_empty());
    }

    #[test]
    fn days_with_mishaps_violate_nothing() {
        for seed in 0..12 {
            let day = day(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(
                day.found, None,
                "`drover simulate seeds --first {seed}` shows it"
            );
        }
    }
}
