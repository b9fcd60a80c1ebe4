//! A gang that has a part in one place and can be whole in another: the part is kept until the other place is confirmed,
//! that is until its nodes have joined and take work; merely asked for it may fail like the first (SC-47). Then the part
//! is given up in one piece. Called by `gangs` only. **Invariant:** what is kept so is kept no longer than the hold time.

use super::domain::{domain_of, name};
use super::hold::{Case, take};
use super::tries::{Try, too_dear};
use super::ways::Ask;
use super::{Domain, Gangs, Round};
use crate::model::{Gang, Reason, Source, UnixMs};
use crate::planner::grow::Packing;
use crate::planner::state::Work;
use crate::planner::supply::Tier;
use std::collections::BTreeSet;

impl Gangs {
    /// A request with assigned units that cannot be completed where they are. True when it can be whole elsewhere: then
    /// its part is given up if that is confirmed (or its hold is over), and else kept while the other place is asked for.
    pub(super) fn elsewhere<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        case: &Case<'_>,
        over: bool,
    ) -> bool {
        let (class, gang, home) = (case.class, case.gang, case.home);
        let source = work.input.classes[class].source.clone();
        let Source::Request(request) = &source else {
            return false;
        };
        let least = gang.min.max(1);
        if home.is_empty() {
            return false;
        }
        let ask = Ask {
            class,
            need: least,
            want: least,
            reach: gang.assigned.saturating_add(work.open[class]).max(least),
            would: false,
            ledger: &work.ledger.clone(),
        };
        let anywhere = BTreeSet::new();
        let free = |d: &Domain| !home.contains(d) && !self.holders.contains_key(d);
        let best = round
            .ways(work, case.kind, ask, &anywhere)
            .and_then(|ways| ways.whole(least, free));
        let paid = |t: &Try| too_dear(work, class, t).is_none();
        let Some(best) = best.filter(paid) else {
            return false;
        };
        let place = name(work, &best.domain);
        if over || best.confirmed(work) {
            // Nobody else takes it before the gang does, in the next plan.
            take(work, round, class, &best.fits);
            let reason = Reason::WholeElsewhere { place };
            work.releases.push((request.clone(), reason.clone()));
            work.note(class, reason);
            return true;
        }
        take(work, round, class, &best.fits);
        if let Some(packing) = &best.packing {
            work.book_packing(class, packing);
        }
        for (offer, nodes) in best.packing.iter().flat_map(Packing::offers) {
            work.ledger.take(&work.offers, offer, nodes);
            let asked = work
                .elsewhere
                .entry((offer, class))
                .or_insert((0, place.clone()));
            asked.0 += nodes;
        }
        work.note(
            class,
            Reason::AsksElsewhere {
                source: source.clone(),
                units: least,
                place,
            },
        );
        let until = gang
            .holding_since
            .unwrap_or(work.input.now)
            .after(gang.hold);
        work.note(
            class,
            Reason::GangHolds {
                units: gang.assigned,
                until,
            },
        );
        for domain in home.iter().cloned().chain([best.domain]) {
            self.holders.entry(domain).or_insert(class);
        }
        true
    }

    /// A request that is whole since an earlier plan, maybe on nodes that are still on their way.
    pub(super) fn since_before<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        class: usize,
        gang: &Gang,
        home: &BTreeSet<Domain>,
    ) {
        let Source::Request(request) = &work.input.classes[class].source else {
            return;
        };
        let domain = match home.first() {
            Some(domain) => domain.clone(),
            None => Domain::Any,
        };
        let coming = work.input.launches.iter();
        let asked = coming
            .filter(|l| l.deadline > work.input.now)
            .filter(|l| l.reserved.iter().any(|(r, n)| r == request && *n > 0))
            .map(|l| l.asked)
            .min();
        if let (Some(asked), false) = (asked, round.would) {
            let kind = round.kind(work, class, gang.locality);
            let since = gang.holding_since.unwrap_or(asked);
            self.insure(work, round, (class, kind), &domain, Some(since));
        }
        self.whole.insert(class, domain);
    }

    /// A gang whose units wait for nodes on their way, while it holds a part in another domain, or was tried there and
    /// fell short: the part is kept for the rest of the hold time.
    pub(super) fn insure<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        (class, kind): (usize, usize),
        chosen: &Domain,
        since: Option<UnixMs>,
    ) {
        let input = work.input;
        let Some(gang) = &input.classes[class].gang else {
            return;
        };
        let until = since.unwrap_or(input.now).after(gang.hold);
        let tried = gang.holding_since.is_some() || !input.memory.is_empty();
        if until <= input.now || matches!(chosen, Domain::Any) || !tried {
            return;
        }
        let least = gang.min.max(1);
        let ask = Ask {
            class,
            need: least,
            want: least,
            reach: least,
            would: false,
            ledger: &work.ledger.clone(),
        };
        let ever = round.ever(work, kind, class);
        let anywhere = BTreeSet::new();
        let may = |domain: &Domain| {
            domain != chosen
                && !self.holders.contains_key(domain)
                && ever.holds(domain, least)
                && (gang.holding_since.is_some() || fell_short(work, class, domain))
        };
        let hope = round
            .ways(work, kind, ask, &anywhere)
            .and_then(|ways| ways.hope(may));
        let Some((domain, mut fits)) = hope else {
            return;
        };
        fits.retain(|(b, _)| work.bins[*b].tier != Tier::Coming);
        let units = take(work, round, class, &fits);
        if units > 0 {
            work.note(class, Reason::GangHolds { units, until });
            self.holders.insert(domain, class);
        }
    }
}

/// Something that suits the class was asked for in the domain since it waits, and could not be had.
fn fell_short(work: &Work<'_>, class: usize, domain: &Domain) -> bool {
    let unit = &work.input.classes[class];
    let locality = unit.gang.as_ref().map(|g| g.locality).unwrap_or_default();
    let mut offers = work.offers.iter().filter(|offer| {
        let failed = |m: &&crate::model::MemoryEntry| m.offering == *offer.id;
        offer.probe.is_some()
            && work.matches(class, offer.kind)
            && offer.times(unit) > 0
            && work
                .input
                .memory
                .iter()
                .find(failed)
                .is_some_and(|m| m.failed >= unit.submitted)
    });
    offers.any(|offer| domain_of(work, offer.kind, None, locality).as_ref() == Some(domain))
}
