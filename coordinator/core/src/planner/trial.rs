//! Tries where units of one class would go on existing nodes, one after the other, so that rules between units hold among
//! them too; changes nothing. Used by gangs, which compare several ways before they take one.

use super::near::Tally;
use super::state::Work;
use super::supply::Bin;

/// What a trial gave: units per bin, in the order of use, and the counts after it.
pub(super) struct Tried {
    pub fits: Vec<(usize, u32)>,
    pub fitted: u32,
    pub tally: Tally,
}

/// Up to `most` units on these bins, in this order.
pub(super) fn fit(
    work: &Work<'_>,
    class: usize,
    bins: impl Iterator<Item = usize>,
    most: u32,
) -> Tried {
    let mut tried = Tried {
        fits: Vec::new(),
        fitted: 0,
        tally: work.tally.clone(),
    };
    let whole = work.input.classes[class].whole_node;
    let unit = &work.units[class];
    let mut at: Vec<(usize, Bin)> = bins.map(|b| (b, work.bins[b].clone())).collect();
    work.effort.spend(at.len());
    loop {
        let before = tried.fitted;
        for (b, bin) in &mut at {
            let left = most - tried.fitted;
            let n = work.room_by(&tried.tally, class, bin).min(left);
            if n == 0 {
                continue;
            }
            bin.occupy(unit, whole, n);
            let kind = bin.kind;
            tried
                .tally
                .put(&work.near, class, kind, &mut bin.content, (n, 1), true);
            tried.fitted += n;
            tried.fits.push((*b, n));
        }
        // Where others of the class decide how many may go to a place, one pass may make room for the next.
        if tried.fitted == before || tried.fitted == most {
            return tried;
        }
    }
}
