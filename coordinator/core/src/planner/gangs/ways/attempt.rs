//! Trying one way: what fits on nodes that exist and come, and a packing of the rest. Called by `ways` for the few that
//! may win; changes nothing of the run.

use super::{Ask, Growth, Way, Ways};
use crate::model::Locality;
use crate::planner::gangs::tries::Try;
use crate::planner::grow::{self, Packing};
use crate::planner::near::Tally;
use crate::planner::offers::Offer;
use crate::planner::packing::may_open;
use crate::planner::trial;

impl Ways<'_, '_, '_> {
    /// Packs it. None: there is no such way, because nothing is large enough.
    pub(super) fn attempt(&self, way: &Way) -> Option<Try> {
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
        let suits = self.look.suits.iter();
        let largest = suits
            .filter(|suit| ledger.room(&self.work.offers, suit.offer) > 0)
            .map(|suit| suit.times)
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
            let all = self.look.suits.iter();
            all.filter(|suit| suit.times >= units)
                .map(|suit| suit.offer)
                .filter(|o| may_open(work, class, &work.offers[*o]))
                .filter(|o| ledger.room(&work.offers, *o) > 0)
                .min_by_key(|o| key(*o))
        };
        Some(open.next().map(|g| g.offer).or_else(new))
    }
}
