//! The ways in which a gang could be placed, each with a bound on how good it can be, so that only the few that may win
//! are packed: a fleet has hundreds of pools. The bounds are in `bound`, the packing of one way in `attempt`. Called by
//! `gangs`; changes nothing.

mod attempt;
mod bound;

use super::domain::Domain;
use super::look::Look;
use super::map::Map;
use super::tries::{Try, rating};
use crate::planner::ledger::Ledger;
use crate::planner::state::Work;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// What is asked: a gang's class, how many units at least and how many now, on what, within which limits.
#[derive(Clone, Copy)]
pub(super) struct Ask<'q> {
    pub class: usize,
    /// With less it is not whole.
    pub need: u32,
    /// Units to place now.
    pub want: u32,
    /// Units that it would like to have in the end: domains with room for more of them come first.
    pub reach: u32,
    pub would: bool,
    pub ledger: &'q Ledger,
}

/// Less is better: (units out of reach, units short, cost, nodes, how late in the order of use, domain), and last the
/// order in which ways are found.
type Bound = ((u32, u32, u64, u32, usize, usize), usize);

/// Where the units that do not fit are to go.
#[derive(Clone, Copy)]
enum Growth {
    Nowhere,
    /// Index in the look's growing pools.
    Pool(usize),
    /// In these growing pools together.
    Pools(usize, usize),
    NewNode,
}

/// One domain's nodes, with growth in one pool, in several, or none.
struct Way {
    domain: usize,
    /// Index in the look's spans.
    span: Option<usize>,
    fitted: u32,
    growth: Growth,
    /// Never better than this.
    bound: Bound,
    /// Never more units than this.
    most: u32,
}

/// All ways of one gang.
pub(super) struct Ways<'w, 'a, 'q> {
    work: &'w Work<'a>,
    map: &'w Map,
    look: &'w Look,
    ask: Ask<'q>,
    home: &'w BTreeSet<Domain>,
}

impl<'w, 'a, 'q> Ways<'w, 'a, 'q> {
    /// `home`: only there; empty: anywhere.
    pub fn new(
        work: &'w Work<'a>,
        map: &'w Map,
        look: &'w Look,
        ask: Ask<'q>,
        home: &'w BTreeSet<Domain>,
    ) -> Self {
        Self {
            work,
            map,
            look,
            ask,
            home,
        }
    }

    fn welcome(&self, domain: usize) -> bool {
        self.home.is_empty() || self.home.contains(&self.map.domains[domain])
    }

    /// All ways that may give at least so many units, in one of the domains that `may` allows.
    fn all(&self, least: u32, may: impl Fn(&Domain) -> bool) -> Vec<Way> {
        let look = self.look;
        let mut ways = Vec::new();
        let (mut s, mut g) = (0, 0);
        // Both are in the order of domains.
        while s < look.spans.len() || g < look.growing.len() {
            let of_span = look.spans.get(s).map_or(usize::MAX, |span| span.domain);
            let of_pool = look.growing.get(g).map_or(usize::MAX, |pool| pool.domain);
            let domain = of_span.min(of_pool);
            let span = (of_span == domain).then_some(s);
            s += usize::from(span.is_some());
            let from = g;
            while look.growing.get(g).is_some_and(|p| p.domain == domain) {
                g += 1;
            }
            if self.welcome(domain) && may(&self.map.domains[domain]) {
                self.add(&mut ways, least, domain, span, from..g);
            }
        }
        ways
    }

