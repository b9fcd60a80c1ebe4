//! Fit: places units on what exists, in the order of I12. Called by `plan` per priority, and again for what is only
//! observed. Never opens anything.

use super::state::Work;

/// Places as much of a class as fits, on real supply or (in the second phase) on what is only observed. Returns units
/// placed.
pub(super) fn fit_class(work: &mut Work<'_>, class: usize, would: bool) -> u32 {
    let mut placed = 0;
    // Where others of the class decide how many may go to a place, one pass may make room for the next.
    let (by_host, by_domain) = work.near.levels(class);
    loop {
        let before = placed;
        for slot in 0..work.order_for(class).len() {
            if work.open[class] == 0 {
                break;
            }
            let b = work.order_for(class)[slot];
            if work.bins[b].would != would {
                continue;
            }
            let n = work.room(class, b).min(work.open[class]);
            if n > 0 {
                work.take(class, b, n, false);
                work.open[class] -= n;
                placed += n;
            }
        }
        if placed == before || work.open[class] == 0 || !(by_host || by_domain) {
            return placed;
        }
    }
}
