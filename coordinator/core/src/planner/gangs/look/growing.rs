//! Which pools could grow for a kind of gang, and by which offers. Found once per `Look`: neither prices nor what a node
//! gives change within a run. Called by `look` alone.

use super::Look;
use crate::planner::gangs::map::Map;
use crate::planner::state::Work;
use std::cmp::Ordering;
use std::ops::Range;

/// A pool that could grow in a domain.
pub(in crate::planner::gangs) struct Growing {
    /// Entry in the map's pools.
    pub slot: usize,
    pub domain: usize,
    /// Units that its open nodes still take.
    pub open: u32,
    /// Its entries in the look's `suits`.
    pub suits: Range<usize>,
}

/// An offer that suits, with the units of one node.
#[derive(Clone, Copy)]
pub(in crate::planner::gangs) struct Suit {
    pub offer: usize,
    pub times: u32,
}

impl Look {
    /// Adds the pools whose offers suit the class.
    pub(super) fn grow(&mut self, work: &Work<'_>, map: &Map, would: bool) {
        let class = self.class;
        let unit = &work.input.classes[class];
        for (slot, at) in map.pools.iter().enumerate() {
            let suits = |o: &usize| {
                let offer = &work.offers[*o];
                let may = offer.would == would
                    && work.matches(class, offer.kind)
                    && work.in_time(class, offer.boot);
                let times = if may { offer.times(unit) } else { 0 };
                (times > 0).then_some(Suit { offer: *o, times })
            };
            let from = self.suits.len();
            self.suits.extend(at.offers.iter().filter_map(suits));
            self.suits[from..].sort_by(|a, b| a.cheaper(b, work));
            if self.suits.len() > from {
                self.growing.push(Growing {
                    slot,
                    domain: at.domain,
                    open: 0,
                    suits: from..self.suits.len(),
                });
            }
        }
        let suits = &self.suits;
        self.cheapest = (0..suits.len()).collect();
        for pools in self.growing.chunk_by(|a, b| a.domain == b.domain) {
            if let [first, .., last] = pools {
                let mine = &mut self.cheapest[first.suits.start..last.suits.end];
                mine.sort_by(|a, b| suits[*a].cheaper(&suits[*b], work));
            }
        }
    }
}

impl Suit {
    /// By price per unit.
    fn cheaper(&self, other: &Self, work: &Work<'_>) -> Ordering {
        let price = |suit: &Self| u128::from(work.offers[suit.offer].price);
        let (mine, others) = (u128::from(self.times), u128::from(other.times));
        (price(self) * others).cmp(&(price(other) * mine))
    }
}
