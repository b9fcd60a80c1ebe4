//! Deadlines: what nobody can start in time is not asked for (`Work::in_time`); here that is said. Called once by `plan`.

use super::state::Work;
use crate::model::{Millis, Reason};

/// Notes why units that must start by a moment are still open.
pub(super) fn say(work: &mut Work<'_>) {
    let input = work.input;
    for (class, unit) in input.classes.iter().enumerate() {
        let Some(deadline) = unit.deadline.filter(|_| work.open[class] > 0) else {
            continue;
        };
        if deadline <= input.now {
            work.note(class, Reason::DeadlinePassed { deadline });
            continue;
        }
        let suits = work.offers.iter().enumerate().filter(|(o, offer)| {
            !offer.would
                && work.matches(class, offer.kind)
                && offer.times(unit) > 0
                && work.ledger.room(&work.offers, *o) > 0
        });
        let ready = suits
            .map(|(_, offer)| input.now.after(Millis(offer.boot)))
            .min();
        if let Some(ready) = ready.filter(|ready| *ready > deadline) {
            work.note(class, Reason::DeadlineTooNear { ready, deadline });
        }
    }
}
