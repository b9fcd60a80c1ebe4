//! What all ways to pack the same classes share: the offers that may be opened, and which of them are alike. Made once per
//! attempt by `grow`; changes nothing.

use super::Packing;
use super::open::{self, Twins};
use crate::model::UnixMs;
use crate::planner::ledger::Ledger;
use crate::planner::near::{Content, Site, Takes};
use crate::planner::size::Size;
use crate::planner::state::Work;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// (Size, no GPU wanted, takes a whole node), deadline, most units a node, sight: to the twins that are cheapest per unit.
type Best = BTreeMap<((usize, bool, bool), Option<UnixMs>, u32, usize), Option<usize>>;

pub(in crate::planner) struct Context<'w, 'a> {
    pub(super) work: &'w Work<'a>,
    /// Classes, largest first.
    pub(super) order: &'w [usize],
    /// Offers that may be asked now.
    pub offers: Vec<usize>,
    /// Offers that no class can tell apart but by their limits.
    pub(super) twins: Vec<Twins>,
    /// Per offer, its twins.
    pub(super) twins_of: BTreeMap<usize, usize>,
    /// Per sight: its twins, cheapest first.
    pub(super) shelves: Vec<Vec<usize>>,
    /// Per entry: its size, by number.
    pub(super) size_of: Vec<usize>,
    /// What was found to be cheapest.
    pub(super) best: RefCell<Best>,
}

/// Per entry the number of its size.
fn size_of(work: &Work<'_>, order: &[usize]) -> Vec<usize> {
    let mut index: BTreeMap<&Size, usize> = BTreeMap::new();
    let number = |class: &usize| {
        let next = index.len();
        *index.entry(&work.units[*class]).or_insert(next)
    };
    order.iter().map(number).collect()
}

impl<'w, 'a> Context<'w, 'a> {
    pub fn new(work: &'w Work<'a>, order: &'w [usize], ledger: &Ledger, offers: &[usize]) -> Self {
        let mut offers = offers.to_vec();
        offers.retain(|o| ledger.room(&work.offers, *o) > 0);
        let (twins, shelves) = open::twins(work, order, &offers);
        let each = twins.iter().enumerate();
        let twins_of = each.flat_map(|(at, t)| t.offers.iter().map(move |o| (*o, at)));
        Self {
            twins_of: twins_of.collect(),
            twins,
            shelves,
            size_of: size_of(work, order),
            best: RefCell::new(BTreeMap::new()),
            work,
            order,
            offers,
        }
    }

    /// One class and one kind of new node: all ways to pack come to the same, and no type is left to choose.
    pub fn has_one_way(&self) -> bool {
        self.order.len() == 1 && self.twins.len() <= 1 && !self.has_claims()
    }

    pub fn rank(&self, offer: usize) -> u32 {
        self.work.input.pools[self.work.offers[offer].pool].rank
    }

    /// What the rules between units allow on a new node of a kind.
    pub(super) fn on_new(&self, p: &Packing, class: usize, kind: usize) -> Takes {
        static EMPTY: Content = Content::EMPTY;
        let site = Site {
            kind,
            content: &EMPTY,
            nodes: 1,
            fresh: true,
        };
        p.tally.takes(&self.work.near, class, site)
    }
}
