//! What gangs that are alike see of the fleet: existing room and open room per domain, looked up once and kept up to date
//! as gangs are placed. A fleet has ten thousand nodes and gangs come by the thousand. Called by `gangs`; changes nothing.
//!
//! **Invariant:** within one run of `gangs` room is only ever taken; whoever takes it says so in the `Log`.

use super::map::Map;
use crate::planner::state::Work;

/// What was taken from since the run of `gangs` began, and the order of use as it was then.
pub(super) struct Log {
    bins: Vec<usize>,
    offers: Vec<usize>,
    rank_gpu: Vec<u32>,
    rank_cpu: Vec<u32>,
}

impl Log {
    pub fn new(work: &Work<'_>) -> Self {
        let ranks = |order: &[usize]| {
            let mut ranks = vec![u32::MAX; work.bins.len()];
            for (rank, b) in order.iter().enumerate() {
                ranks[*b] = index(rank);
            }
            ranks
        };
        Self {
            bins: Vec::new(),
            offers: Vec::new(),
            rank_gpu: ranks(&work.order_gpu),
            rank_cpu: ranks(&work.order_cpu),
        }
    }

    /// Place of a bin in the order of use for units with or without GPUs.
    fn rank(&self, gpus: u32, bin: usize) -> u32 {
        if gpus > 0 {
            self.rank_gpu[bin]
        } else {
            self.rank_cpu[bin]
        }
    }

    pub fn took(&mut self, bin: usize) {
        self.bins.push(bin);
    }
    /// New or open nodes of the offer changed.
    pub fn grew(&mut self, offer: usize) {
        self.offers.push(offer);
    }
}

/// Room on one node, in the order of use.
#[derive(Clone, Copy)]
struct Entry {
    /// Place in the order of use.
    rank: u32,
    bin: u32,
    units: u32,
}

/// Existing room of one domain: entries `from..to`.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub domain: usize,
    from: usize,
    to: usize,
    /// Units in all.
    pub units: u64,
}

/// A pool that could grow in a domain.
pub(super) struct Growing {
    /// Entry in the map's pools.
    pub slot: usize,
    pub domain: usize,
    pub pool: usize,
    /// Units that its open nodes still take.
    pub open: u32,
    /// Offers that suit, with the units of one node.
    pub offers: Vec<(usize, u32)>,
}

/// What one kind of gang sees.
pub(super) struct Look {
    class: usize,
    entries: Vec<Entry>,
    /// By domain.
    pub spans: Vec<Span>,
    /// By (domain, pool).
    pub growing: Vec<Growing>,
    seen_bins: usize,
    seen_offers: usize,
}

impl Look {
    /// Looks once over nodes and offers.
    pub fn new(work: &Work<'_>, map: &Map, class: usize, would: bool, log: &Log) -> Self {
        let unit = &work.input.classes[class];
        let mut found: Vec<(usize, Entry)> = Vec::new();
        for &b in work.order_for(class) {
            let bin = &work.bins[b];
            if bin.free.size.gpus < unit.unit.gpus || bin.would != would {
                continue;
            }
            let Some(domain) = map.of_bin(b, bin.kind) else {
                continue;
            };
            let units = work.room_at_most(class, b);
            if units > 0 {
                let entry = Entry {
                    rank: log.rank(unit.unit.gpus, b),
                    bin: index(b),
                    units,
                };
                found.push((domain, entry));
            }
        }
        // Stable: within a domain in the order of use.
        found.sort_by_key(|(domain, _)| *domain);
        let mut spans: Vec<Span> = Vec::new();
        for (at, (domain, entry)) in found.iter().enumerate() {
            match spans.last_mut() {
                Some(span) if span.domain == *domain => {
                    span.to = at + 1;
                    span.units += u64::from(entry.units);
                }
                _ => spans.push(Span {
                    domain: *domain,
                    from: at,
                    to: at + 1,
                    units: u64::from(entry.units),
                }),
            }
        }
        let mut look = Self {
            class,
            entries: found.into_iter().map(|(_, entry)| entry).collect(),
            spans,
            growing: growing(work, map, class, would),
            seen_bins: log.bins.len(),
            seen_offers: log.offers.len(),
        };
        look.opened(work, map, |_| true);
        look
    }

