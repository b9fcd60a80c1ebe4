//! The ways in which a gang could be placed, each with a bound on how good it can be, so that only the few that may win
//! are packed: a fleet has hundreds of pools. Called by `gangs`; changes nothing.

use super::{Domain, Map, Try, rating};
use crate::model::{Class, Locality};
use crate::planner::grow::{self, Packing};
use crate::planner::ledger::Ledger;
use crate::planner::offers::Offer;
use crate::planner::packing::room_in;
use crate::planner::state::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is asked: a gang's class, how many units at least and at most, on what, within which limits.
#[derive(Clone, Copy)]
pub(super) struct Ask<'q> {
    pub class: usize,
    pub need: u32,
    pub want: u32,
    pub would: bool,
    pub ledger: &'q Ledger,
}

/// Less is better; the last part is the order in which ways were found.
type Bound = ((u32, u64, u32, usize, usize), usize);

/// Where the units that do not fit are to go.
#[derive(Clone)]
enum Growth {
    Nowhere,
    Pool(usize),
    /// In all of them together; only when no single one is enough.
    Pools(Rc<BTreeSet<usize>>),
    NewNode,
}

/// One domain's nodes, with growth in one pool, in several, or none.
struct Way {
    domain: usize,
    fits: Rc<Vec<(usize, u32)>>,
    fitted: u32,
    growth: Growth,
    /// Never better than this.
    bound: Bound,
    /// Never more units than this.
    most: u32,
}

/// What a pool of a domain can give a class: open room, then new nodes.
struct Room {
    /// Entry in the map's pools.
    slot: usize,
    open: u32,
}

/// All ways of one gang.
pub(super) struct Ways<'w, 'a, 'q> {
    work: &'w Work<'a>,
    map: &'w Map,
    ask: Ask<'q>,
    all: Vec<Way>,
}

impl<'w, 'a, 'q> Ways<'w, 'a, 'q> {
    /// Looks once over nodes, open groups and offers. `home`: only there; empty: anywhere.
    pub fn new(work: &'w Work<'a>, map: &'w Map, ask: Ask<'q>, home: &BTreeSet<Domain>) -> Self {
        let welcome: Vec<bool> = map
            .domains
            .iter()
            .map(|d| home.is_empty() || home.contains(d))
            .collect();
        let mut ways = Self {
            work,
            map,
            ask,
            all: Vec::new(),
        };
        let mut found = ways.fitting(&welcome);
        let rooms = ways.rooms(&welcome);
        for room in &rooms {
            found.entry(map.pools[room.slot].domain).or_default();
        }
        let mut rooms = rooms.as_slice();
        for (domain, (fits, fitted)) in found {
            let fits = Rc::new(fits);
            // Both are in the order of domains.
            let own = rooms
                .iter()
                .take_while(|room| map.pools[room.slot].domain == domain)
                .count();
            let (pools, others) = rooms.split_at(own);
            rooms = others;
            if fitted < ask.want && !pools.is_empty() {
                ways.growing(domain, &fits, fitted, pools);
            }
            ways.add(domain, fits, fitted, Growth::Nowhere, (0, 0), fitted);
        }
        ways
    }

