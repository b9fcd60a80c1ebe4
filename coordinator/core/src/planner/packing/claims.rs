//! Claims: first a node for each unit that is alone of its kind on its host, as small as it may be; then the others into
//! the holes there; and where nothing fits, an opened node becomes larger rather than that another one is opened. What
//! type it is in the end, `right_size` decides. A tenth of a catalogue's price is the daemons of one more node.

use super::open::per_unit;
use super::tree::Want;
use super::{Context, Kinds, Packing, may_open};
use crate::planner::near::Site;
use crate::planner::size::Free;
use crate::planner::state::Group;
use std::cmp::Reverse;

/// Nodes that are looked at for one that becomes larger.
const CANDIDATES: usize = 64;

/// A larger type for the first node of a group.
struct Larger {
    group: usize,
    offer: usize,
    /// Units of the class that it takes then.
    each: u32,
    /// Price per unit, scaled as in `open`.
    per_unit: u128,
}

impl Context<'_, '_> {
    /// Some class of the packing has units that are alone on their hosts: then claims may win.
    pub fn has_claims(&self) -> bool {
        let near = &self.work.near;
        self.order.iter().any(|class| near.is_alone(*class))
    }

    /// First fit over claims.
    pub fn claims(&self, mut p: Packing) -> Packing {
        let near = &self.work.near;
        p.may_enlarge = true;
        let alone = |i: &usize| near.is_alone(self.order[*i]);
        let (first, then): (Vec<usize>, Vec<usize>) = (0..self.order.len()).partition(alone);
        let areas = near.all_areas();
        for i in first {
            self.share_out(&mut p, i, &areas);
            self.place(&mut p, i);
        }
        for i in self.in_turn(then) {
            self.place(&mut p, i);
        }
        p
    }

    /// The largest first, those that take more CPU and those that take more memory in turn, so that both are used up
    /// together.
    fn in_turn(&self, entries: Vec<usize>) -> Vec<usize> {
        let largest = self.shelves.iter().filter_map(|s| s.last());
        let largest = largest.map(|t| &self.work.offers[self.twins[*t].offers[0]]);
        let Some(node) = largest.max_by_key(|offer| offer.price) else {
            return entries;
        };
        let part = |want: u64, have: u64| (u128::from(want) << 32) / u128::from(have.max(1));
        let mut lists = [Vec::new(), Vec::new()];
        for i in entries {
            let unit = &self.work.units[self.order[i]];
            let gpus = part(u64::from(unit.gpus), u64::from(node.size.gpus));
            let cpu = part(unit.cpu, node.size.cpu);
            let memory = part(unit.memory, node.size.memory);
            let all = Reverse(gpus + cpu + memory);
            lists[usize::from(memory > cpu)].push((all, i, cpu, memory));
        }
        for list in &mut lists {
            list.sort_unstable();
        }
        let [by_cpu, by_memory] = lists;
        let (mut by_cpu, mut by_memory) = (by_cpu.into_iter(), by_memory.into_iter());
        let (mut a, mut b) = (by_cpu.next(), by_memory.next());
        let (mut cpu, mut memory) = (0_u128, 0_u128);
        let mut order = Vec::new();
        loop {
            let from_cpu = match (&a, &b) {
                (None, None) => break,
                (Some(_), Some(_)) => cpu <= memory,
                (first, _) => first.is_some(),
            };
            let next = if from_cpu {
                std::mem::replace(&mut a, by_cpu.next())
            } else {
                std::mem::replace(&mut b, by_memory.next())
            };
            let Some((_, i, c, m)) = next else { break };
            let count = u128::from(self.work.open[self.order[i]]);
            cpu = cpu.saturating_add(c.saturating_mul(count));
            memory = memory.saturating_add(m.saturating_mul(count));
            order.push(i);
        }
        order
    }

    /// Opens nodes in all domains where they cost the same, evenly: the others may need some in each.
    fn share_out(&self, p: &mut Packing, i: usize, areas: &[Vec<usize>]) {
        let least = self.price_per_unit(p, i, None);
        let same: Vec<&Vec<usize>> = areas
            .iter()
            .filter(|kinds| least.is_some() && self.price_per_unit(p, i, Some(kinds)) == least)
            .collect();
        for (at, kinds) in same.iter().enumerate() {
            let rest = u32::try_from(same.len() - at).unwrap_or(u32::MAX);
            let share = p.left[i] / rest.max(1);
            if share > 0 && self.on_new(p, self.order[i], kinds[0]).total >= share {
                self.place_in(p, i, Some(kinds), share);
            }
        }
    }

