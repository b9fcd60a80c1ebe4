//! Rules between units: affinity, anti-affinity, spread, host ports, a limit per node. What each class adds to which
//! counters and which it must obey, found once per run; the counts themselves are in [`Tally`] (per domain of a label)
//! and in [`Content`] (per node), so that equal new nodes stay one group. Used through `Work::room` and `Packing`.
//!
//! Semantics are Kubernetes': anti-affinity keeps away in both directions; where no fellow is anywhere, a unit that its
//! own affinity names may go first; skew is (named in the domain) + (the unit itself, if named) - (least over eligible
//! domains), hosts being born when they are opened.

mod blocked;
mod build;
mod domains;
mod tally;
mod terms;

pub(super) use blocked::note;
pub(super) use tally::{Content, Site, Takes, Tally};

use crate::model::Class;
use domains::Axis;

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

    /// New nodes of both kinds count alike as hosts of their own.
    pub fn same_hosts(&self, one: usize, other: usize) -> bool {
        one == other || self.slots.iter().all(|s| s.new[one] == s.new[other])
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

impl Rules {
    fn is_empty(&self) -> bool {
        self.adds.is_empty()
            && self.limits.is_empty()
            && self.needs.is_empty()
            && self.spreads.is_empty()
            && self.wishes.is_empty()
    }
}