    /// Works in what was taken since.
    pub fn update(&mut self, work: &Work<'_>, map: &Map, log: &Log) {
        for &b in &log.bins[self.seen_bins..] {
            self.again(work, map, log, b);
        }
        self.seen_bins = log.bins.len();
        let fresh = &log.offers[self.seen_offers..];
        if !fresh.is_empty() {
            let mut slots = vec![false; map.pools.len()];
            for slot in fresh.iter().filter_map(|o| map.of_offer[*o]) {
                slots[slot] = true;
            }
            self.opened(work, map, |slot| slots[slot]);
        }
        self.seen_offers = log.offers.len();
    }

    fn again(&mut self, work: &Work<'_>, map: &Map, log: &Log, b: usize) {
        let bin = &work.bins[b];
        let Some(domain) = map.of_bin(b, bin.kind) else {
            return;
        };
        let Ok(at) = self.spans.binary_search_by_key(&domain, |s| s.domain) else {
            return;
        };
        let span = &mut self.spans[at];
        let unit = &work.input.classes[self.class];
        let mine = &mut self.entries[span.from..span.to];
        let rank = log.rank(unit.unit.gpus, b);
        if span.units > 0
            && let Ok(at) = mine.binary_search_by_key(&rank, |e| e.rank)
            && mine[at].units > 0
        {
            let units = work.room_at_most(self.class, b).min(mine[at].units);
            span.units -= u64::from(mine[at].units - units);
            mine[at].units = units;
        }
    }

    /// Counts again what open nodes of these slots still take.
    fn opened(&mut self, work: &Work<'_>, map: &Map, which: impl Fn(usize) -> bool) {
        for growing in self.growing.iter_mut().filter(|g| which(g.slot)) {
            growing.open = 0;
        }
        for group in &work.groups {
            let Some(slot) = map.of_offer[group.offer].filter(|slot| which(*slot)) else {
                continue;
            };
            if let Ok(at) = self.growing.binary_search_by_key(&slot, |g| g.slot) {
                let here = work.room_in(self.class, group);
                let open = &mut self.growing[at].open;
                *open = open.saturating_add(here);
            }
        }
    }

    /// Bins of a span, in the order of use.
    pub fn bins(&self, span: &Span) -> impl Iterator<Item = usize> + '_ {
        let mine = self.entries[span.from..span.to].iter();
        mine.filter(|e| e.units > 0).map(|e| e.bin as usize)
    }

    /// So many units in the span: (bin, units), in the order of use. Rules between units aside.
    pub fn take(&self, span: &Span, most: u32) -> Vec<(usize, u32)> {
        let mut left = most;
        let mut fits = Vec::new();
        for entry in &self.entries[span.from..span.to] {
            let n = entry.units.min(left);
            if n > 0 {
                fits.push((entry.bin as usize, n));
                left -= n;
            }
            if left == 0 {
                break;
            }
        }
        fits
    }

    /// The first node with room of a span.
    pub fn first(&self, span: &Span) -> Option<usize> {
        let mut mine = self.entries[span.from..span.to].iter();
        mine.find(|e| e.units > 0).map(|e| e.bin as usize)
    }
}

/// Pools whose offers suit the class, by domain.
fn growing(work: &Work<'_>, map: &Map, class: usize, would: bool) -> Vec<Growing> {
    let unit = &work.input.classes[class];
    let mut all = Vec::new();
    for (slot, at) in map.pools.iter().enumerate() {
        let suits = |o: &usize| {
            let offer = &work.offers[*o];
            let times = offer.times(unit);
            (offer.would == would
                && work.matches(class, offer.kind)
                && work.in_time(class, offer.boot)
                && times > 0)
                .then_some((*o, times))
        };
        let offers: Vec<(usize, u32)> = at.offers.iter().filter_map(suits).collect();
        if !offers.is_empty() {
            all.push(Growing {
                slot,
                domain: at.domain,
                pool: at.pool,
                open: 0,
                offers,
            });
        }
    }
    all
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