    fn add(
        &self,
        ways: &mut Vec<Way>,
        least: u32,
        domain: usize,
        span: Option<usize>,
        pools: std::ops::Range<usize>,
    ) {
        let Ask { want, reach, .. } = self.ask;
        let units = span.map_or(0, |s| self.look.spans[s].units);
        let have = |most: u32| u32::try_from(units.min(u64::from(most))).unwrap_or(most);
        let fitted = have(want);
        let growing = &self.look.growing[pools.clone()];
        let new_node = self.map.domains[domain] == Domain::NewNode;
        let wide = reach - have(reach);
        let far = if reach == want || new_node {
            0
        } else {
            wide - self.capacity(growing, wide)
        };
        let late = span
            .and_then(|s| self.look.first(&self.look.spans[s]))
            .map_or(0, |b| self.work.bins[b].tier as usize);
        let mut push = |growth: Growth, (cost, nodes): (u64, u32), most: u32| {
            if most >= least {
                let short = want - most.min(want);
                ways.push(Way {
                    domain,
                    span,
                    fitted,
                    growth,
                    bound: ((far, short, cost, nodes, late, domain), ways.len()),
                    most,
                });
            }
        };
        if fitted < want && !growing.is_empty() {
            if new_node {
                push(Growth::NewNode, (0, 0), want);
            } else {
                let rest = want - fitted;
                for (at, pool) in growing.iter().enumerate() {
                    let (least, most) = self.bound(std::slice::from_ref(pool), rest);
                    push(Growth::Pool(pools.start + at), least, fitted + most);
                }
                if growing.len() > 1 {
                    let (least, most) = self.bound(growing, rest);
                    push(Growth::Pools(pools.start, pools.end), least, fitted + most);
                }
            }
        }
        push(Growth::Nowhere, (0, 0), fitted);
    }

    /// The best way that gives at least so many units, in one of the domains that `may` allows.
    pub fn whole(&self, least: u32, may: impl Fn(&Domain) -> bool) -> Option<Try> {
        let ways = self.all(least, may);
        let mut heap: BinaryHeap<Reverse<(Bound, usize)>> = ways
            .iter()
            .enumerate()
            .map(|(at, way)| Reverse((way.bound, at)))
            .collect();
        let mut best: Option<(Bound, Try)> = None;
        while let Some(Reverse((bound, at))) = heap.pop() {
            if best.as_ref().is_some_and(|(have, _)| *have <= bound) {
                break;
            }
            let way = &ways[at];
            let Some(t) = self.attempt(way) else { continue };
            if t.placed < least {
                continue;
            }
            let (short, cost, nodes, late) = rating(self.work, &t, self.ask.want);
            let far = match way.growth {
                Growth::NewNode => self.ask.reach - t.placed.min(self.ask.reach),
                _ => bound.0.0,
            };
            let key = ((far, short, cost, nodes, late, way.domain), bound.1);
            if best.as_ref().is_none_or(|(have, _)| key < *have) {
                best = Some((key, t));
            }
        }
        best.map(|(_, t)| t)
    }

    /// Most units that any way gives, and where: (units, domain).
    pub fn most(&self) -> Option<(u32, &'w Domain)> {
        let mut order = self.all(0, |_| true);
        let key = |w: &Way, placed: u32| (placed, w.fitted, Reverse(w.domain));
        order.sort_by_key(|w| Reverse(key(w, w.most)));
        let mut best = None;
        for way in &order {
            if best.is_some_and(|have| have >= key(way, way.most)) {
                break;
            }
            if let Some(t) = self.attempt(way) {
                best = best.max(Some(key(way, t.placed)));
            }
        }
        best.map(|(placed, _, Reverse(domain))| (placed, &self.map.domains[domain]))
    }

    /// Of the domains that `may` allows the one whose existing and coming nodes give most, and those nodes.
    pub fn hope(&self, may: impl Fn(&Domain) -> bool) -> Option<(Domain, Vec<(usize, u32)>)> {
        let most = u64::from(self.ask.want);
        let all = self.look.spans.iter().filter(|span| span.units > 0);
        all.filter(|s| self.welcome(s.domain) && may(&self.map.domains[s.domain]))
            .max_by_key(|s| (s.units.min(most), Reverse(s.domain)))
            .map(|s| {
                let domain = self.map.domains[s.domain].clone();
                (domain, self.look.take(s, self.ask.want))
            })
    }
}
