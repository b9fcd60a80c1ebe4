//! Rules between units: affinity, anti-affinity, spread, host ports, a limit per node. What each class adds to which
//! counters and which it must obey, found once per run; the counts themselves are in [`Tally`] (per domain of a label)
//! and in [`Content`] (per node), so that equal new nodes stay one group. Used through `Work::room` and `Packing`.
//!
//! Semantics are Kubernetes': anti-affinity keeps away in both directions; where no fellow is anywhere, a unit that its
//! own affinity names may go first; skew is (named in the domain) + (the unit itself, if named) - (least over eligible
//! domains), hosts being born when they are opened.

mod blocked;
mod tally;
mod terms;

pub(super) use blocked::note;
pub(super) use tally::{Content, Site, Takes, Tally};

use super::matching::{HOST, Place, ZONE};
use super::packing::may_open;
use super::state::Work;
use crate::model::{Class, Lifecycle, Source};
use std::collections::{BTreeMap, BTreeSet};
use terms::{Term, Terms};

/// Where a counter counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spot {
    /// On each node.
    Host,
    /// In each domain of an axis, from this place of the flat counts on.
    Axis(usize, usize),
}

/// What a counter counts, for people.
enum Counted {
    Named(String),
    Keeping(String),
    Port,
    Class,
}

/// A node label that spans domains.
struct Axis {
    /// Per kind of place, its domain.
    of_kind: Vec<Option<u32>>,
    /// Per kind: it will be in some domain, nobody knows in which.
    unknown: Vec<bool>,
    domains: usize,
}

/// At most so many (or, not being one of them, none) on the node or in the domain.
#[derive(Debug, Clone, Copy)]
struct Limit {
    counter: u32,
    /// Most, when the unit is one of them; absent: it is not, and there may be none.
    most: Option<u32>,
}

/// Hard spread.
#[derive(Debug, Clone, Copy)]
struct Even {
    counter: u32,
    skew: u32,
    min_domains: u32,
    /// The unit itself is counted.
    own: bool,
    /// Entry in `masks` (axis) or `slots` (host).
    eligible: usize,
}

/// What one class adds to, and what it must obey.
#[derive(Debug, Clone, Default)]
struct Rules {
    adds: Vec<u32>,
    limits: Vec<Limit>,
    /// Counters of fellows, one per topology.
    needs: Vec<u32>,
    /// It is a fellow of itself.
    own_fellow: bool,
    spreads: Vec<Even>,
    /// Entry in `areas`, when some rule is about domains.
    areas: Option<usize>,
    /// Counter and weight per fellow (a soft spread: -1).
    wishes: Vec<(u32, i64)>,
}

/// Domains of an axis that count for a spread, for classes with one set of rules about nodes.
struct Mask {
    axis: usize,
    /// From the beginning: those of nodes that exist, and of offers that may be asked.
    first: Vec<bool>,
    /// Per kind: a new node of it makes its domain count.
    new: Vec<bool>,
}

/// Hosts by their count of one counter, for classes with one set of rules about nodes.
struct Slot {
    /// Per kind: existing nodes of it count.
    old: Vec<bool>,
    /// Per kind: new nodes of it count.
    new: Vec<bool>,
}

/// The rules of a run. Never changes.
#[derive(Default)]
pub(super) struct Near {
    axes: Vec<Axis>,
    spots: Vec<Spot>,
    /// Per counter.
    terms: Vec<Counted>,
    rules: Vec<Rules>,
    /// Per class, its rules; none: it obeys nothing and nobody looks at it.
    rule_of: Vec<Option<u32>>,
    masks: Vec<Mask>,
    slots: Vec<Slot>,
    /// Per counter, its slots.
    slots_of: Vec<Vec<u32>>,
    /// Kinds by domain, per set of axes that rules look at.
    areas: Vec<Vec<Vec<usize>>>,
    /// Length of the flat counts.
    flat: usize,
}

