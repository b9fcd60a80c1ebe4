//! Counts of the rules between units as a run goes on: per domain of a label, and per node. Cloned by attempts, so small:
//! flat vectors. Changed through `Work` and `Packing` only. What the rules still allow by these counts is in `takes`.

mod takes;

pub(in crate::planner) use takes::{Site, Takes};

use super::{Near, Spot};

/// Units on one node (or on each node of a group) by counter; only counters that count per node.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::planner) struct Content(Vec<(u32, u32)>);

impl Content {
    /// Nothing counted.
    pub const EMPTY: Self = Self(Vec::new());

    /// Units that a counter counts here.
    pub fn get(&self, counter: u32) -> u32 {
        let at = self.0.binary_search_by_key(&counter, |(c, _)| *c);
        at.map_or(0, |at| self.0[at].1)
    }

    fn add(&mut self, counter: u32, units: u32) -> u32 {
        match self.0.binary_search_by_key(&counter, |(c, _)| *c) {
            Ok(at) => {
                let have = self.0[at].1;
                self.0[at].1 = have.saturating_add(units);
                have
            }
            Err(at) => {
                self.0.insert(at, (counter, units));
                0
            }
        }
    }

    /// Marks of the counters below 64 with at least one, and with at least two.
    pub fn marks(&self) -> (u64, u64) {
        let (mut one, mut two) = (0, 0);
        for (counter, units) in self.0.iter().take_while(|(c, _)| *c < 64) {
            one |= u64::from(*units > 0) << counter;
            two |= u64::from(*units > 1) << counter;
        }
        (one, two)
    }
}

/// Counts of one moment.
#[derive(Debug, Clone, Default)]
pub(in crate::planner) struct Tally {
    /// Per counter on an axis, its domains in a row.
    flat: Vec<u32>,
    /// Per counter, in all.
    total: Vec<u32>,
    /// Per slot: hosts by their count.
    hosts: Vec<Vec<u32>>,
    /// Per mask: domains that count by now.
    masks: Vec<Vec<bool>>,
}

impl Tally {
    /// Nothing counted.
    pub(super) fn new(near: &Near) -> Self {
        Self {
            flat: vec![0; near.flat],
            total: vec![0; near.spots.len()],
            hosts: vec![vec![0]; near.slots.len()],
            masks: near.masks.iter().map(|m| m.first.clone()).collect(),
        }
    }

    /// New nodes, or (`old`) nodes that exist: hosts with nothing on them.
    pub fn open(&mut self, near: &Near, kind: usize, nodes: u32, old: bool) {
        for (slot, hosts) in near.slots.iter().zip(&mut self.hosts) {
            let counts = if old { slot.old[kind] } else { slot.new[kind] };
            if counts {
                hosts[0] = hosts[0].saturating_add(nodes);
            }
        }
        if old {
            return;
        }
        for (mask, counts) in near.masks.iter().zip(&mut self.masks) {
            let domain = near.domain(mask.axis, kind).filter(|_| mask.new[kind]);
            if let Some(d) = domain {
                counts[d] = true;
            }
        }
    }

    /// A node that exists, with nothing on it, is not there after all.
    pub fn close(&mut self, near: &Near, kind: usize) {
        for (slot, hosts) in near.slots.iter().zip(&mut self.hosts) {
            if slot.old[kind] {
                hosts[0] = hosts[0].saturating_sub(1);
            }
        }
    }

    /// Units of a class on each of so many equal nodes with this content.
    pub fn put(
        &mut self,
        near: &Near,
        class: usize,
        kind: usize,
        content: &mut Content,
        (units, nodes): (u32, u32),
        old: bool,
    ) {
        self.add(near, &near.of(class).adds, kind, content, units, nodes, old);
    }

    #[expect(clippy::too_many_arguments, reason = "one amount at one place")]
    pub(super) fn add(
        &mut self,
        near: &Near,
        adds: &[u32],
        kind: usize,
        content: &mut Content,
        units: u32,
        nodes: u32,
        old: bool,
    ) {
        if units == 0 || nodes == 0 {
            return;
        }
        let all = units.saturating_mul(nodes);
        for &counter in adds {
            let c = counter as usize;
            match near.spots[c] {
                Spot::Host => {
                    let before = content.add(counter, units) as usize;
                    self.total[c] = self.total[c].saturating_add(all);
                    for &slot in &near.slots_of[c] {
                        let s = &near.slots[slot as usize];
                        if !(if old { s.old[kind] } else { s.new[kind] }) {
                            continue;
                        }
                        let hosts = &mut self.hosts[slot as usize];
                        let after = before.saturating_add(units as usize).min(MOST);
                        let before = before.min(MOST);
                        if hosts.len() <= after {
                            hosts.resize(after + 1, 0);
                        }
                        hosts[before] = hosts[before].saturating_sub(nodes);
                        hosts[after] = hosts[after].saturating_add(nodes);
                    }
                }
                Spot::Axis(axis, at) => {
                    if let Some(d) = near.domain(axis, kind) {
                        let slot = &mut self.flat[at + d];
                        *slot = slot.saturating_add(all);
                        self.total[c] = self.total[c].saturating_add(all);
                    }
                }
            }
        }
    }

    pub(super) fn flat(&self, at: usize) -> u32 {
        self.flat[at]
    }

    /// A unit of the class would be the first of its kind anywhere, and others must follow it.
    pub fn would_be_first(&self, near: &Near, class: usize) -> bool {
        let rules = near.of(class);
        let mut counters = rules.needs.iter();
        rules.own_fellow
            && !rules.needs.is_empty()
            && counters.all(|c| self.total[*c as usize] == 0)
    }

    /// Units that the spreads of the class over domains allow there: the least of them.
    pub fn level(&self, near: &Near, class: usize, kind: usize) -> u32 {
        let spreads = near.of(class).spreads.iter();
        let counts = spreads.filter_map(|even| match near.spots[even.counter as usize] {
            Spot::Axis(axis, at) => near.domain(axis, kind).map(|d| self.flat[at + d]),
            Spot::Host => None,
        });
        counts.max().unwrap_or(0)
    }

    /// Weight of the wishes to be near others that a place fulfils.
    pub fn wish(&self, near: &Near, class: usize, kind: usize, content: &Content) -> i64 {
        let wishes = near.of(class).wishes.iter();
        let weigh = |(counter, weight): &(u32, i64)| {
            let here = match near.spots[*counter as usize] {
                Spot::Host => content.get(*counter),
                Spot::Axis(axis, at) => {
                    let d = near.domain(axis, kind);
                    d.map_or(0, |d| self.flat[at + d])
                }
            };
            weight.saturating_mul(i64::from(here.min(1_000)))
        };
        wishes.map(weigh).fold(0, i64::saturating_add)
    }

    /// The least count of all hosts of a slot.
    pub fn least_host(&self, slot: usize) -> u32 {
        let least = self.hosts[slot].iter().position(|n| *n > 0);
        u32::try_from(least.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

/// Counts per host are told apart up to here.
const MOST: usize = 4_096;
