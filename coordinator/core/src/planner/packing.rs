//! Packing what is left onto open and new nodes: what an attempt is and how it changes here, first fit decreasing in
//! `fill`, greedy by price per value in `greedy`, the choice of type at the end in `right_size`, how packings compare in
//! `score`. Called by `grow`. Works on a `Packing`, never on the run's state.

mod areas;
mod claims;
mod context;
mod fill;
mod greedy;
mod open;
mod right_size;
mod score;
mod tree;

use super::ledger::Ledger;
use super::near::Tally;
use super::offers::Offer;
use super::state::{Group, Put, Work};
pub(super) use context::Context;
pub(super) use open::per_unit;
use std::collections::BTreeMap;
use tree::{NOTHING, Peak, Tree};

/// Kinds of places that units may go to; none: all that match.
type Kinds<'k> = Option<&'k [usize]>;

/// One attempt: what would be open after it, and who stays without.
#[derive(Clone)]
pub(super) struct Packing {
    /// Open nodes that the attempt may use, and those that it opened. Not in order: `leaf` is.
    pub groups: Vec<Group>,
    pub ledger: Ledger,
    /// Units left per entry of `order`.
    pub left: Vec<u32>,
    /// Counts of the rules between units.
    pub tally: Tally,
    pub step: u32,
    /// Opened nodes may still become larger.
    may_enlarge: bool,
    tree: Tree,
    /// Per leaf of the tree, its group.
    at: Vec<u32>,
}

/// No group starts at this leaf.
const NONE: u32 = u32::MAX;

/// May nodes of the offer be opened for units of the class? Units without GPUs open no nodes with GPUs while the fleet
/// has an offering without that could serve them, full or not (SC-79): they may still fill holes of those that cannot leave, and as a last resort of all (`choose`).
pub(super) fn may_open(work: &Work<'_>, class: usize, offer: &Offer<'_>) -> bool {
    work.matches(class, offer.kind)
        && work.in_time(class, offer.boot)
        && !(work.plain[class] && offer.size.gpus > 0)
}

/// Units on one empty node of an offer, by its size.
pub(super) fn fits_new(work: &Work<'_>, class: usize, offer: &Offer<'_>) -> u32 {
    if offer.alloc.is_none() {
        0
    } else if work.input.classes[class].whole_node {
        u32::from(work.units[class].fits(&offer.size))
    } else {
        work.units[class].times(&offer.size)
    }
}

/// What the first node of a group may give.
fn peak(work: &Work<'_>, group: &Group) -> Peak {
    if group.whole {
        return NOTHING;
    }
    let (one, two) = group.content.marks();
    Peak {
        cpu: group.free.size.cpu,
        memory: group.free.size.memory,
        gpus: group.free.size.gpus,
        share: group.free.largest_share(),
        kinds: 1 << (work.offers[group.offer].kind % 64),
        one,
        two,
    }
}

impl Packing {
    /// Nothing tried yet: the groups of the run that the attempt may use, those of its offers.
    pub fn start(work: &Work<'_>, left: Vec<u32>, ledger: &Ledger, offers: &[usize]) -> Self {
        let mut p = Self {
            groups: Vec::new(),
            ledger: ledger.clone(),
            left,
            tally: work.tally.clone(),
            step: work.step,
            may_enlarge: false,
            tree: Tree::default(),
            at: Vec::new(),
        };
        let mut leaves = Vec::new();
        for group in work.groups.in_order(offers.iter()) {
            let leaf = p.at.len();
            let end = leaf + group.nodes as usize;
            p.at.resize(end, NONE);
            p.at[leaf] = u32::try_from(p.groups.len()).unwrap_or(NONE);
            leaves.resize(end, NOTHING);
            leaves[leaf] = peak(work, group);
            p.groups.push(Group {
                origin: Some(group.leaf),
                leaf,
                ..group.clone()
            });
        }
        p.tree = Tree::of(&leaves);
        p
    }

