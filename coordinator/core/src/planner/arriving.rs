//! Places units on nodes that come, in the way in which they were asked for: first into those that have something, the
//! first used first, then onto the one whose offering is cheapest per unit. So a plan made again before its nodes are
//! there finds room for the same units, and nothing is asked for twice (I4, no creeping). Called by `fit` after what
//! takes work now.

use super::near::{Content, Site, Takes};
use super::packing::per_unit;
use super::state::Work;
use super::supply::{At, Tier};
use crate::model::UnixMs;
use std::collections::BTreeMap;

/// Which of the nodes that come may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Turn {
    Nothing,
    /// All but those asked for last.
    Older,
    Newest,
    #[default]
    All,
}

/// Nodes that come.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// Those with something on them, in the order in which they got it.
    pub used: Vec<usize>,
    /// Whose turn it is.
    pub turn: Turn,
    /// When the newest of them were asked for.
    newest: Option<UnixMs>,
    stocks: Vec<Stock>,
}

/// Of one offering, alike.
#[derive(Debug)]
struct Stock {
    price: u64,
    rank: u32,
    bins: Vec<usize>,
}

impl Arriving {
    /// All of them.
    pub fn bins(&self) -> impl Iterator<Item = usize> + '_ {
        self.stocks.iter().flat_map(|s| s.bins.iter().copied())
    }

    /// Of a run whose bins are there.
    pub fn new(work: &Work<'_>) -> Self {
        let mut all = Self::default();
        let mut index: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (b, bin) in work.bins.iter().enumerate() {
            if bin.tier != Tier::Coming || bin.would {
                continue;
            }
            if !bin.empty {
                all.used.push(b);
            }
            let price = match bin.at {
                At::Node(n) => work.input.nodes[n].price.0,
                At::Coming(l, _) => {
                    let launch = &work.input.launches[l];
                    let offerings = bin.pool.map(|p| &work.input.pools[p].offerings);
                    let mut offerings = offerings.into_iter().flatten();
                    let offering = offerings.find(|o| o.id == launch.offering);
                    offering.map_or(0, |o| o.price.0)
                }
            };
            let rank = bin.pool.map_or(0, |p| work.input.pools[p].rank);
            let key = (price, rank, bin.kind, bin.total.clone());
            index.entry(key).or_default().push(b);
        }
        let stocks = index
            .into_iter()
            .map(|((price, rank, ..), bins)| Stock { price, rank, bins });
        all.stocks = stocks.collect();
        let coming = all.bins().map(|b| asked(work, b)).max();
        all.newest = coming.flatten();
        all
    }
}

/// Places as much of a class as fits on what comes; returns units placed.
pub(super) fn place(work: &mut Work<'_>, class: usize) -> u32 {
    let mut placed = 0;
    for slot in 0..work.arriving.used.len() {
        if work.open[class] == 0 {
            return placed;
        }
        placed += put(work, class, work.arriving.used[slot]);
    }
    for (_, stock) in order(work, class) {
        for slot in 0..work.arriving.stocks[stock].bins.len() {
            if work.open[class] == 0 {
                return placed;
            }
            let b = work.arriving.stocks[stock].bins[slot];
            if work.bins[b].empty {
                placed += put(work, class, b);
            }
        }
    }
    placed
}

/// When a node was asked for, if it has not joined.
fn asked(work: &Work<'_>, bin: usize) -> Option<UnixMs> {
    match work.bins[bin].at {
        At::Coming(launch, _) => Some(work.input.launches[launch].asked),
        At::Node(_) => None,
    }
}

/// It is the bin's turn.
pub(super) fn in_turn(work: &Work<'_>, bin: usize, turn: Turn) -> bool {
    let newest = || {
        let asked = asked(work, bin);
        asked.is_some() && asked == work.arriving.newest
    };
    match turn {
        Turn::All => true,
        Turn::Nothing => false,
        Turn::Older => !newest(),
        Turn::Newest => newest(),
    }
}

fn put(work: &mut Work<'_>, class: usize, b: usize) -> u32 {
    if !in_turn(work, b, work.arriving.turn) || work.kept_out(class, b) {
        return 0;
    }
    let n = work.room(class, b).min(work.open[class]);
    if n > 0 {
        work.take(class, b, n, false);
        work.chosen(class, b);
        work.open[class] -= n;
    }
    n
}

/// Stocks with an empty node on which a unit fits: cheapest per unit first, as they would be opened (one that has work
/// may be among them).
fn order(work: &Work<'_>, class: usize) -> Vec<((u128, u32, u64), usize)> {
    let unit = &work.units[class];
    let whole = work.input.classes[class].whole_node;
    let mut all = Vec::new();
    for (at, stock) in work.arriving.stocks.iter().enumerate() {
        let empty = stock.bins.iter().map(|b| &work.bins[*b]);
        let Some(bin) = empty.into_iter().find(|bin| bin.empty) else {
            continue;
        };
        let takes = if work.near.touches(class) {
            let site = Site {
                kind: bin.kind,
                content: &Content::EMPTY,
                nodes: 1,
                fresh: true,
            };
            work.tally.takes(&work.near, class, site)
        } else {
            Takes::ALL
        };
        let (each, _) = takes.with(bin.fits(unit, whole));
        if let Some(price) = per_unit(stock.price, each) {
            all.push(((price, stock.rank, stock.price), at));
        }
    }
    all.sort_unstable();
    all
}
