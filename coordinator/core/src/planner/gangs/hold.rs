//! A gang that cannot be whole now: what it may hold, and for how long; what it gives up; what is probed for it. Called by
//! `gangs` only; `holding` and `kept` also by what explains holds. **Invariant:** nothing is held for a gang that can
//! never be whole, and nothing beyond the hold time.

use super::ways::Ask;
use super::{Domain, Gangs, Round, Short, Who, name};
use crate::model::{Gang, Reason, Source, UnixMs};
use crate::planner::could::Could;
use crate::planner::grow::Packing;
use crate::planner::state::Work;
use crate::planner::supply::{At, Bin};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A gang that cannot be whole now.
pub(super) struct Case<'g> {
    pub class: usize,
    pub kind: usize,
    pub gang: &'g Gang,
    /// Units that must be placed.
    pub need: u32,
    /// Where its assigned units are.
    pub home: &'g BTreeSet<Domain>,
    pub short: Short,
    pub ever: Rc<Could>,
    /// One like it could not be whole either: nothing more is asked for it.
    pub again: bool,
}

impl Gangs {
    /// What becomes of it.
    pub(super) fn short<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        case: &Case<'_>,
    ) {
        let input = work.input;
        let (class, gang) = (case.class, case.gang);
        let source = &input.classes[class].source;
        let least = gang.min.max(1);
        if case.ever.never(least) {
            // `why` says so; what was assigned to it while it was possible is lent.
            if let (Source::Request(request), true) = (source, gang.assigned > 0) {
                let best = case.ever.best().map(|(d, n)| (n, name(work, d)));
                let (could, place) = best.unwrap_or_default();
                let reason = Reason::GangNever {
                    min: gang.min,
                    could,
                    place,
                };
                work.releases.push((request.clone(), reason));
            }
            return;
        }
        work.note(
            class,
            Reason::GangShort {
                min: gang.min,
                could: gang.assigned.saturating_add(case.short.could),
                place: case.short.place.clone(),
            },
        );
        let over = over(gang, input.now);
        // Its part is given up for a whole elsewhere, or because its time is over.
        if let (Source::Request(request), true) = (source, gang.assigned > 0) {
            if self.elsewhere(work, round, case, over.is_some()) {
                return;
            }
            if let Some(since) = over {
                let reason = Reason::HoldOver { since };
                work.releases.push((request.clone(), reason.clone()));
                work.note(class, reason);
                return;
            }
        }
        // Nothing is held for what only a pool that nobody could read might give.
        if !case.ever.anywhere(least) {
            return;
        }
        self.hold(work, round, case, over);
    }

    /// Holds what there is in the domain it can hope for: most that exists or comes, of those where the rest may come
    /// later.
    pub(super) fn hold<'a>(
        &mut self,
        work: &mut Work<'a>,
        round: &mut Round<'a>,
        case: &Case<'_>,
        over: Option<UnixMs>,
    ) {
        let input = work.input;
        let (class, gang) = (case.class, case.gang);
        let ask = case.ask(work);
        let possible = |domain: &Domain| case.ever.holds(domain, gang.min.max(1));
        let hope = round
            .ways(work, case.kind, ask, case.home)
            .and_then(|ways| ways.hope(possible));
        let probed = if case.again {
            None
        } else {
            self.probe(work, round, case)
        };
        let domain = hope
            .as_ref()
            .map(|(domain, _)| domain.clone())
            .or_else(|| case.home.first().cloned())
            .or(probed);
        let Some(domain) = domain else { return };
        if let Some(first) = self.holders.get(&domain) {
            let source = input.classes[*first].source.clone();
            work.note(class, Reason::GangWaitsForGang { source });
            return;
        }
        if let Some(since) = over {
            work.note(class, Reason::HoldOver { since });
            return;
        }
        let fits = hope.map(|(_, fits)| fits).unwrap_or_default();
        let units = take(work, round, class, &fits);
        let units = gang.assigned.saturating_add(units);
        if units > 0 {
            let until = gang.holding_since.unwrap_or(input.now).after(gang.hold);
            work.note(class, Reason::GangHolds { units, until });
        }
        self.holders.insert(domain, class);
    }

    /// If the gang could be whole but for the ration of offerings that failed and are due: asks for the ration of one
    /// such way, as a probe. Only for the first gang of the domain and once per kind, so asks stay bounded (I11).
    fn probe<'a>(&self, work: &mut Work<'a>, round: &Round<'a>, case: &Case<'_>) -> Option<Domain> {
        let mut open = work.ledger.clone();
        let mut due = false;
        for (i, offer) in work.offers.iter().enumerate() {
            if offer.probe.is_some()
                && offer.closed.is_none()
                && work.ledger.room(&work.offers, i) > 0
            {
                open.offer[i] = u32::MAX;
                due = true;
            }
        }
        if !due {
            return None;
        }
        let ask = Ask {
            ledger: &open,
            ..case.ask(work)
        };
        let ways = round.ways(work, case.kind, ask, case.home)?;
        let best = ways.whole(case.need, |d| !self.holders.contains_key(d))?;
        let asks: BTreeMap<usize, u32> =
            best.packing
                .iter()
                .flat_map(Packing::offers)
                .fold(BTreeMap::new(), |mut m, (o, n)| {
                    *m.entry(o).or_insert(0) += n;
                    m
                });
        for (offer, nodes) in asks {
            let n = work.ledger.room(&work.offers, offer).min(nodes);
            if work.offers[offer].probe.is_some() && n > 0 {
                work.ledger.take(&work.offers, offer, n);
                *work.probes.entry(offer).or_insert(0) += n;
            }
        }
        Some(best.domain)
    }
}

