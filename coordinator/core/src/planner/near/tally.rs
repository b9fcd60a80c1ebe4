//! Counts of the rules between units as a run goes on: per domain of a label, and per node. Cloned by attempts, so small:
//! flat vectors. Changed through `Work` and `Packing` only.

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

/// Where units would go, as far as counting matters.
#[derive(Debug, Clone, Copy)]
pub(in crate::planner) struct Site<'c> {
    pub kind: usize,
    pub content: &'c Content,
    /// Equal nodes there.
    pub nodes: u32,
    /// Not opened yet.
    pub fresh: bool,
}

/// Units that rules still allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::planner) struct Takes {
    /// On each node.
    pub each: u32,
    /// On all of the nodes together.
    pub total: u32,
    /// All must go to one node.
    pub one_node: bool,
}

impl Takes {
    /// No limit.
    pub const ALL: Self = Self {
        each: u32::MAX,
        total: u32::MAX,
        one_node: false,
    };

    /// Nothing.
    pub const fn is_none(self) -> bool {
        self.each == 0 || self.total == 0
    }

    /// With room for so many on each node: (on each node, on all of them together).
    pub fn with(self, fits: u32) -> (u32, u32) {
        let each = self.each.min(fits).min(self.total);
        let total = if self.one_node {
            self.total.min(each)
        } else {
            self.total
        };
        (each, total)
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

    /// What the rules of a class still allow at a place.
    pub fn takes(&self, near: &Near, class: usize, site: Site<'_>) -> Takes {
        if near.rule_of[class].is_none() {
            return Takes::ALL;
        }
        let rules = near.of(class);
        let mut takes = Takes::ALL;
        for limit in &rules.limits {
            let left = |have: u32| match limit.most {
                Some(most) => most.saturating_sub(have),
                None if have == 0 => u32::MAX,
                None => 0,
            };
            match near.spots[limit.counter as usize] {
                Spot::Host => {
                    takes.each = takes.each.min(left(site.content.get(limit.counter)));
                }
                Spot::Axis(axis, at) => {
                    if let Some(d) = near.domain(axis, site.kind) {
                        takes.total = takes.total.min(left(self.flat[at + d]));
                    } else if near.is_unknown(axis, site.kind) {
                        takes.total = 0;
                    }
                }
            }
            if takes.is_none() {
                return takes;
            }
        }
        self.fellows(near, class, site, &mut takes);
        for even in &rules.spreads {
            if takes.is_none() {
                return takes;
            }
            match near.spots[even.counter as usize] {
                Spot::Host => {
                    let have = site.content.get(even.counter);
                    let (least, hosts) = self.other_hosts(even.eligible, have, site);
                    let n = even_room(even, have, least, hosts);
                    takes.each = takes.each.min(n);
                }
                Spot::Axis(axis, at) => {
                    let n = near.domain(axis, site.kind).map_or(0, |d| {
                        let mask = &self.masks[even.eligible];
                        let counts = &self.flat[at..at + mask.len()];
                        let others = mask.iter().zip(counts).enumerate();
                        let others = others.filter(|(other, (counts, _))| *other != d && **counts);
                        let (mut least, mut domains) = (None::<u32>, 1);
                        for (_, (_, count)) in others {
                            least = Some(least.map_or(*count, |l| l.min(*count)));
                            domains += 1;
                        }
                        even_room(even, counts[d], least, domains)
                    });
                    takes.total = takes.total.min(n);
                }
            }
        }
        takes
    }

    /// Affinity: fellows in every domain asked for, or, where there are none at all, the unit itself.
    pub(super) fn fellows(&self, near: &Near, class: usize, site: Site<'_>, takes: &mut Takes) {
        let rules = near.of(class);
        let (mut all_here, mut none_anywhere, mut on_host) = (true, true, false);
        for &counter in &rules.needs {
            let here = match near.spots[counter as usize] {
                Spot::Host => {
                    on_host = true;
                    site.content.get(counter)
                }
                Spot::Axis(axis, at) => match near.domain(axis, site.kind) {
                    Some(d) => self.flat[at + d],
                    None => {
                        takes.total = 0;
                        return;
                    }
                },
            };
            all_here &= here > 0;
            none_anywhere &= self.total[counter as usize] == 0;
        }
        if all_here {
            return;
        }
        if none_anywhere && rules.own_fellow {
            takes.one_node |= on_host;
        } else {
            takes.total = 0;
        }
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

    /// One more host may allow more units of the class on the others: there are fewer hosts than a spread wants. Else a
    /// new host can only lower the least count, and what was full before stays so. Affinity: always.
    pub fn host_may_widen(&self, near: &Near, class: usize) -> bool {
        let rules = near.of(class);
        let few = |even: &super::Even| {
            let hosts = self.hosts.get(even.eligible).into_iter().flatten();
            near.is_host(even.counter)
                && hosts.fold(0_u32, |sum, n| sum.saturating_add(*n)) < even.min_domains
        };
        !rules.needs.is_empty() || rules.spreads.iter().any(few)
    }

    /// The least count of all hosts of a slot.
    pub fn least_host(&self, slot: usize) -> u32 {
        let least = self.hosts[slot].iter().position(|n| *n > 0);
        u32::try_from(least.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    /// The least count of the other hosts, and how many hosts there are with this one.
    fn other_hosts(&self, slot: usize, have: u32, site: Site<'_>) -> (Option<u32>, u32) {
        let hosts = &self.hosts[slot];
        let mine = (!site.fresh && site.nodes == 1).then_some((have as usize).min(MOST));
        let count = |at: usize, n: u32| n - u32::from(mine == Some(at) && n > 0);
        let mut others = hosts.iter().enumerate().map(|(at, n)| (at, count(at, *n)));
        let least = others.find(|(_, n)| *n > 0).map(|(at, _)| at);
        let all = hosts.iter().fold(0_u32, |sum, n| sum.saturating_add(*n));
        let all = all.saturating_add(u32::from(site.fresh));
        (least.map(|at| u32::try_from(at).unwrap_or(u32::MAX)), all)
    }
}

/// Counts per host are told apart up to here.
const MOST: usize = 4_096;

/// Units that a spread still allows in a domain that has so many, the least of the others having `least` (none: there
/// are no others), among so many domains.
fn even_room(even: &super::Even, have: u32, least: Option<u32>, domains: u32) -> u32 {
    let few = even.min_domains > domains;
    let least = if few { Some(0) } else { least };
    if even.own {
        // The k-th unit needs have + k - min(least, have + k - 1) <= skew.
        least.map_or(u32::MAX, |l| {
            l.saturating_add(even.skew).saturating_sub(have)
        })
    } else {
        let least = least.map_or(have, |l| l.min(have));
        let least = if few { 0 } else { least };
        if have.saturating_sub(least) <= even.skew {
            u32::MAX
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Even;
    use super::even_room;

    #[test]
    fn skew_counts_as_kubernetes_does() {
        let even = |skew, min_domains, own| Even {
            counter: 0,
            skew,
            min_domains,
            own,
            eligible: 0,
        };
        // (skew, fewest domains, counted itself, here, least of the others, domains) -> room.
        let table = [
            (1, 0, true, 0, Some(0), 3, 1),
            (1, 0, true, 1, Some(0), 3, 0),
            (1, 0, true, 0, Some(3), 3, 4),
            (2, 0, true, 1, Some(1), 2, 2),
            (1, 0, true, 5, None, 1, u32::MAX),
            (1, 3, true, 0, None, 1, 1),
            (1, 3, true, 1, Some(1), 2, 0),
            (1, 3, true, 1, Some(1), 3, 1),
            (1, 0, false, 1, Some(0), 3, u32::MAX),
            (1, 0, false, 2, Some(0), 3, 0),
            (1, 0, false, 0, Some(9), 3, u32::MAX),
            (1, 2, false, 2, None, 1, 0),
        ];
        for (skew, min_domains, own, have, least, domains, room) in table {
            let got = even_room(&even(skew, min_domains, own), have, least, domains);
            assert_eq!(
                got, room,
                "{skew} {min_domains} {own} {have} {least:?} {domains}"
            );
        }
    }
}
