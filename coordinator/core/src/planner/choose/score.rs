//! The score of a place for units that do not simply take the next node in order: where run times tell places apart, where
//! places are liked or not, or where GPUs are shared. Called by fit for each place looked at; changes only the count of
//! looks.

use super::{About, usable};
use crate::model::UnixMs;
use crate::planner::state::Work;
use crate::planner::supply::{At, Bin, Tier};
use std::cmp::Reverse;

/// Units of a class with rules about others are placed one by one; with more of them run times tell nothing.
const NEAR_UNITS: u32 = 1_000;

/// What a place costs a unit; field order is the order of importance, less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::planner) struct Score {
    tier: Tier,
    /// GPUs, and none is wanted.
    gpus: bool,
    paid: bool,
    /// It could leave otherwise.
    keeps: bool,
    /// What the time costs that it must stay longer.
    longer: u128,
    liked: Reverse<i64>,
    /// What others could use less.
    lost: i64,
    /// Hundredths of the shared GPU it would take from.
    part: u32,
    /// When its oldest work started: what has run long tends to run on.
    oldest: UnixMs,
    empty: bool,
    left: u64,
    launched: u64,
    at: At,
}

impl Work<'_> {
    /// Must each place be looked at for the class? Else the next in order is the best. Counts the looks.
    pub fn scores(&mut self, class: usize) -> bool {
        let unit = &self.input.classes[class];
        let looks = self.order_for(class).len() as u64;
        let each = match &self.choose.usable {
            Some(usable) => usable.looks(),
            None if self.tells(class) || self.wishes(class) => 1,
            None => return false,
        };
        // Each unit placed is one more look.
        let looks = (looks + u64::from(unit.count)).saturating_mul(each);
        let enough = looks <= self.choose.looks;
        if enough {
            self.choose.looks -= looks;
        }
        enough
    }

    /// Run times tell places apart.
    fn tells(&self, class: usize) -> bool {
        let unit = &self.input.classes[class];
        let few = unit.count <= NEAR_UNITS || !self.near.touches(class);
        few && !unit.whole_node && self.stays.tells(unit)
    }

    fn wishes(&self, class: usize) -> bool {
        let c = &self.input.classes[class].constraints;
        let soft = c.spread.iter().any(|s| !s.hard);
        soft || !c.preferred.is_empty() || !c.preferred_near.is_empty()
    }

    /// What one more unit there costs. The unit must fit.
    pub fn score(&self, class: usize, bin: usize) -> Score {
        let (lost, part) = self.lost(class, bin);
        self.score_with(class, bin, lost, part)
    }

    /// The same, when another bin was looked at just before.
    pub fn score_after(&self, class: usize, bin: usize, before: Option<(usize, Score)>) -> Score {
        if let Some((other, score)) = before {
            let (a, b) = (&self.bins[bin], &self.bins[other]);
            if a.kind == b.kind && a.free == b.free {
                return self.score_with(class, bin, score.lost, score.part);
            }
        }
        self.score(class, bin)
    }

    fn lost(&self, class: usize, bin: usize) -> (i64, u32) {
        let (b, unit) = (&self.bins[bin], &self.units[class]);
        match &self.choose.usable {
            None => (0, 0),
            Some(usable) if self.input.classes[class].whole_node => {
                (usable.of(b.kind, &b.free) / usable::STEP, 0)
            }
            Some(usable) => {
                let part = b.free.smallest_for(unit).map_or(0, |part| part / 10);
                (usable.lost(b.kind, &b.free, unit), part)
            }
        }
    }

    fn score_with(&self, class: usize, bin: usize, lost: i64, part: u32) -> Score {
        let (about, b) = (&self.choose.about[bin], &self.bins[bin]);
        let unit = &self.units[class];
        let scored = self.choose.usable.is_some();
        let (longer, oldest) = self.longer(class, about);
        Score {
            tier: b.tier,
            gpus: unit.gpus == 0 && unit.milli == 0 && b.total.gpus > 0,
            paid: about.paid,
            keeps: b.empty && about.fleeting,
            longer,
            liked: Reverse(self.liked(class, b)),
            lost,
            part,
            oldest,
            empty: b.empty,
            left: if scored { 0 } else { self.choose.left(b) },
            launched: about.launched,
            at: b.at,
        }
    }

    fn liked(&self, class: usize, bin: &Bin) -> i64 {
        let near = self.tally.wish(&self.near, class, bin.kind, &bin.content);
        i64::from(self.weight(class, bin.kind)).saturating_add(near)
    }

    /// What the time costs that a node which could leave stays longer for the unit, and its oldest work.
    fn longer(&self, class: usize, about: &About) -> (u128, UnixMs) {
        let unit = &self.input.classes[class];
        if !about.fleeting || !self.stays.tells(unit) {
            return (0, UnixMs(0));
        }
        let stay = self.stays.of_unit(unit);
        let oldest = about.stay.oldest.unwrap_or(UnixMs(u64::MAX));
        (about.stay.longer(stay, about.price), oldest)
    }
}
