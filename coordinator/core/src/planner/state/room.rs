//! How many units of a class a place still takes, by its room, the rules about nodes and those between units, as things
//! stand. Asked by every part of the planner; changes nothing.

use super::{Group, Work};
use crate::model::Millis;
use crate::planner::near::{Site, Tally};
use crate::planner::offers::Offer;
use crate::planner::supply::{At, Bin, Tier};

impl Work<'_> {
    /// Offers of pools that are observed, or of those that are not, in order.
    pub fn offers_of_mode(&self, would: bool) -> Vec<usize> {
        let all = self.offers.iter().enumerate();
        let mine = all.filter(|(_, offer)| offer.would == would);
        mine.map(|(o, _)| o).collect()
    }

    /// Would a node that is ready after so many milliseconds be in time for the class?
    pub fn in_time(&self, class: usize, boot: u64) -> bool {
        let deadline = self.input.classes[class].deadline;
        deadline.is_none_or(|d| self.input.now.after(Millis(boot)) <= d)
    }

    /// The bin comes, and is expected after the class's deadline.
    fn comes_late(&self, class: usize, bin: &Bin) -> bool {
        let (Some(deadline), Tier::Coming) = (self.input.classes[class].deadline, bin.tier) else {
            return false;
        };
        let At::Coming(launch, _) = bin.at else {
            return false;
        };
        let launch = &self.input.launches[launch];
        let offerings = bin.pool.map(|p| &self.input.pools[p].offerings);
        let mut all = offerings.into_iter().flatten();
        let offering = all.find(|o| o.id == launch.offering);
        let ready = launch
            .asked
            .after(offering.map_or(Millis::ZERO, |o| o.boot));
        ready.max(self.input.now) > deadline
    }

    /// Units of the class that a bin still takes, by its room and by every rule, as things stand.
    pub fn room(&self, class: usize, bin: usize) -> u32 {
        self.room_by(&self.tally, class, &self.bins[bin])
    }

    /// Never less than any number of units that the rules between units may come to allow.
    pub fn room_at_most(&self, class: usize, bin: usize) -> u32 {
        if !self.near.may_widen(class) {
            return self.room(class, bin);
        }
        let b = &self.bins[bin];
        if !self.matches(class, b.kind) || self.comes_late(class, b) {
            return 0;
        }
        b.fits(&self.units[class], self.input.classes[class].whole_node)
    }

    /// The same with other counts, or for a bin that is not the run's.
    pub fn room_by(&self, tally: &Tally, class: usize, bin: &Bin) -> u32 {
        if !self.matches(class, bin.kind) || self.comes_late(class, bin) {
            return 0;
        }
        let fits = bin.fits(&self.units[class], self.input.classes[class].whole_node);
        if fits == 0 || !self.near.touches(class) {
            return fits;
        }
        let site = Site {
            kind: bin.kind,
            content: &bin.content,
            nodes: 1,
            fresh: false,
        };
        tally.takes(&self.near, class, site).with(fits).0
    }

    /// Units of the class that all nodes of an open group together still take; never less than what the rules between
    /// units may come to allow.
    pub fn room_in(&self, class: usize, group: &Group) -> u32 {
        if self.near.may_widen(class) {
            let offer = &self.offers[group.offer];
            let matches = self.matches(class, offer.kind) && self.in_time(class, offer.boot);
            let each = group.free.times(&self.units[class]);
            let open = matches
                && !group.whole
                && !self.input.classes[class].whole_node
                && !self.kept_out_of_new(class, group.offer);
            return if open {
                each.saturating_mul(group.nodes)
            } else {
                0
            };
        }
        let (each, total) = self.room_in_by(&self.tally, class, group);
        each.saturating_mul(group.nodes).min(total)
    }

    /// With other counts: on each node, and on all of them together.
    pub fn room_in_by(&self, tally: &Tally, class: usize, group: &Group) -> (u32, u32) {
        let Offer { kind, boot, .. } = self.offers[group.offer];
        let whole = group.whole || self.input.classes[class].whole_node;
        let matches = self.matches(class, kind) && self.in_time(class, boot);
        if whole || !matches || self.kept_out_of_new(class, group.offer) {
            return (0, 0);
        }
        let fits = group.free.times(&self.units[class]);
        if fits == 0 || !self.near.touches(class) {
            return (fits, u32::MAX);
        }
        let site = Site {
            kind,
            content: &group.content,
            nodes: group.nodes,
            fresh: false,
        };
        tally.takes(&self.near, class, site).with(fits)
    }
}
