//! First fit decreasing: units into open nodes, first opened first, what is left onto new ones. Called by `grow` for a
//! whole packing, and by the other ways to pack for one entry. Knows no price: which node is opened is `open`'s choice.

use super::tree::Want;
use super::{Context, Kinds, Packing};

impl Context<'_, '_> {
    /// First fit decreasing, opening the type that is cheapest per unit.
    pub fn first_fit(&self, mut p: Packing) -> Packing {
        for i in 0..self.order.len() {
            self.place(&mut p, i);
        }
        p
    }

    /// Places what is left of an entry: into open nodes, first opened first, then onto new ones.
    pub(super) fn place(&self, p: &mut Packing, i: usize) {
        let class = self.order[i];
        if p.left[i] == 0 || !self.work.effort.begins(class) {
            return;
        }
        let areas = self.work.near.areas(class);
        if areas.is_empty() {
            self.place_in(p, i, None, u32::MAX);
        } else {
            self.place_by_areas(p, i, areas);
        }
    }

    /// At most `most` units of an entry onto nodes of these kinds; returns how many.
    pub(super) fn place_in(&self, p: &mut Packing, i: usize, kinds: Kinds<'_>, most: u32) -> u32 {
        let class = self.order[i];
        let before = p.left[i];
        let placed = |p: &Packing| before - p.left[i];
        // New hosts one by one: one more may allow more on those before.
        let (by_host, _) = self.work.near.levels(class);
        self.fill(p, i, kinds, most);
        // Where it likes one place more the fewer are there, a few nodes at a time.
        let few = if self.work.near.has_wishes(class) {
            (p.left[i].min(most) / 64).max(1)
        } else {
            u32::MAX
        };
        while p.left[i] > 0 && placed(p) < most {
            let left = most - placed(p);
            let widens =
                by_host && (p.may_enlarge || p.tally.host_may_widen(&self.work.near, class));
            if self.open_best(p, i, kinds, left, if by_host { 1 } else { few }) == 0 {
                break;
            }
            if widens {
                self.fill(p, i, kinds, most - placed(p));
            }
        }
        placed(p)
    }

    /// Puts units of an entry into open nodes, first opened first, splitting groups that fill in part.
    pub(super) fn fill(&self, p: &mut Packing, i: usize, kinds: Kinds<'_>, most: u32) {
        let work = self.work;
        let class = self.order[i];
        if work.input.classes[class].whole_node || p.groups.is_empty() {
            return;
        }
        let mut cap = most.min(p.left[i]);
        let mut want = Want::unit(&work.units[class]);
        if let Some(kinds) = kinds {
            want.kinds = kinds.iter().fold(0, |bits, k| bits | 1 << (k % 64));
        }
        let touched = work.near.touches(class);
        let (by_host, _) = work.near.levels(class);
        loop {
            if touched {
                (want.none, want.one) = work.near.must_lack(&p.tally, class);
            }
            let before = cap;
            let mut from = 0;
            while cap > 0 {
                let Some(leaf) = p.tree.find(from, &want) else {
                    break;
                };
                from = leaf + 1;
                work.effort.spend(1);
                let g = p.at[leaf] as usize;
                let group = &p.groups[g];
                let kind = work.offers[group.offer].kind;
                if kinds.is_some_and(|kinds| !kinds.contains(&kind)) {
                    continue;
                }
                let (each, total) = work.room_in_by(&p.tally, class, group);
                if each == 0 {
                    continue;
                }
                let n = cap.min(total);
                let full = (n / each).min(group.nodes);
                let (nodes, units) = if full > 0 { (full, each) } else { (1, n) };
                p.split(work, g, nodes);
                p.put(work, g, class, units);
                p.left[i] -= units * nodes;
                cap -= units * nodes;
            }
            // Where hosts are kept level, more may go on each of them now.
            if !by_host || cap == 0 || cap == before {
                break;
            }
        }
    }
}