/// Why a class cannot be used as it is; its rules are named.
pub(super) fn unusable(class: &Class) -> Option<String> {
    let c = &class.constraints;
    let near = c.affinity.iter().chain(&c.anti_affinity);
    let mut axes = near
        .chain(c.preferred_near.iter().map(|p| &p.near))
        .map(|n| &n.topology)
        .chain(c.spread.iter().map(|s| &s.topology));
    if axes.any(String::is_empty) {
        return Some("a rule about other units without a topology".to_owned());
    }
    if c.spread.iter().any(|s| s.max_skew == 0) {
        return Some("a spread with a skew of 0".to_owned());
    }
    if class.unit.gpu_milli >= 1_000 {
        return Some(format!(
            "a share of {} thousandths of one GPU",
            class.unit.gpu_milli
        ));
    }
    if class.unit.gpu_milli > 0 && class.unit.gpus > 0 {
        return Some("whole GPUs and a share of one together".to_owned());
    }
    None
}

impl Near {
    /// Finds all rules, and counts what is there. The work's kinds, offers, matches and bins must be complete; puts the
    /// content of each bin into it.
    pub fn build<'a>(work: &mut Work<'a>) -> (Self, Tally) {
        let mut near = Self {
            rule_of: vec![None; work.input.classes.len()],
            ..Self::default()
        };
        let mut terms = Terms::default();
        let mut own: Vec<Rules> = Vec::with_capacity(work.input.classes.len());
        for (i, class) in work.input.classes.iter().enumerate() {
            own.push(asked(&mut terms, i, class));
        }
        let carried = running_terms(work, &mut terms);
        if terms.len() == 0 {
            return (near, Tally::default());
        }
        let list = terms.list();
        near.place(work, &list);
        let mut builder = Builder {
            near: &mut near,
            masks: BTreeMap::new(),
            slots: BTreeMap::new(),
            areas: BTreeMap::new(),
        };
        for (i, (class, mut rules)) in work.input.classes.iter().zip(own).enumerate() {
            let named = terms.naming((&class.labels, &class.namespace)).to_vec();
            rules.adds.extend(&named);
            rules.adds.sort_unstable();
            rules.adds.dedup();
            let kept = named.iter().filter_map(|at| terms.keepers(*at));
            rules.limits.extend(kept.map(|counter| Limit {
                counter,
                most: None,
            }));
            let ports = class.constraints.host_ports.iter();
            let taken = ports.flat_map(|port| terms.conflicts(port));
            rules.limits.extend(taken.map(|counter| Limit {
                counter,
                most: None,
            }));
            builder.finish(work, i, class, &mut rules);
            if rules.is_empty() {
                continue;
            }
            near_rule(builder.near, i, rules);
        }
        near.slots_of = vec![Vec::new(); near.spots.len()];
        let mut at_slot: Vec<(u32, u32)> = Vec::new();
        for rules in &near.rules {
            for even in &rules.spreads {
                if matches!(near.spots[even.counter as usize], Spot::Host) {
                    let slot = u32::try_from(even.eligible).unwrap_or(u32::MAX);
                    at_slot.push((even.counter, slot));
                }
            }
        }
        at_slot.sort_unstable();
        at_slot.dedup();
        for (counter, slot) in at_slot {
            near.slots_of[counter as usize].push(slot);
        }
        let tally = near.count(work, &mut terms, &carried);
        (near, tally)
    }

    /// Spots of the counters, and the domains of every axis.
    fn place(&mut self, work: &Work<'_>, list: &[Term<'_>]) {
        let mut axes: BTreeMap<&str, usize> = BTreeMap::new();
        for term in list {
            let spot = match term {
                Term::Port(_) | Term::Class(_) => Spot::Host,
                Term::Named(HOST, _) | Term::Keeping(HOST, _) => Spot::Host,
                Term::Named(key, _) | Term::Keeping(key, _) => {
                    let axis = *axes.entry(key).or_insert_with(|| {
                        self.axes.push(Axis::new(key, &work.kinds));
                        self.axes.len() - 1
                    });
                    let at = self.flat;
                    self.flat += self.axes[axis].domains;
                    Spot::Axis(axis, at)
                }
            };
            self.spots.push(spot);
            self.terms.push(match term {
                Term::Named(axis, _) => Counted::Named((*axis).to_owned()),
                Term::Keeping(axis, _) => Counted::Keeping((*axis).to_owned()),
                Term::Port(_) => Counted::Port,
                Term::Class(_) => Counted::Class,
            });
        }
    }

    /// Counts what runs, what requests hold, and where; and the hosts of every slot.
    fn count<'a>(
        &self,
        work: &mut Work<'a>,
        terms: &mut Terms<'a>,
        carried: &BTreeMap<(usize, usize), Vec<u32>>,
    ) -> Tally {
        let input = work.input;
        let mut tally = Tally::new(self);
        let by_request: BTreeMap<&Source, usize> = input
            .classes
            .iter()
            .enumerate()
            .filter(|(i, c)| matches!(c.source, Source::Request(_)) && self.rule_of[*i].is_some())
            .map(|(i, c)| (&c.source, i))
            .collect();
        for (n, node) in input.nodes.iter().enumerate() {
            if !is_host(node.lifecycle) || work.bad_nodes.contains_key(&n) {
                continue;
            }
            let kind = work.node_kind[n];
            let mut content = Content::default();
            tally.open(self, kind, 1, true);
            for (w, work) in node.workloads.iter().enumerate() {
                let mut adds = terms.naming((&work.labels, &work.namespace)).to_vec();
                adds.extend(carried.get(&(n, w)).into_iter().flatten());
                adds.sort_unstable();
                adds.dedup();
                tally.add(self, &adds, kind, &mut content, work.count, 1, true);
            }
            for held in &node.reserved {
                let source = Source::Request(held.request.clone());
                if let Some(class) = by_request.get(&source) {
                    let adds = &self.of(*class).adds;
                    tally.add(self, adds, kind, &mut content, held.units, 1, true);
                }
            }
            if let Some(b) = work.bin_of_node.get(&n) {
                work.bins[*b].content = content;
            }
        }
        for bin in &work.bins {
            if matches!(bin.at, super::supply::At::Coming(..)) {
                tally.open(self, bin.kind, 1, true);
            }
        }
        tally
    }

    fn of(&self, class: usize) -> &Rules {
        static NONE: Rules = Rules {
            adds: Vec::new(),
            limits: Vec::new(),
            needs: Vec::new(),
            own_fellow: false,
            spreads: Vec::new(),
            areas: None,
            wishes: Vec::new(),
        };
        self.rule_of[class].map_or(&NONE, |at| &self.rules[at as usize])
    }

    /// The class obeys something, or somebody looks at it.
    pub fn touches(&self, class: usize) -> bool {
        self.rule_of[class].is_some()
    }

    /// The class wishes to be near others, or away from them.
    pub fn has_wishes(&self, class: usize) -> bool {
        !self.of(class).wishes.is_empty()
    }

    /// How many of a class may go somewhere depends on where others of it are: on nodes, or in domains.
    pub fn levels(&self, class: usize) -> (bool, bool) {
        let spreads = &self.of(class).spreads;
        let own = |host: bool| {
            spreads
                .iter()
                .any(|s| s.own && self.is_host(s.counter) == host)
        };
        (own(true), own(false))
    }

    /// At most one of the units that a rule of the class names, itself among them, is on a host.
    pub fn is_alone(&self, class: usize) -> bool {
        let mut limits = self.of(class).limits.iter();
        limits.any(|l| l.most == Some(1) && self.is_host(l.counter))
    }

    /// Placing units of the class somewhere may allow more of them there or elsewhere.
    pub fn may_widen(&self, class: usize) -> bool {
        let rules = self.of(class);
        !rules.needs.is_empty() || rules.spreads.iter().any(|s| s.own)
    }

    fn is_host(&self, counter: u32) -> bool {
        matches!(self.spots[counter as usize], Spot::Host)
    }

    /// It will be in a domain that nobody knows yet.
    fn is_unknown(&self, axis: usize, kind: usize) -> bool {
        self.axes[axis].unknown[kind]
    }

    /// Domain of a kind on an axis.
    fn domain(&self, axis: usize, kind: usize) -> Option<usize> {
        self.axes[axis].of_kind[kind].map(|d| d as usize)
    }

    /// Kinds by the domains that the rules of a class tell apart; none when it has no rule about domains.
    pub fn areas(&self, class: usize) -> &[Vec<usize>] {
        let at = self.rule_of[class].and_then(|at| self.rules[at as usize].areas);
        at.map_or(&[], |at| &self.areas[at])
    }

    /// Axes that the rules of a class look at.
    fn axes_of(&self, rules: &Rules) -> BTreeSet<usize> {
        let counters = rules.limits.iter().map(|l| l.counter);
        let counters = counters
            .chain(rules.needs.iter().copied())
            .chain(rules.spreads.iter().map(|s| s.counter));
        let axes = counters.filter_map(|c| match self.spots[c as usize] {
            Spot::Axis(axis, _) => Some(axis),
            Spot::Host => None,
        });
        axes.collect()
    }

    /// Kinds by the domains of all axes.
    pub fn all_areas(&self) -> Vec<Vec<usize>> {
        self.areas_of(&(0..self.axes.len()).collect())
    }

    fn areas_of(&self, axes: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let kinds = self.axes.first().map_or(0, |a| a.of_kind.len());
        if axes.is_empty() || kinds == 0 {
            return Vec::new();
        }
        let mut areas: BTreeMap<Vec<(Option<u32>, bool)>, Vec<usize>> = BTreeMap::new();
        for kind in 0..kinds {
            let at = |a: &usize| (self.axes[*a].of_kind[kind], self.axes[*a].unknown[kind]);
            let domains = axes.iter().map(at).collect();
            areas.entry(domains).or_default().push(kind);
        }
        areas.into_values().collect()
    }

    /// Two kinds are in the same domains on every axis.
    pub fn same_domains(&self, one: usize, other: usize) -> bool {
        let at = |axis: &Axis, kind: usize| (axis.of_kind[kind], axis.unknown[kind]);
        let same = |axis: &Axis| at(axis, one) == at(axis, other);
        one == other || self.axes.iter().all(same)
    }

    /// New nodes of both kinds count alike as hosts of their own.
    pub fn same_hosts(&self, one: usize, other: usize) -> bool {
        one == other || self.slots.iter().all(|s| s.new[one] == s.new[other])
    }

    /// Domains of a kind on all axes, to compare.
    pub fn domains(&self, kind: usize) -> Vec<(Option<u32>, bool)> {
        let at = |axis: &Axis| (axis.of_kind[kind], axis.unknown[kind]);
        self.axes.iter().map(at).collect()
    }

    /// Marks of counters (below 64) of which the class must find none, and at most one, on a node.
    pub fn must_lack(&self, tally: &Tally, class: usize) -> (u64, u64) {
        let rules = self.of(class);
        let (mut none, mut one) = (0, 0);
        let bit = |counter: u32| if counter < 64 { 1_u64 << counter } else { 0 };
        for limit in rules.limits.iter().filter(|l| self.is_host(l.counter)) {
            match limit.most {
                None | Some(0 | 1) => none |= bit(limit.counter),
                Some(2) => one |= bit(limit.counter),
                Some(_) => {}
            }
        }
        for even in rules.spreads.iter().filter(|s| self.is_host(s.counter)) {
            let most = tally.least_host(even.eligible).saturating_add(even.skew);
            match most.saturating_sub(u32::from(even.own)) {
                0 => none |= bit(even.counter),
                1 => one |= bit(even.counter),
                _ => {}
            }
        }
        (none, one)
    }
}

