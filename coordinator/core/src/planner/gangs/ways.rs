//! The ways in which a gang could be placed, each with a bound on how good it can be, so that only the few that may win
//! are packed: a fleet has hundreds of pools. The bounds are in `bound`, the packing of one way in `attempt`. Called by
//! `gangs`; changes nothing.

mod attempt;
mod bound;
mod hope;

use super::domain::Domain;
use super::look::Look;
use super::map::Map;
use super::tries::{Try, rating};
use crate::planner::ledger::Ledger;
use crate::planner::state::Work;
use bound::Room;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

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
    /// Only in these of the map's domains; none: anywhere.
    home: Option<Vec<usize>>,
}

impl<'w, 'a, 'q> Ways<'w, 'a, 'q> {
    /// `home`: only there; empty: anywhere.
    pub fn new(
        work: &'w Work<'a>,
        map: &'w Map,
        look: &'w Look,
        ask: Ask<'q>,
        home: &BTreeSet<Domain>,
    ) -> Self {
        let index = |d: &Domain| map.domains.binary_search(d).ok();
        let home = (!home.is_empty()).then(|| home.iter().filter_map(index).collect());
        Self {
            work,
            map,
            look,
            ask,
            home,
        }
    }

    fn welcome(&self, domain: usize) -> bool {
        self.home.as_ref().is_none_or(|d| d.contains(&domain))
    }

    /// All ways that may give at least so many units, in one of the domains that `may` allows.
    fn all(&self, least: u32, may: impl Fn(&Domain) -> bool) -> Vec<Way> {
        let look = self.look;
        let mut ways = Vec::with_capacity(2 * look.growing.len());
        let mut rooms = Vec::new();
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
            // Ten thousand nodes are domains of their own: most have no room.
            let too_few = span.is_some_and(|s| look.spans[s].units < u64::from(least));
            if from == g && too_few {
                continue;
            }
            if self.welcome(domain) && may(&self.map.domains[domain]) {
                self.add(&mut ways, &mut rooms, least, (domain, span), from..g);
            }
        }
        ways
    }

    /// `rooms` is there to be used again.
    fn add(
        &self,
        ways: &mut Vec<Way>,
        rooms: &mut Vec<Room>,
        least: u32,
        (domain, span): (usize, Option<usize>),
        pools: Range<usize>,
    ) {
        let Ask { want, reach, .. } = self.ask;
        let units = span.map_or(0, |s| self.look.spans[s].units);
        let have = |most: u32| u32::try_from(units.min(u64::from(most))).unwrap_or(most);
        let fitted = have(want);
        let growing = &self.look.growing[pools.clone()];
        let suits = match growing {
            [] => 0..0,
            [first, ..] => first.suits.start..growing[growing.len() - 1].suits.end,
        };
        let new_node = self.map.domains[domain] == Domain::NewNode;
        let (grows, wide) = (fitted < want && !new_node, reach - have(reach));
        let reaches = reach > want && !new_node;
        if grows || reaches {
            self.rooms(suits.clone(), rooms);
        }
        let open = bound::open(growing);
        let far = if reaches {
            wide - bound::capacity(open, rooms, wide)
        } else {
            0
        };
        let late = span.map_or(0, |s| self.look.spans[s].late);
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
        let rest = want - fitted;
        if grows {
            let base = suits.start;
            for (at, pool) in growing.iter().enumerate() {
                let mine = &rooms[pool.suits.start - base..pool.suits.end - base];
                let (least, most) = bound::bound(pool.open, mine.iter().copied(), rest);
                push(Growth::Pool(pools.start + at), least, fitted + most);
            }
            if growing.len() > 1 {
                let cheapest = self.look.cheapest[suits].iter();
                let all = cheapest.map(|at| rooms[*at - base]);
                let (least, most) = bound::bound(open, all, rest);
                push(Growth::Pools(pools.start, pools.end), least, fitted + most);
            }
        } else if rest > 0 && !growing.is_empty() {
            push(Growth::NewNode, (0, 0), want);
        }
        push(Growth::Nowhere, (0, 0), fitted);
    }

    /// The best way that gives at least so many units, in one of the domains that `may` allows.
    pub fn whole(&self, least: u32, may: impl Fn(&Domain) -> bool) -> Option<Try> {
        let mut ways = self.all(least, may);
        let mut best: Option<(Bound, Try)> = None;
        // Most often the first is the best: they need not be sorted.
        let first =
            |ways: &[Way]| (0..ways.len()).min_by(|a, b| ways[*a].bound.cmp(&ways[*b].bound));
        while let Some(at) = first(&ways) {
            let way = ways.swap_remove(at);
            if best.as_ref().is_some_and(|(have, _)| *have <= way.bound) {
                break;
            }
            let Some(t) = self.attempt(&way) else {
                continue;
            };
            if t.placed < least {
                continue;
            }
            let (short, cost, nodes, late) = rating(self.work, &t, self.ask.want);
            let far = match way.growth {
                Growth::NewNode => self.ask.reach - t.placed.min(self.ask.reach),
                _ => way.bound.0.0,
            };
            let key = ((far, short, cost, nodes, late, way.domain), way.bound.1);
            if best.as_ref().is_none_or(|(have, _)| key < *have) {
                best = Some((key, t));
            }
        }
        best.map(|(_, t)| t)
    }

    /// Most units that any way gives, and where: (units, domain).
    pub fn most(&self) -> Option<(u32, &'w Domain)> {
        let mut ways = self.all(0, |_| true);
        let key = |w: &Way, placed: u32| (placed, w.fitted, Reverse(w.domain));
        let mut best = None;
        // Here, too, few are looked at.
        while let Some(at) = (0..ways.len()).max_by_key(|at| key(&ways[*at], ways[*at].most)) {
            let way = ways.swap_remove(at);
            if best.is_some_and(|have| have >= key(&way, way.most)) {
                break;
            }
            if let Some(t) = self.attempt(&way) {
                best = best.max(Some(key(&way, t.placed)));
            }
        }
        best.map(|(placed, _, Reverse(domain))| (placed, &self.map.domains[domain]))
    }
}
