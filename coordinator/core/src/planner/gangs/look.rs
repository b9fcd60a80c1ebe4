//! What gangs that are alike see of the fleet: existing room and open room per domain, looked up once and kept up to date
//! as gangs are placed. A fleet has ten thousand nodes and gangs come by the thousand. Called by `gangs`; changes nothing.
//!
//! **Invariant:** within one run of `gangs` room is only ever taken; whoever takes it says so in the `Log`.

mod growing;

pub(super) use growing::Growing;
use growing::Suit;

use super::map::Map;
use crate::planner::state::Work;

/// What was taken from since the run of `gangs` began.
#[derive(Default)]
pub(super) struct Log {
    bins: Vec<usize>,
    offers: Vec<usize>,
}

impl Log {
    pub fn took(&mut self, bin: usize) {
        self.bins.push(bin);
    }
    /// New or open nodes of the offer changed.
    pub fn grew(&mut self, offer: usize) {
        self.offers.push(offer);
    }
}

/// Room on one node.
#[derive(Clone, Copy)]
struct Entry {
    bin: u32,
    units: u32,
    /// Index of its span.
    span: u32,
}

/// Existing room of one domain: entries `first..to`, in the order of use.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub domain: usize,
    /// The first entry with room; `to` when there is none.
    first: usize,
    to: usize,
    /// Tier of the first: how late in the order of use; 0 when there is none.
    pub late: usize,
    /// Units in all.
    pub units: u64,
}

/// What one kind of gang sees.
pub(super) struct Look {
    class: usize,
    entries: Vec<Entry>,
    /// Per bin, its entry; `NONE` where there never was room.
    entry_of: Vec<u32>,
    /// By domain.
    pub spans: Vec<Span>,
    /// By (domain, pool).
    pub growing: Vec<Growing>,
    /// By (domain, pool), then cheapest per unit first.
    pub suits: Vec<Suit>,
    /// Indices of `suits` by domain, then cheapest per unit first.
    pub cheapest: Vec<usize>,
    seen_bins: usize,
    seen_offers: usize,
}

/// A bin without an entry.
const NONE: u32 = u32::MAX;

impl Look {
    /// Looks once over nodes and offers.
    pub fn new(work: &Work<'_>, map: &Map, class: usize, would: bool, log: &Log) -> Self {
        let unit = &work.input.classes[class];
        let mut found: Vec<(usize, u32, u32)> = Vec::new();
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
                found.push((domain, index(b), units));
            }
        }
        // Stable: within a domain in the order of use.
        found.sort_by_key(|(domain, ..)| *domain);
        let mut look = Self {
            class,
            entries: Vec::with_capacity(found.len()),
            entry_of: vec![NONE; work.bins.len()],
            spans: Vec::new(),
            growing: Vec::new(),
            suits: Vec::new(),
            cheapest: Vec::new(),
            seen_bins: log.bins.len(),
            seen_offers: log.offers.len(),
        };
        for (domain, bin, units) in found {
            look.add(work, domain, bin, units);
        }
        look.grow(work, map, would);
        look.opened(work, map, |_| true);
        look
    }

    /// Adds a node's room behind that of those before it, by domain.
    fn add(&mut self, work: &Work<'_>, domain: usize, bin: u32, units: u32) {
        let at = self.entries.len();
        if self.spans.last().is_none_or(|span| span.domain != domain) {
            self.spans.push(Span {
                domain,
                first: at,
                to: at,
                late: work.bins[bin as usize].tier as usize,
                units: 0,
            });
        }
        let span = index(self.spans.len() - 1);
        if let Some(last) = self.spans.last_mut() {
            last.to = at + 1;
            last.units += u64::from(units);
        }
        self.entry_of[bin as usize] = index(at);
        self.entries.push(Entry { bin, units, span });
    }

    /// Works in what was taken since.
    pub fn update(&mut self, work: &Work<'_>, map: &Map, log: &Log) {
        for &b in &log.bins[self.seen_bins..] {
            self.again(work, b);
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

    /// Looks again at a bin that was taken from.
    fn again(&mut self, work: &Work<'_>, b: usize) {
        let Some(entry) = self.entries.get_mut(self.entry_of[b] as usize) else {
            return;
        };
        if entry.units == 0 {
            return;
        }
        let units = work.room_at_most(self.class, b).min(entry.units);
        let span = &mut self.spans[entry.span as usize];
        span.units -= u64::from(entry.units - units);
        entry.units = units;
        let mut rest = span.first..span.to;
        let first = rest.find(|at| self.entries[*at].units > 0);
        span.first = first.unwrap_or(span.to);
        span.late = first.map_or(0, |at| {
            work.bins[self.entries[at].bin as usize].tier as usize
        });
    }

    /// Counts again what open nodes of these slots still take.
    fn opened(&mut self, work: &Work<'_>, map: &Map, which: impl Fn(usize) -> bool) {
        for growing in self.growing.iter_mut().filter(|g| which(g.slot)) {
            let offers = map.pools[growing.slot].offers.iter();
            growing.open = offers
                .flat_map(|o| work.groups.of(*o))
                .map(|group| work.room_in(self.class, group))
                .fold(0, u32::saturating_add);
        }
    }

    /// Entries of a span from the first with room on, in the order of use.
    fn rooms<'l>(&'l self, span: &Span) -> impl Iterator<Item = &'l Entry> + use<'l> {
        let mine = &self.entries[span.first..span.to];
        mine.iter().filter(|e| e.units > 0)
    }

    /// Bins of a span, in the order of use.
    pub fn bins<'l>(&'l self, span: &Span) -> impl Iterator<Item = usize> + use<'l> {
        self.rooms(span).map(|e| e.bin as usize)
    }

    /// So many units in the span: (bin, units), in the order of use. Rules between units aside.
    pub fn take(&self, span: &Span, most: u32) -> Vec<(usize, u32)> {
        let mut left = most;
        let mut fits = Vec::new();
        for entry in self.rooms(span) {
            if left == 0 {
                break;
            }
            let n = entry.units.min(left);
            fits.push((entry.bin as usize, n));
            left -= n;
        }
        fits
    }
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