    /// The same with nodes that come: those that have something are open, the stock (per offer, bins) is as if it had not
    /// been asked for. None when some such node has no offer that it could be of.
    pub fn start_on(
        work: &Work<'_>,
        left: Vec<u32>,
        ledger: &Ledger,
        stock: &BTreeMap<usize, Vec<usize>>,
    ) -> Option<Self> {
        let mut p = Self::start(work, left, ledger, &[]);
        for bins in stock.values() {
            for b in bins {
                p.tally.close(&work.near, work.bins[*b].kind);
            }
        }
        for (leaf, b) in work.arriving.used.iter().enumerate() {
            let bin = &work.bins[*b];
            let like = |o: &Offer<'_>| o.kind == bin.kind && Some(o.pool) == bin.pool;
            let offer = work.offers.iter().position(like)?;
            p.add(
                work,
                Group {
                    offer,
                    nodes: 1,
                    free: bin.free.clone(),
                    whole: false,
                    placed: Vec::new(),
                    content: bin.content.clone(),
                    origin: Some(leaf),
                    leaf,
                },
            );
        }
        Some(p)
    }

    /// Notes a group where it stands.
    fn index(&mut self, work: &Work<'_>, g: usize) {
        let group = &self.groups[g];
        self.at[group.leaf] = u32::try_from(g).unwrap_or(NONE);
        self.tree.set(group.leaf, peak(work, group));
    }

    /// Adds a group whose first node stands at this leaf.
    fn add(&mut self, work: &Work<'_>, group: Group) -> usize {
        let end = group.leaf + group.nodes as usize;
        if self.at.len() < end {
            self.at.resize(end, NONE);
        }
        self.groups.push(group);
        self.index(work, self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// Puts units on each node of a group.
    fn put(&mut self, work: &Work<'_>, g: usize, class: usize, units: u32) {
        self.step += 1;
        let group = &mut self.groups[g];
        if work.input.classes[class].whole_node {
            group.free.clear();
            group.whole = true;
        } else {
            group.free.take(&work.units[class], units);
        }
        group.placed.push(Put {
            class,
            units,
            step: self.step,
        });
        if work.near.touches(class) {
            let kind = work.offers[group.offer].kind;
            let amount = (units, group.nodes);
            self.tally
                .put(&work.near, class, kind, &mut group.content, amount, false);
        }
        self.index(work, g);
    }

    /// Splits a group: its first `nodes` stay, the rest becomes a group right behind.
    fn split(&mut self, work: &Work<'_>, g: usize, nodes: u32) {
        let group = &mut self.groups[g];
        let rest = group.nodes - nodes;
        if rest == 0 {
            return;
        }
        group.nodes = nodes;
        let piece = Group {
            nodes: rest,
            leaf: group.leaf + nodes as usize,
            ..group.clone()
        };
        self.add(work, piece);
    }

    /// Puts all units of the only entry on one open node, if one takes them.
    pub fn put_on_one(&mut self, work: &Work<'_>, class: usize, units: u32) -> bool {
        let takes = |g: &Group| work.room_in_by(&self.tally, class, g).0 >= units;
        let Some(g) = self.groups.iter().position(takes) else {
            return false;
        };
        self.split(work, g, 1);
        self.put(work, g, class, units);
        self.left[0] = 0;
        true
    }

    /// What it placed after step `since` comes so many steps later: others were placed in between.
    pub fn delay(&mut self, since: u32, steps: u32) {
        let placed = self.groups.iter_mut().flat_map(|g| &mut g.placed);
        for put in placed.filter(|put| put.step > since) {
            put.step += steps;
        }
        self.step += steps;
    }

    /// Groups that this attempt opened.
    pub fn opened_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|g| g.origin.is_none())
    }

    /// Cost per hour and number of the nodes that this attempt opens.
    pub fn opened(&self, work: &Work<'_>) -> (u64, u32) {
        self.opened_groups().fold((0, 0), |(cost, nodes), g| {
            let price = work.offers[g.offer]
                .price
                .saturating_mul(u64::from(g.nodes));
            (price.saturating_add(cost), g.nodes.saturating_add(nodes))
        })
    }

    /// Offers that this attempt opens, with their nodes.
    pub fn offers(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.opened_groups().map(|g| (g.offer, g.nodes))
    }
}