/// A gang for which nothing may be asked: its part is lent once its hold time is over.
pub(super) fn give_up(work: &mut Work<'_>, who: &Who<'_>) {
    let over = over(who.gang, work.input.now);
    let source = &work.input.classes[who.class].source;
    if let (Some(since), Source::Request(request)) = (over, source)
        && who.gang.assigned > 0
    {
        let reason = Reason::HoldOver { since };
        work.releases.push((request.clone(), reason.clone()));
        work.note(who.class, reason);
    }
}

/// Since when a gang holds, if that is for too long.
pub(super) fn over(gang: &Gang, now: UnixMs) -> Option<UnixMs> {
    let since = gang.holding_since;
    since.filter(|since| now >= since.after(gang.hold))
}

impl Case<'_> {
    /// All of what it still wants, on what is left.
    pub(super) fn ask<'w>(&self, work: &'w Work<'_>) -> Ask<'w> {
        let open = work.open[self.class];
        Ask {
            class: self.class,
            need: self.need,
            want: open,
            reach: open,
            would: false,
            ledger: &work.ledger,
        }
    }
}

/// Holds units on these nodes; returns how many.
pub(super) fn take(
    work: &mut Work<'_>,
    round: &mut Round<'_>,
    class: usize,
    fits: &[(usize, u32)],
) -> u32 {
    work.holds |= !fits.is_empty();
    let mut units = 0;
    for (b, n) in fits {
        work.take(class, *b, *n, true);
        round.log.took(*b);
        units += n;
    }
    units
}

/// Gangs that hold a bin in part: what this plan holds for them, and what is assigned to them while they are not whole.
pub(in crate::planner) fn holding(work: &Work<'_>, bin: &Bin) -> BTreeSet<usize> {
    let mut by: BTreeSet<usize> = bin.held.iter().map(|(c, _)| *c).collect();
    if let At::Node(n) = bin.at {
        for held in &work.input.nodes[n].reserved {
            by.extend(work.partial.get(&held.request));
        }
    }
    by
}

/// Room that is kept for a gang, and until when.
pub(in crate::planner) fn kept(work: &Work<'_>, class: usize) -> Reason {
    let class = &work.input.classes[class];
    let until = class.gang.as_ref().map_or(work.input.now, |g| {
        g.holding_since.unwrap_or(work.input.now).after(g.hold)
    });
    Reason::KeptForGang {
        source: class.source.clone(),
        until,
    }
}
