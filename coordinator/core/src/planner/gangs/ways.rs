//! The ways in which a gang could be placed, each with a bound on how good it can be, so that only the few that may win
//! are packed: a fleet has hundreds of pools. Called by `gangs`; changes nothing.

use super::domain::Domain;
use super::look::{Growing, Look};
use super::map::Map;
use super::tries::{Try, rating};
use crate::model::Locality;
use crate::planner::grow::{self, Packing};
use crate::planner::ledger::Ledger;
use crate::planner::near::Tally;
use crate::planner::offers::Offer;
use crate::planner::packing::may_open;
use crate::planner::state::Work;
use crate::planner::trial;
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

    /// Units that the pools could still take, at most `most`.
    fn capacity(&self, pools: &[Growing], most: u32) -> u32 {
        let mut sum: u32 = 0;
        for pool in pools {
            sum = sum.saturating_add(pool.open);
            for (o, times) in &pool.offers {
                let room = self.ask.ledger.room(&self.work.offers, *o);
                sum = sum.saturating_add(times.saturating_mul(room));
            }
            if sum >= most {
                return most;
            }
        }
        sum
    }

    /// The least cost and nodes for so many units, and the most units that there is room for.
    fn bound(&self, pools: &[Growing], units: u32) -> ((u64, u32), u32) {
        let offers = &self.work.offers;
        let open = pools.iter().fold(0_u32, |n, p| n.saturating_add(p.open));
        let rest = units.saturating_sub(open);
        if rest == 0 {
            return ((0, 0), units);
        }
        let rooms = pools.iter().flat_map(|p| &p.offers).filter_map(|(o, n)| {
            let room = self.ask.ledger.room(offers, *o);
            (room > 0).then_some((offers[*o].price, *n, room))
        });
        if let [_] = pools
            && pools[0].offers.len() == 1
        {
            return single(rooms, rest, units, open);
        }
        let mut rooms: Vec<(u64, u32, u32)> = rooms.collect();
        let new = rooms.iter().fold(0_u32, |sum, (_, n, room)| {
            sum.saturating_add(n.saturating_mul(*room))
        });
        let most = units.min(open.saturating_add(new));
        if most < units {
            // It cannot be full, and then it opens less: only that it is short is known.
            return ((0, 0), most);
        }
        let each = rooms.iter().map(|r| r.1).max().unwrap_or(1);
        let alike = rooms.iter().all(|r| r.1 == each);
        // The cheapest nodes first; where sizes differ a node may carry the last ones in part: by the unit, rounded down.
        let across = |price: u64, n: u32| u128::from(price) * u128::from(n);
        rooms.sort_by(|a, b| across(a.0, b.1).cmp(&across(b.0, a.1)));
        let (mut left, mut cost) = (rest, 0_u64);
        for (price, n, room) in rooms {
            if left == 0 {
                break;
            }
            let take = n.saturating_mul(room).min(left);
            left -= take;
            let part = if alike {
                price.saturating_mul(u64::from(take.div_ceil(n)))
            } else {
                let all = u128::from(price) * u128::from(take) / u128::from(n);
                u64::try_from(all).unwrap_or(u64::MAX)
            };
            cost = cost.saturating_add(part);
        }
        ((cost, rest.div_ceil(each)), most)
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

    /// Packs it. None: there is no such way, because nothing is large enough.
    fn attempt(&self, way: &Way) -> Option<Try> {
        // Rules between units hold among those of the gang as well: then what fits must be tried.
        let span = way.span.map(|s| &self.look.spans[s]);
        let class = self.ask.class;
        let tried = self.work.near.touches(class).then(|| {
            let bins = span.into_iter().flat_map(|s| self.look.bins(s));
            trial::fit(self.work, class, bins, way.fitted)
        });
        let fitted = tried.as_ref().map_or(way.fitted, |t| t.fitted);
        let counts = tried.as_ref().map(|t| &t.tally);
        let mut units = self.ask.want - fitted;
        let packing = match way.growth {
            Growth::Nowhere => None,
            Growth::NewNode => {
                // What is on one node comes to it at once.
                units = self.ask.reach;
                Some(self.new_node(units)?)
            }
            Growth::Pool(at) => {
                let only = self.look.growing[at].pool;
                Some(self.pack(way.domain, units, counts, &|p| p == only))
            }
            Growth::Pools(from, to) => {
                let pools = &self.look.growing[from..to];
                let among = |p: usize| pools.binary_search_by_key(&p, |g| g.pool).is_ok();
                Some(self.pack(way.domain, units, counts, &among))
            }
        };
        Some(Try {
            domain: self.map.domains[way.domain].clone(),
            fits: match (tried, span) {
                (Some(tried), _) => tried.fits,
                (None, Some(span)) => self.look.take(span, fitted),
                (None, None) => Vec::new(),
            },
            fitted,
            placed: packing
                .as_ref()
                .map_or(fitted, |p| fitted + units - p.left[0]),
            packing,
        })
    }

    /// With the counts as they are after what fits, if those were tried.
    fn pack(
        &self,
        domain: usize,
        units: u32,
        counts: Option<&Tally>,
        only: &dyn Fn(usize) -> bool,
    ) -> Packing {
        let Ask { class, would, .. } = self.ask;
        let inside = |o: &Offer<'_>| {
            self.map.locality != Locality::Zone || self.map.of_new(o.kind) == Some(domain)
        };
        grow::attempt_from(
            self.work,
            &[class],
            vec![units],
            self.ask.ledger,
            counts.unwrap_or(&self.work.tally),
            &|_, o| o.would == would && only(o.pool) && inside(o),
        )
    }

    /// All units on one new node, or as many as the largest takes, at least the need.
    fn new_node(&self, units: u32) -> Option<Packing> {
        let Ask {
            class,
            need,
            would,
            ledger,
            ..
        } = self.ask;
        let on_one = |n| {
            let only = self.one_offer(n);
            let among = |at: usize| only.is_none_or(|one| one == Some(at));
            let allow = |at: usize, o: &Offer<'_>| o.would == would && among(at);
            grow::on_one_node(self.work, class, n, ledger, &allow)
        };
        let offers = self.look.growing.iter().flat_map(|g| &g.offers);
        let largest = offers
            .filter(|(o, _)| ledger.room(&self.work.offers, *o) > 0)
            .map(|(_, n)| *n)
            .max();
        let sizes = [Some(units), largest, Some(need)];
        let fitting = sizes.into_iter().flatten();
        fitting
            .filter(|n| (need.max(1)..=units).contains(n))
            .find_map(|n| {
                let mut p = on_one(n)?;
                p.left[0] = units - n;
                Some(p)
            })
    }
}