    fn unit(&self) -> &'a Class {
        &self.work.input.classes[self.ask.class]
    }

    /// Units per existing node, by domain; nodes in order of use.
    fn fitting(&self, welcome: &[bool]) -> BTreeMap<usize, (Vec<(usize, u32)>, u32)> {
        let (work, ask, unit) = (self.work, self.ask, self.unit());
        let mut found: BTreeMap<usize, (Vec<(usize, u32)>, u32)> = BTreeMap::new();
        for &b in work.order_for(ask.class) {
            let bin = &work.bins[b];
            if bin.free.gpus < unit.unit.gpus
                || bin.would != ask.would
                || !work.matches(ask.class, bin.kind)
            {
                continue;
            }
            let Some(domain) = self.map.of_bin(b, bin.kind).filter(|d| welcome[*d]) else {
                continue;
            };
            let n = bin.times(unit, ask.class);
            if n > 0 {
                let (fits, fitted) = found.entry(domain).or_default();
                let n = n.min(ask.want - *fitted);
                if n > 0 {
                    fits.push((b, n));
                    *fitted += n;
                }
            }
        }
        found
    }

    /// What can still be had, by domain and pool; only where something can.
    fn rooms(&self, welcome: &[bool]) -> Vec<Room> {
        let (work, ask, map) = (self.work, self.ask, self.map);
        let mut open = vec![0_u32; map.pools.len()];
        for group in &work.groups {
            if let Some(slot) = map.of_offer[group.offer]
                && work.offers[group.offer].would == ask.would
            {
                let here = room_in(work, group, ask.class).saturating_mul(group.nodes);
                open[slot] = open[slot].saturating_add(here);
            }
        }
        let has_offer = |slot: &usize| self.offers(*slot).next().is_some();
        (0..map.pools.len())
            .filter(|slot| welcome[map.pools[*slot].domain])
            .filter(has_offer)
            .map(|slot| Room {
                slot,
                open: open[slot],
            })
            .collect()
    }

    /// Offers of a pool in a domain that may be asked now and match.
    fn offers(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        let (work, ask) = (self.work, self.ask);
        let all = self.map.pools[slot].offers.iter().copied();
        all.filter(move |o| {
            let offer = &work.offers[*o];
            offer.would == ask.would
                && work.matches(ask.class, offer.kind)
                && ask.ledger.room(&work.offers, *o) > 0
        })
    }

    /// Growth in each single pool of the domain; in all together only if none of them is enough.
    fn growing(
        &mut self,
        domain: usize,
        fits: &Rc<Vec<(usize, u32)>>,
        fitted: u32,
        pools: &[Room],
    ) {
        if self.map.domains[domain] == Domain::NewNode {
            let most = self.ask.want;
            self.add(domain, fits.clone(), fitted, Growth::NewNode, (0, 0), most);
            return;
        }
        let units = self.ask.want - fitted;
        for room in pools {
            let (least, most) = self.bound(std::slice::from_ref(room), units);
            let growth = Growth::Pool(self.map.pools[room.slot].pool);
            self.add(domain, fits.clone(), fitted, growth, least, fitted + most);
        }
        if pools.len() > 1 {
            let (least, most) = self.bound(pools, units);
            let names = pools.iter().map(|room| self.map.pools[room.slot].pool);
            let growth = Growth::Pools(Rc::new(names.collect()));
            self.add(domain, fits.clone(), fitted, growth, least, fitted + most);
        }
    }

    /// The least cost and nodes for so many units, and the most units that there is room for.
    fn bound(&self, rooms: &[Room], units: u32) -> ((u64, u32), u32) {
        let (work, unit) = (self.work, self.unit());
        let open = rooms
            .iter()
            .fold(0_u32, |sum, room| sum.saturating_add(room.open));
        let rest = units.saturating_sub(open);
        if rest == 0 {
            return ((0, 0), units);
        }
        let mut new = 0_u32;
        let mut most_each = 0;
        let mut cost = u64::MAX;
        let mut offers = rooms
            .iter()
            .flat_map(|room| self.offers(room.slot))
            .peekable();
        let mut single = true;
        while let Some(o) = offers.next() {
            single &= offers.peek().is_none();
            let offer = &work.offers[o];
            let times = offer.times(unit);
            if times == 0 {
                continue;
            }
            let nodes = self.ask.ledger.room(&work.offers, o);
            new = new.saturating_add(times.saturating_mul(nodes));
            most_each = most_each.max(times);
            let least = if single {
                offer.price.saturating_mul(u64::from(rest.div_ceil(times)))
            } else {
                // A node of another kind may carry the last ones: by the unit, rounded down.
                let all = u128::from(offer.price) * u128::from(rest) / u128::from(times);
                u64::try_from(all).unwrap_or(u64::MAX)
            };
            cost = cost.min(least);
        }
        let most = units.min(open.saturating_add(new));
        if most < units {
            // It cannot be full, and then it opens less: only that it is short is known.
            return ((0, 0), most);
        }
        ((cost, rest.div_ceil(most_each.max(1))), most)
    }

    fn add(
        &mut self,
        domain: usize,
        fits: Rc<Vec<(usize, u32)>>,
        fitted: u32,
        growth: Growth,
        (cost, nodes): (u64, u32),
        most: u32,
    ) {
        let short = self.ask.want - most.min(self.ask.want);
        let late = super::late(self.work, &fits);
        self.all.push(Way {
            domain,
            fits,
            fitted,
            growth,
            bound: ((short, cost, nodes, late, domain), self.all.len()),
            most,
        });
    }

    /// The best way that gives at least so many units, in one of the domains that `may` allows.
    pub fn whole(&self, least: u32, may: impl Fn(&Domain) -> bool) -> Option<Try> {
        let mut order: Vec<&Way> = self
            .all
            .iter()
            .filter(|w| w.most >= least)
            .filter(|w| may(&self.map.domains[w.domain]))
            .collect();
        order.sort_by_key(|w| w.bound);
        let mut best: Option<(Bound, Try)> = None;
        for way in order {
            if best.as_ref().is_some_and(|(have, _)| *have <= way.bound) {
                break;
            }
            let Some(t) = self.attempt(way) else { continue };
            if t.placed < least {
                continue;
            }
            let (short, cost, nodes, late) = rating(self.work, &t, self.ask.want);
            let key = ((short, cost, nodes, late, way.domain), way.bound.1);
            if best.as_ref().is_none_or(|(have, _)| key < *have) {
                best = Some((key, t));
            }
        }
        best.map(|(_, t)| t)
    }

    /// Most units that any way gives, and where: (units, domain).
    pub fn most(&self) -> Option<(u32, &'w Domain)> {
        use std::cmp::Reverse;
        let mut order: Vec<&Way> = self.all.iter().collect();
        let key = |w: &Way, placed: u32| (placed, w.fitted, Reverse(w.domain));
        order.sort_by_key(|w| Reverse(key(w, w.most)));
        let mut best = None;
        for way in order {
            if best.is_some_and(|have| have >= key(way, way.most)) {
                break;
            }
            if let Some(t) = self.attempt(way) {
                best = best.max(Some(key(way, t.placed)));
            }
        }
        best.map(|(placed, _, Reverse(domain))| (placed, &self.map.domains[domain]))
    }

    /// Of the domains that `may` allows the one whose existing and coming nodes give most.
    pub fn hope(&self, may: impl Fn(&Domain) -> bool) -> Option<(Domain, Vec<(usize, u32)>)> {
        self.all
            .iter()
            .filter(|w| matches!(w.growth, Growth::Nowhere) && may(&self.map.domains[w.domain]))
            .max_by_key(|w| (w.fitted, std::cmp::Reverse(w.domain)))
            .map(|w| (self.map.domains[w.domain].clone(), w.fits.to_vec()))
    }

    /// Packs it. None: there is no such way, because less is enough or nothing is large enough.
    fn attempt(&self, way: &Way) -> Option<Try> {
        let units = self.ask.want - way.fitted;
        let packing = match &way.growth {
            Growth::Nowhere => None,
            Growth::NewNode => Some(self.new_node(units)?),
            Growth::Pool(pool) => Some(self.pack(way.domain, units, &|p| p == *pool)),
            Growth::Pools(pools) => {
                let enough = |p: &usize| self.pack(way.domain, units, &|q| q == *p).left[0] == 0;
                if pools.iter().any(enough) {
                    return None;
                }
                Some(self.pack(way.domain, units, &|p| pools.contains(&p)))
            }
        };
        Some(Try {
            domain: self.map.domains[way.domain].clone(),
            fits: way.fits.to_vec(),
            fitted: way.fitted,
            placed: packing
                .as_ref()
                .map_or(way.fitted, |p| self.ask.want - p.left[0]),
            packing,
        })
    }

    fn pack(&self, domain: usize, units: u32, only: &dyn Fn(usize) -> bool) -> Packing {
        let Ask { class, would, .. } = self.ask;
        let inside = |o: &Offer<'_>| {
            self.map.locality != Locality::Zone || self.map.of_new(o.kind) == Some(domain)
        };
        grow::attempt(
            self.work,
            &[class],
            vec![units],
            self.ask.ledger,
            &|_, o| o.would == would && only(o.pool) && inside(o),
        )
    }

    /// All units on one new node, or at least the need.
    fn new_node(&self, units: u32) -> Option<Packing> {
        let Ask {
            class,
            need,
            would,
            ledger,
            ..
        } = self.ask;
        let allow = |_: usize, o: &Offer<'_>| o.would == would;
        let on_one = |units| grow::on_one_node(self.work, class, units, ledger, &allow);
        on_one(units).or_else(|| {
            let mut p = (need > 0 && need < units).then(|| on_one(need)).flatten()?;
            p.left[0] = units - need;
            Some(p)
        })
    }
}
