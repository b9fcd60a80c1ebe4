//! Layer 2: `plan(&PlanInput) -> Planned`. Fit, grow, shrink, limits, check, explain.
//!
//! Called by control's cycle, by `drover plan --from`, by the simulator. **Invariant:** pure; same input, same plan, byte
//! for byte. Infallible: a bad item of the input is reported in the plan and costs that item only.

mod again;
mod anticipate;
mod arriving;
mod away;
mod check;
mod choose;
mod coming;
mod could;
mod deadline;
mod effort;
mod explain;
mod file;
mod fit;
mod gangs;
mod grow;
mod headroom;
mod ledger;
mod levels;
mod matching;
mod near;
mod offers;
mod packing;
mod patience;
mod redact;
mod report;
mod reserved;
mod shrink;
mod size;
mod state;
mod stay;
mod supply;
mod targets;
mod teams;
mod trial;
mod why;
mod why_fleet;

pub use check::{Culprit, Violation, check, violations};
pub use explain::{class_summary, pool_summary, render, render_action, render_stop};
pub use file::{PlanFileError, from_input_bytes, to_bytes};
pub use matching::{is_model, suits};
pub use redact::{Redaction, redact};

use crate::model::{PlanInput, Planned};
use arriving::Turn;
use effort::Effort;
use state::Work;

/// One decision, checked: actions that would violate an invariant are in `report.dropped`.
#[must_use]
pub fn plan(input: &PlanInput) -> Planned {
    check(input, propose(input))
}

/// The decision before the check. For tests and for the simulator, which counts what the check would drop.
#[must_use]
pub fn propose(input: &PlanInput) -> Planned {
    propose_within(input, effort::LOOKS)
}

/// The same with so many looks at most: what is not decided by then is named. For tests and experiments.
#[must_use]
pub fn propose_within(input: &PlanInput, looks: u64) -> Planned {
    let mut work = Work::new(input);
    work.effort = Effort::new(looks);
    let levels = levels::levels(&work);
    // First for what may really be changed; what stays without is then planned for observed pools, into `would`.
    let mut gangs = gangs::Gangs::default();
    let mut ends = patience::Ends::new(&work);
    for would in [false, true] {
        for level in &levels {
            for wave in &level.waves {
                gangs.place(&mut work, &wave.gangs, &mut ends, would);
                place_singles(&mut work, &wave.singles, would);
                let waits = ends.wait(&mut work, &wave.singles);
                teams::grow(&mut work, &wave.singles, &waits, would);
            }
            fill_holes(&mut work, &level.singles, &mut ends, would);
            gangs.extend(&mut work, &level.gangs, would);
            if !would {
                teams::leftover(&mut work, &level.singles);
            }
        }
    }
    gangs::say_parts(&gangs, &mut work);
    deadline::say(&mut work);
    teams::say(&mut work);
    headroom::keep(&mut work);
    near::note(&mut work);
    effort::say(&mut work);
    targets::stand(&mut work);
    // Demand that was not looked at may need what is idle.
    let shrunk = if work.effort.is_spent() {
        shrink::Shrunk::default()
    } else {
        shrink::shrink(&work)
    };
    report::assemble(&work, shrunk)
}

/// On what takes work, then on what comes.
fn place_singles(work: &mut Work<'_>, singles: &[usize], would: bool) {
    let comes = !would && work.arriving.bins().next().is_some();
    let fit = |work: &mut Work<'_>, turn: Turn| {
        work.arriving.turn = turn;
        for &class in singles {
            teams::fit(work, class, would);
        }
    };
    fit(work, Turn::Nothing);
    // What was asked for at once is packed at once; what was asked for before that took its part first.
    if !comes || again::place(work, singles, Turn::All) {
        work.arriving.turn = Turn::All;
        return;
    }
    fit(work, Turn::Older);
    let newest = again::place(work, singles, Turn::Newest);
    work.arriving.turn = Turn::All;
    if !newest {
        fit(work, Turn::All);
    }
}

/// Units without GPUs for which nothing could be opened go into the holes of nodes with GPUs after all.
fn fill_holes(work: &mut Work<'_>, singles: &[usize], ends: &mut patience::Ends, would: bool) {
    let without = |c: &usize| work.plain[*c] && work.open[*c] > 0;
    let left: Vec<usize> = singles.iter().copied().filter(without).collect();
    if left.is_empty() {
        return;
    }
    work.choose.last_resort = true;
    for &class in &left {
        teams::fit(work, class, would);
    }
    if !work.groups.is_empty() && left.iter().any(|c| work.open[*c] > 0) {
        let waits = ends.wait(work, &left);
        teams::grow(work, &left, &waits, would);
    }
    work.choose.last_resort = false;
}