impl Axis {
    fn new(key: &str, kinds: &[Place<'_>]) -> Self {
        let mut index: BTreeMap<&str, u32> = BTreeMap::new();
        let of_kind = kinds
            .iter()
            .map(|place| {
                let value = place.label(key)?;
                let next = u32::try_from(index.len()).unwrap_or(u32::MAX);
                Some(*index.entry(value).or_insert(next))
            })
            .collect();
        let unknown = kinds.iter().map(|k| key == ZONE && k.zone_open);
        Self {
            unknown: unknown.collect(),
            of_kind,
            domains: index.len(),
        }
    }
}

impl Rules {
    fn is_empty(&self) -> bool {
        self.adds.is_empty()
            && self.limits.is_empty()
            && self.needs.is_empty()
            && self.spreads.is_empty()
            && self.wishes.is_empty()
    }
}

/// A machine that a scheduler may know: a domain of its own.
fn is_host(life: Lifecycle) -> bool {
    !matches!(
        life,
        Lifecycle::Requested | Lifecycle::Launched | Lifecycle::Gone | Lifecycle::Off
    )
}

fn near_rule(near: &mut Near, class: usize, rules: Rules) {
    near.rule_of[class] = u32::try_from(near.rules.len()).ok();
    near.rules.push(rules);
}

/// The rules that a class itself states; who else keeps it away is found later.
fn asked<'a>(terms: &mut Terms<'a>, index: usize, class: &'a Class) -> Rules {
    let mut rules = Rules::default();
    let c = &class.constraints;
    let space = class.namespace.as_str();
    if c.max_per_node > 0 {
        let counter = terms.class(index);
        rules.adds.push(counter);
        rules.limits.push(Limit {
            counter,
            most: Some(c.max_per_node),
        });
    }
    for port in &c.host_ports {
        rules.adds.push(terms.port(port));
    }
    for near in &c.anti_affinity {
        let (named, keeping) = terms.away(near, space);
        rules.adds.push(keeping);
        rules.limits.push(Limit {
            counter: named,
            most: None,
        });
    }
    if !c.affinity.is_empty() {
        rules.needs = terms.fellows(&c.affinity, space);
    }
    for spread in &c.spread {
        let counter = terms.named(&spread.topology, &spread.select, space);
        if spread.hard {
            rules.spreads.push(Even {
                counter,
                skew: spread.max_skew,
                min_domains: spread.min_domains,
                own: false,
                eligible: 0,
            });
        } else {
            rules.wishes.push((counter, -1));
        }
    }
    for wish in &c.preferred_near {
        let counter = terms.named(&wish.near.topology, &wish.near.select, space);
        rules.wishes.push((counter, i64::from(wish.weight)));
    }
    rules
}

