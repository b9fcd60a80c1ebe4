//! Fit: places units on what exists, in the order of I12, where `choose` says. Called by `plan` per priority, and again
//! for what is only observed. Never opens anything.

use super::arriving::{self, Turn};
use super::state::Work;
use super::supply::Tier;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Places as much of a class as fits, on real supply or (in the second phase) on what is only observed. Returns units
/// placed.
pub(super) fn fit_class(work: &mut Work<'_>, class: usize, would: bool) -> u32 {
    if work.open[class] == 0 || !work.effort.begins(class) {
        return 0;
    }
    let scored = work.scores(class);
    let mut placed = 0;
    // Where others of the class decide how many may go to a place, one pass may make room for the next.
    let (by_host, by_domain) = work.near.levels(class);
    loop {
        work.effort.spend(work.order_for(class).len());
        let mut now = if scored {
            best_first(work, class, would)
        } else {
            in_order(work, class, would)
        };
        let comes = !would && work.arriving.turn != Turn::Nothing;
        if comes && work.open[class] > 0 {
            now += arriving::place(work, class);
        }
        placed += now;
        if now == 0 || work.open[class] == 0 || !(by_host || by_domain) {
            return placed;
        }
    }
}

/// The next node in order, filled as far as it goes.
fn in_order(work: &mut Work<'_>, class: usize, would: bool) -> u32 {
    let mut placed = 0;
    for slot in 0..work.order_for(class).len() {
        if work.open[class] == 0 {
            break;
        }
        let b = work.order_for(class)[slot];
        let bin = &work.bins[b];
        if bin.would != would || bin.tier == Tier::Coming || work.kept_out(class, b) {
            continue;
        }
        let n = work.room(class, b).min(work.open[class]);
        if n > 0 {
            work.take(class, b, n, false);
            work.chosen(class, b);
            work.open[class] -= n;
            placed += n;
        }
    }
    placed
}

/// One unit after the other, each where its score is least. Where a place only becomes better by a unit that it took, it
/// is filled at once.
fn best_first(work: &mut Work<'_>, class: usize, would: bool) -> u32 {
    let fits = |work: &Work<'_>, b: usize| {
        let bin = &work.bins[b];
        let now = bin.would == would && bin.tier != Tier::Coming;
        now && !work.kept_out(class, b) && work.room(class, b) > 0
    };
    let mut all = Vec::new();
    // Equal nodes stand side by side.
    let mut last: Option<(usize, super::choose::Score)> = None;
    for &b in work.order_for(class) {
        if fits(work, b) {
            let score = work.score_after(class, b, last);
            last = Some((b, score));
            all.push(Reverse((score, b)));
        }
    }
    let mut queue = BinaryHeap::from(all);
    let (start, mut placed) = (work.step, 0);
    let mut touched = BTreeSet::new();
    let others = work.near.touches(class);
    let fills = !others && !work.choose.weighs_rest();
    while work.open[class] > 0 {
        let Some(Reverse((score, b))) = queue.pop() else {
            break;
        };
        if others {
            // What was placed since may have changed what is allowed there, and what is liked.
            if !fits(work, b) {
                continue;
            }
            let now = work.score(class, b);
            if now > score {
                queue.push(Reverse((now, b)));
                continue;
            }
        }
        let n = if fills {
            work.room(class, b).min(work.open[class])
        } else {
            1
        };
        work.take(class, b, n, false);
        work.chosen(class, b);
        work.open[class] -= n;
        placed += n;
        touched.insert(b);
        if work.open[class] > 0 && fits(work, b) {
            queue.push(Reverse((work.score(class, b), b)));
        }
    }
    if !others {
        for b in touched {
            work.join_puts(class, b, start);
        }
    }
    placed
}
