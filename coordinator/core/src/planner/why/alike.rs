//! Classes that ask for the same are told the same: gangs come by the thousand, and the fleet has hundreds of pools. Worked
//! out once per kind of class. Used by `why`.

use super::super::away::Missing;
use super::super::could::{Could, could_ever};
use super::super::gangs;
use super::super::state::Work;
use super::super::supply::{At, Bin};
use super::{Places, offers};
use crate::model::{Constraints, Locality, Reason, Resources};
use std::collections::BTreeSet;
use std::rc::Rc;

/// All that the answers depend on.
pub(super) type Kind<'a> = (Option<Locality>, &'a Resources, bool, &'a Constraints);

/// What classes of one kind are told.
pub(super) struct Told {
    pub could: Could,
    /// Gangs whose held part would serve it.
    pub holders: BTreeSet<usize>,
    /// Why more cannot be had, pool by pool.
    pub not_placed: Vec<Reason>,
}

/// A bin that gangs hold, as it would be if they did not.
pub(super) struct Held {
    bin: usize,
    by: BTreeSet<usize>,
    lent: Bin,
}

/// All such bins.
pub(super) fn held(work: &Work<'_>) -> Vec<Held> {
    if !work.holds && work.partial.is_empty() {
        return Vec::new();
    }
    let bins = work.bins.iter().enumerate();
    bins.filter(|(_, bin)| !bin.would && bin.placed.is_empty())
        .filter_map(|(at, bin)| {
            let At::Node(n) = bin.at else { return None };
            let by = gangs::holding(work, bin);
            if by.is_empty() {
                return None;
            }
            let node = &work.input.nodes[n];
            let mut lent = bin.clone();
            lent.free.size = bin.total.minus(&work.names.size(&node.used));
            lent.free.shares.clone_from(&node.gpu_shares);
            lent.empty = bin.idle || node.used.is_zero();
            lent.held.clear();
            Some(Held { bin: at, by, lent })
        })
        .collect()
}

impl<'a> Places<'a> {
    /// What a class is told.
    pub(super) fn alike(&self, work: &Work<'a>, missing: &Missing<'_>, class: usize) -> Rc<Told> {
        let unit = &work.input.classes[class];
        let locality = unit.gang.as_ref().map(|g| g.locality);
        let kind = (locality, &unit.unit, unit.whole_node, &unit.constraints);
        if let Some(told) = self.told.borrow().get(&kind) {
            return told.clone();
        }
        let would_serve = |h: &&Held| {
            let room = |bin: &Bin| work.room_by(&work.tally, class, bin);
            work.matches(class, h.lent.kind) && room(&h.lent) > room(&work.bins[h.bin])
        };
        let told = Rc::new(Told {
            could: could_ever(work, class),
            holders: self
                .held
                .iter()
                .filter(would_serve)
                .flat_map(|h| h.by.clone())
                .collect(),
            not_placed: offers::not_placed(work, self, missing, class),
        });
        // Rules between units look at labels and at who is there: such classes are told one by one.
        if !work.near.touches(class) {
            self.told.borrow_mut().insert(kind, told.clone());
        }
        told
    }
}
