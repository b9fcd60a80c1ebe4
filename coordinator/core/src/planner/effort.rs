//! How much one plan may look at: a counted number of looks, never a clock, so that the same input gives the same plan on
//! any machine. When it is used up, what is decided is done and the rest is named (SC-46); nothing is removed then, since
//! demand that was not looked at may need it. Spent by fit, gangs and packings.

use super::state::Work;
use crate::model::Reason;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Looks of one plan: some ten seconds, far above any plan of the benches (a thousandth of it).
pub(super) const LOOKS: u64 = 1_000_000_000;

/// What is left, and whose turn did not come.
#[derive(Debug, Default)]
pub(super) struct Effort {
    left: Cell<u64>,
    skipped: RefCell<BTreeSet<usize>>,
}

impl Effort {
    /// So many looks.
    pub fn new(looks: u64) -> Self {
        Self {
            left: Cell::new(looks),
            skipped: RefCell::default(),
        }
    }

    /// Looks at something.
    pub fn spend(&self, looks: usize) {
        let looks = u64::try_from(looks).unwrap_or(u64::MAX);
        self.left.set(self.left.get().saturating_sub(looks));
    }

    /// Nothing more may be looked at.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Enough is left for so many looks and as many again.
    pub fn allows(&self, looks: usize) -> bool {
        u64::try_from(looks).is_ok_and(|looks| looks <= self.left.get() / 2)
    }

    /// True when the class may be looked at; else it is noted as one whose turn did not come.
    pub fn begins(&self, class: usize) -> bool {
        let may = !self.is_spent();
        if !may {
            self.skipped.borrow_mut().insert(class);
        }
        may
    }
}

/// Names the classes whose turn did not come.
pub(super) fn say(work: &mut Work<'_>) {
    let skipped = work.effort.skipped.take();
    for class in skipped {
        if work.open[class] > 0 {
            work.note(class, Reason::Undecided);
        }
    }
}
