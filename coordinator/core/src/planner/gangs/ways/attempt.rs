//! Trying one way: what fits on nodes that exist and come, and a packing of the rest. Called by `ways` for the few that
//! may win; changes nothing of the run.

use super::{Ask, Growth, Way, Ways};
use crate::planner::gangs::look::Growing;
use crate::planner::gangs::tries::Try;
use crate::planner::grow::{self, Packing};
use crate::planner::near::Tally;
use crate::planner::packing::may_open;
use crate::planner::state::Group;
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
            Growth::Pool(at) => Some(self.pack(units, counts, &self.look.growing[at..=at])),
            Growth::Pools(from, to) => Some(self.pack(units, counts, &self.look.growing[from..to])),
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
    fn pack(&self, units: u32, counts: Option<&Tally>, pools: &[Growing]) -> Packing {
        let Ask { class, would, .. } = self.ask;
        let offers = pools.iter().flat_map(|p| &self.map.pools[p.slot].offers);
        let mut offers: Vec<usize> = offers.copied().collect();
        offers.retain(|o| self.work.offers[*o].would == would);
        offers.sort_unstable();
        grow::attempt_from(
            self.work,
            &[class],
            vec![units],
            self.ask.ledger,
            counts.unwrap_or(&self.work.tally),
            &offers,
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
            let offers = match self.one_offer(n) {
                Some(one) => one.into_iter().collect(),
                None => self.work.offers_of_mode(would),
            };
            grow::on_one_node(self.work, class, n, ledger, &offers)
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
        let pools = self.look.growing.iter().filter(|g| g.open >= units);
        let offers = pools.flat_map(|g| &self.map.pools[g.slot].offers);
        let takes = |g: &&Group| work.room_in_by(&work.tally, class, g).0 >= units;
        let open = offers.filter_map(|o| work.groups.of(*o).iter().find(takes));
        let first = open.min_by_key(|g| g.leaf).map(|g| g.offer);
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
        Some(first.or_else(new))
    }
}