impl Ways<'_, '_, '_> {
    /// The offer of the node that takes so many units, so that others need not be packed: of the first open one, else of
    /// the cheapest; inner none: there is no such node. None: rules between units may say otherwise.
    fn one_offer(&self, units: u32) -> Option<Option<usize>> {
        let (work, class, ledger) = (self.work, self.ask.class, self.ask.ledger);
        if work.near.touches(class) {
            return None;
        }
        let mut open = work.groups.iter().filter(|g| {
            work.offers[g.offer].would == self.ask.would
                && work.room_in_by(&work.tally, class, g).0 >= units
        });
        let key = |o: usize| {
            let offer = &work.offers[o];
            (
                offer.tier,
                offer.price,
                work.input.pools[offer.pool].rank,
                o,
            )
        };
        let new = || {
            let all = self.look.growing.iter().flat_map(|g| &g.offers);
            all.filter(|(_, n)| *n >= units)
                .map(|(o, _)| *o)
                .filter(|o| may_open(work, class, &work.offers[*o]))
                .filter(|o| ledger.room(&work.offers, *o) > 0)
                .min_by_key(|o| key(*o))
        };
        Some(open.next().map(|g| g.offer).or_else(new))
    }
}

/// The same for a pool with one offer.
fn single(
    mut rooms: impl Iterator<Item = (u64, u32, u32)>,
    rest: u32,
    units: u32,
    open: u32,
) -> ((u64, u32), u32) {
    let Some((price, each, room)) = rooms.next() else {
        return ((0, 0), units.min(open));
    };
    let most = units.min(open.saturating_add(each.saturating_mul(room)));
    if most < units {
        return ((0, 0), most);
    }
    let nodes = rest.div_ceil(each);
    ((price.saturating_mul(u64::from(nodes)), nodes), most)
}
