//! How many more units of a class the rules still allow at a place, by the counts of the moment: limits, affinity, spread.
//! Called through `Work::room` and by packings; changes no count.

use super::{Content, MOST, Tally};
use crate::planner::near::{Even, Near, Spot};

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

impl Tally {
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
    pub(in crate::planner::near) fn fellows(
        &self,
        near: &Near,
        class: usize,
        site: Site<'_>,
        takes: &mut Takes,
    ) {
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

    /// One more host may allow more units of the class on the others: there are fewer hosts than a spread wants. Else a
    /// new host can only lower the least count, and what was full before stays so. Affinity: always.
    pub fn host_may_widen(&self, near: &Near, class: usize) -> bool {
        let rules = near.of(class);
        let few = |even: &Even| {
            let hosts = self.hosts.get(even.eligible).into_iter().flatten();
            near.is_host(even.counter)
                && hosts.fold(0_u32, |sum, n| sum.saturating_add(*n)) < even.min_domains
        };
        !rules.needs.is_empty() || rules.spreads.iter().any(few)
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

/// Units that a spread still allows in a domain that has so many, the least of the others having `least` (none: there
/// are no others), among so many domains.
fn even_room(even: &Even, have: u32, least: Option<u32>, domains: u32) -> u32 {
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
    use super::{Even, even_room};

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