    /// Makes the first opened node larger that the rules allow, if that costs no more per unit than `limit`; returns
    /// units placed on it.
    pub(super) fn enlarge(
        &self,
        p: &mut Packing,
        i: usize,
        kinds: Kinds<'_>,
        most: u32,
        limit: u128,
    ) -> u32 {
        // For the same price, rounded, one node less.
        let limit = limit.saturating_add(limit >> 10);
        let Some(larger) = self.larger(p, i, kinds, limit) else {
            return 0;
        };
        let Larger {
            group: g,
            offer,
            each,
            ..
        } = larger;
        let work = self.work;
        p.split(work, g, 1);
        let group = &mut p.groups[g];
        let used = work.offers[group.offer].size.minus(&group.free.size);
        let old = std::mem::replace(&mut group.offer, offer);
        let shares = std::mem::take(&mut group.free.shares);
        group.free = Free {
            size: work.offers[offer].size.minus(&used),
            shares,
        };
        p.ledger.give_back(&work.offers, old, 1);
        p.ledger.take(&work.offers, offer, 1);
        let units = each.min(most).min(p.left[i]);
        p.put(work, g, self.order[i], units);
        p.left[i] -= units;
        units
    }

    /// A node that becomes larger for at most that price per unit; not all are looked at.
    fn larger(&self, p: &Packing, i: usize, kinds: Kinds<'_>, limit: u128) -> Option<Larger> {
        let (work, class) = (self.work, self.order[i]);
        let mut want = Want::nothing();
        if let Some(kinds) = kinds {
            want.kinds = kinds.iter().fold(0, |bits, k| bits | 1 << (k % 64));
        }
        (want.none, want.one) = work.near.must_lack(&p.tally, class);
        // From the last on: first fit comes to large nodes last, when holes are used up.
        let (mut to, mut looks) = (p.at.len(), 0);
        while looks < CANDIDATES
            && let Some(leaf) = p.tree.find_last(to, &want)
        {
            to = leaf;
            let g = p.at[leaf] as usize;
            let group = &p.groups[g];
            let kind = work.offers[group.offer].kind;
            let other = kinds.is_some_and(|kinds| !kinds.contains(&kind));
            if group.origin.is_some() || other || !work.matches(class, kind) {
                continue;
            }
            let Some(shelf) = self.shelf(group.offer) else {
                continue;
            };
            let site = Site {
                kind,
                content: &group.content,
                nodes: 1,
                fresh: false,
            };
            let takes = p.tally.takes(&work.near, class, site);
            if takes.is_none() {
                continue;
            }
            looks += 1;
            work.effort.spend(shelf.len());
            let most = takes.with(u32::MAX).0;
            let larger = self.larger_on(p, shelf, g, group, class, most);
            if let Some(larger) = larger.filter(|l| l.per_unit <= limit) {
                return Some(larger);
            }
        }
        None
    }

    /// The larger type of the shelf that is cheapest per further unit, of which at most `most` may go there.
    fn larger_on(
        &self,
        p: &Packing,
        shelf: &[usize],
        g: usize,
        group: &Group,
        class: usize,
        most: u32,
    ) -> Option<Larger> {
        let work = self.work;
        let have = &work.offers[group.offer];
        let used = have.size.minus(&group.free.size);
        let from =
            shelf.partition_point(|t| work.offers[self.twins[*t].offers[0]].price <= have.price);
        let mut best: Option<Larger> = None;
        for twins in &shelf[from..] {
            let to = &work.offers[self.twins[*twins].offers[0]];
            let more = to.price - have.price;
            let at_best = per_unit(more, most);
            if best.as_ref().is_some_and(|b| Some(b.per_unit) <= at_best) {
                break;
            }
            let alike = to.boot <= have.boot
                && may_open(work, class, to)
                && work.near.same_hosts(have.kind, to.kind);
            if !alike || !used.fits(&to.size) {
                continue;
            }
            let rest = to.size.minus(&used);
            let fits = work.units[class].times_with(&rest, &group.free.shares);
            let each = fits.min(most);
            let Some(per_unit) = per_unit(more, each) else {
                continue;
            };
            if best.as_ref().is_some_and(|b| per_unit >= b.per_unit) {
                continue;
            }
            if let Some(offer) = self.first_of(p, &self.twins[*twins]) {
                best = Some(Larger {
                    group: g,
                    offer,
                    each,
                    per_unit,
                });
            }
        }
        best
    }
}
