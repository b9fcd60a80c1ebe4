//! Fit: places units on what exists, in the order of I12. Called by `plan` per priority, and again for what is only
//! observed. Never opens anything.

use super::state::Work;

/// Places as much of a class as fits, on real supply or (in the second phase) on what is only observed. Returns units
/// placed.
pub(super) fn fit_class(work: &mut Work<'_>, class: usize, would: bool) -> u32 {
    let input = work.input;
    let unit = &input.classes[class];
    let mut placed = 0;
    for slot in 0..work.order_for(class).len() {
        if work.open[class] == 0 {
            break;
        }
        let b = work.order_for(class)[slot];
        if work.bins[b].would != would || !work.matches(class, work.bins[b].kind) {
            continue;
        }
        let n = work.bins[b].times(unit, class).min(work.open[class]);
        if n > 0 {
            work.bins[b].take(unit, class, n, false);
            work.open[class] -= n;
            placed += n;
        }
    }
    placed
}
