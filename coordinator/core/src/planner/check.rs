//! Check: the invariants, read off the input and the plan alone. An action that violates one is dropped together with
//! what depends on it, loudly; the rest goes on. Called by `plan` before any plan leaves the core, and by tests and the
//! simulator through `violations`. **Invariant:** shares no bookkeeping with the planner; what it shares is
//! `matching` (what a label rule means).

mod actions;
mod budgets;
mod cheapest;
mod dropping;
mod facts;
mod gaps;
mod near;
mod removals;
mod reserved;
mod runs;
mod shares;
mod standing;
mod taken;

use crate::model::{PlanInput, Planned, Reason};
use facts::Facts;
use std::collections::BTreeMap;

/// Names of the invariants, as in DESIGN 3, of two habits of DESIGN 9, and of what demand states.
pub(super) mod names {
    pub const I1: &str = "I1 no_job_killed";
    pub const I3: &str = "I3 never_beyond_limits";
    pub const I4: &str = "I4 ask_once";
    pub const I5: &str = "I5 mine_only";
    pub const I6: &str = "I6 silence_is_not_death";
    pub const I7: &str = "I7 undo_only_own";
    pub const I8: &str = "I8 gang_whole";
    pub const I9: &str = "I9 always_explained";
    pub const I11: &str = "I11 bounded_retry";
    pub const I12: &str = "I12 cheapest_first";
    pub const I13: &str = "I13 idle_needs_witnesses";
    pub const MODE: &str = "pool mode";
    pub const STOP: &str = "pool stopped";
    pub const DEADLINE: &str = "deadline";
}

/// What is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Culprit {
    /// Index in the plan's actions.
    Action(usize),
    /// Index in the plan's runs.
    Run(usize),
    /// The report lacks something.
    Report,
}

/// One violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its name, as in DESIGN 3.
    pub invariant: &'static str,
    /// Why, for people.
    pub why: String,
    /// What is at fault.
    pub culprit: Culprit,
}

/// All that a plan violates; empty for a plan that may be executed.
#[must_use]
pub fn violations(input: &PlanInput, planned: &Planned) -> Vec<Violation> {
    let facts = Facts::new(input, planned);
    let mut found = runs::check(&facts);
    found.extend(actions::check(&facts));
    found.extend(budgets::check(&facts));
    found.extend(reserved::check(&facts));
    found.extend(gaps::report(input, planned));
    found
}

/// Drops what violates an invariant, with what depends on it. Pure.
#[must_use]
pub fn check(input: &PlanInput, mut planned: Planned) -> Planned {
    let mut reasons: BTreeMap<u32, Reason> = BTreeMap::new();
    // Each round removes at least one action or run, or ends. Of a class that is at fault again and again twice as many
    // runs go each time, so that there are few rounds, however many runs there are.
    let rounds = planned.plan.actions.len() + planned.plan.runs.len() + 2;
    let mut changed = false;
    for round in 0..rounds {
        let found = violations(input, &planned);
        if found.is_empty() {
            break;
        }
        let mut bad_actions: BTreeMap<usize, &Violation> = BTreeMap::new();
        let mut bad_runs: BTreeMap<usize, &Violation> = BTreeMap::new();
        for violation in &found {
            match violation.culprit {
                Culprit::Action(a) => drop(bad_actions.entry(a).or_insert(violation)),
                Culprit::Run(r) => drop(bad_runs.entry(r).or_insert(violation)),
                Culprit::Report => {}
            }
        }
        if bad_actions.is_empty() && bad_runs.is_empty() {
            break;
        }
        changed = true;
        let more = (1_usize << round.min(40)) - 1;
        dropping::with_those_before(&planned.plan.runs, &mut bad_runs, more);
        dropping::drop_bad(&mut planned, &bad_actions, &bad_runs, &mut reasons);
    }
    if changed {
        dropping::recount(input, &mut planned, &reasons);
    }
    gaps::complete(input, &mut planned);
    planned
}
