//! What elastic gangs want beyond their minimum: in the domain where the minimum is, after the minimum of every gang and
//! after the single classes of the same priority. Called by `plan`, per priority.

use super::domain::Domain;
use super::tries::{afford, apply};
use super::ways::Ask;
use super::{Gangs, Round};
use crate::model::Reason;
use crate::planner::state::Work;
use std::collections::BTreeSet;

impl Gangs {
    /// Grows gangs that are whole towards their maximum, in the order given.
    pub fn extend(&self, work: &mut Work<'_>, gangs: &[usize], would: bool) {
        let mut round = Round::new(would);
        for class in gangs {
            let input = work.input;
            let (Some(domain), Some(gang)) = (self.whole.get(class), &input.classes[*class].gang)
            else {
                continue;
            };
            let open = work.open[*class];
            if open == 0 || *domain == Domain::NewNode {
                continue;
            }
            let kind = round.kind(work, *class, gang.locality);
            let home = BTreeSet::from([domain.clone()]);
            // Half as many until its team may pay.
            let mut want = open;
            let best = loop {
                let ask = Ask {
                    class: *class,
                    need: 1,
                    want,
                    reach: open,
                    would,
                    ledger: &work.ledger,
                };
                match afford(work, &round, kind, ask, &home) {
                    Ok(best) => break best,
                    Err(reason) => work.hold_back(*class, reason),
                }
                want /= 2;
                if want == 0 {
                    break None;
                }
            };
            if let Some(best) = best {
                apply(work, &mut round, *class, best);
            }
        }
    }
}

/// Says what gangs have that start with less than they could use. Called once, when all is placed.
pub(in crate::planner) fn say_parts(gangs: &Gangs, work: &mut Work<'_>) {
    for class in gangs.whole.keys() {
        let (input, open) = (work.input, work.open[*class]);
        let unit = &input.classes[*class];
        if let (Some(gang), true) = (&unit.gang, open > 0) {
            let most = gang.assigned.saturating_add(unit.count);
            work.note(
                *class,
                Reason::GangPart {
                    min: gang.min,
                    got: most - open,
                    most,
                },
            );
        }
    }
}