/// Counters that running work is in by what it states: whom it keeps away, its ports. By (node, workload).
fn running_terms<'a>(work: &Work<'a>, terms: &mut Terms<'a>) -> BTreeMap<(usize, usize), Vec<u32>> {
    let mut all = BTreeMap::new();
    for (n, node) in work.input.nodes.iter().enumerate() {
        for (w, work) in node.workloads.iter().enumerate() {
            if work.anti_affinity.is_empty() && work.host_ports.is_empty() {
                continue;
            }
            let away = work.anti_affinity.iter();
            let mut list: Vec<u32> = away
                .map(|near| terms.away(near, &work.namespace).1)
                .collect();
            list.extend(work.host_ports.iter().map(|port| terms.port(port)));
            all.insert((n, w), list);
        }
    }
    all
}

/// What `Near::build` shares among classes.
struct Builder<'n> {
    near: &'n mut Near,
    masks: BTreeMap<(usize, usize, bool), usize>,
    slots: BTreeMap<(u32, usize), usize>,
    areas: BTreeMap<BTreeSet<usize>, usize>,
}

impl Builder<'_> {
    /// Fills in what depends on everything: what counts the class itself, which domains count for its spreads.
    fn finish(&mut self, work: &Work<'_>, index: usize, class: &Class, rules: &mut Rules) {
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
