//! What the rules of a class need to know of everything else: whether it counts itself, and which domains and hosts count
//! for its spreads, shared among classes with the same rules about nodes. Called by `build` for each class.

use crate::model::Class;
use crate::planner::matching::Place;
use crate::planner::near::{Limit, Mask, Near, Rules, Slot, Spot};
use crate::planner::packing::may_open;
use crate::planner::state::Work;
use std::collections::{BTreeMap, BTreeSet};

/// What `Near::build` shares among classes.
pub(super) struct Builder<'n> {
    pub near: &'n mut Near,
    pub masks: BTreeMap<(usize, usize, bool), usize>,
    pub slots: BTreeMap<(u32, usize), usize>,
    pub areas: BTreeMap<BTreeSet<usize>, usize>,
}

impl Builder<'_> {
    /// Fills in what depends on everything: what counts the class itself, which domains count for its spreads.
    pub(super) fn finish(
        &mut self,
        work: &Work<'_>,
        index: usize,
        class: &Class,
        rules: &mut Rules,
    ) {
        let adds = |counter: &u32| rules.adds.binary_search(counter).is_ok();
        let mut limits: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        for limit in &rules.limits {
            let own = limit.most.or(adds(&limit.counter).then_some(1));
            let slot = limits.entry(limit.counter).or_insert(own);
            *slot = (*slot).min(own);
        }
        rules.own_fellow = rules.needs.iter().all(adds);
        for even in &mut rules.spreads {
            even.own = rules.adds.binary_search(&even.counter).is_ok();
        }
        rules.limits = limits
            .into_iter()
            .map(|(counter, most)| Limit { counter, most })
            .collect();
        rules.areas = self.areas(rules);
        for even in &mut rules.spreads {
            even.eligible = match self.near.spots[even.counter as usize] {
                Spot::Host => self.slot(work, index, class, even.counter),
                Spot::Axis(axis, _) => self.mask(work, index, class, axis),
            };
        }
    }

    fn areas(&mut self, rules: &Rules) -> Option<usize> {
        let axes = self.near.axes_of(rules);
        if axes.is_empty() {
            return None;
        }
        if let Some(at) = self.areas.get(&axes) {
            return Some(*at);
        }
        self.near.areas.push(self.near.areas_of(&axes));
        self.areas.insert(axes, self.near.areas.len() - 1);
        Some(self.near.areas.len() - 1)
    }

    /// Domains of an axis: those of nodes that the class may go to but for taints, and those of offers that may be asked.
    fn mask(&mut self, work: &Work<'_>, index: usize, class: &Class, axis: usize) -> usize {
        let key = (axis, work.set_of(index), work.plain[index]);
        if let Some(at) = self.masks.get(&key) {
            return *at;
        }
        let mut mask = vec![false; self.near.axes[axis].domains];
        let existing = work.shapes.keys().map(|(kind, ..)| *kind);
        let existing = existing.chain(work.bins.iter().map(|b| b.kind));
        let existing: BTreeSet<usize> = existing.collect();
        let may = |kind: &usize| work.kinds[*kind].allows_but_for_taints(&class.constraints);
        let offered = work.offers.iter().enumerate().filter(|(o, offer)| {
            may_open(work, index, offer) && work.ledger.room(&work.offers, *o) > 0
        });
        let offered = offered.map(|(_, offer)| offer.kind);
        for kind in existing.into_iter().filter(may).chain(offered) {
            if let Some(d) = self.near.domain(axis, kind) {
                mask[d] = true;
            }
        }
        self.near.masks.push(Mask {
            axis,
            first: mask,
            new: (0..work.kinds.len())
                .map(|kind| work.matches(index, kind))
                .collect(),
        });
        self.masks.insert(key, self.near.masks.len() - 1);
        self.near.masks.len() - 1
    }

    fn slot(&mut self, work: &Work<'_>, index: usize, class: &Class, counter: u32) -> usize {
        let key = (counter, work.set_of(index));
        if let Some(at) = self.slots.get(&key) {
            return *at;
        }
        let old = |place: &Place<'_>| place.allows_but_for_taints(&class.constraints);
        let slot = Slot {
            old: work.kinds.iter().map(old).collect(),
            new: (0..work.kinds.len())
                .map(|kind| work.matches(index, kind))
                .collect(),
        };
        self.near.slots.push(slot);
        self.slots.insert(key, self.near.slots.len() - 1);
        self.near.slots.len() - 1
    }
}
