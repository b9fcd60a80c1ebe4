//! A gang that cannot be whole now: what it may hold, and for how long; what it gives up; what is probed for it. Called by
//! `gangs::place` only; `holding` and `kept` also by what explains holds. **Invariant:** nothing is held for a gang that
//! can never be whole.

use super::ways::{Ask, Ways};
use super::{Domain, Holders, Map, name};
use crate::model::{Gang, Reason, Source};
use crate::planner::could::Could;
use crate::planner::grow::Packing;
use crate::planner::state::Work;
use crate::planner::supply::{At, Bin};
use std::collections::{BTreeMap, BTreeSet};

/// What a gang that cannot be whole now may hope for.
pub(super) struct Outlook {
    /// Most units that could be had now, and where.
    pub could: u32,
    pub place: String,
    /// Of the domains that could ever hold it, the one that gives most now, on which nodes.
    pub hope: Option<(Domain, Vec<(usize, u32)>)>,
    pub ever: Could,
}

/// What becomes of a gang that cannot be whole now.
pub(super) fn short(
    work: &mut Work<'_>,
    map: &Map,
    ask: Ask<'_>,
    gang: &Gang,
    outlook: Outlook,
    home: &BTreeSet<Domain>,
    holders: &mut Holders,
) {
    let input = work.input;
    let (class, want) = (ask.class, ask.want);
    let unit = &input.classes[class];
    let Outlook {
        could,
        place,
        hope,
        ever,
    } = outlook;
    let least = gang.min.max(1);
    if ever.never(least) {
        // `why` says so; what was assigned to it while it was possible is lent.
        if let (Source::Request(request), true) = (&unit.source, gang.assigned > 0) {
            let (could, place) = ever
                .best()
                .map_or((0, String::new()), |(d, n)| (n, name(work, d)));
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
            could: gang.assigned.saturating_add(could),
            place,
        },
    );
    let over = gang
        .holding_since
        .filter(|since| input.now >= since.after(gang.hold));
    // Its part is given up for a whole elsewhere, or because its time is over.
    if let (Source::Request(request), true) = (&unit.source, gang.assigned > 0) {
        let total = gang.assigned.saturating_add(want);
        let again = Ask {
            need: gang.min,
            want: total,
            would: false,
            ..ask
        };
        let elsewhere =
            Ways::new(work, map, again, &BTreeSet::new()).whole(gang.min, |d| !home.contains(d));
        if let (Some(t), false) = (elsewhere, home.is_empty()) {
            let reason = Reason::WholeElsewhere {
                place: name(work, &t.domain),
            };
            work.releases.push((request.clone(), reason.clone()));
            work.note(class, reason);
            return;
        }
        if let Some(since) = over {
            let reason = Reason::HoldOver { since };
            work.releases.push((request.clone(), reason.clone()));
            work.note(class, reason);
            return;
        }
    }
    // The domain it can hope for: most that exists or comes, of those where the rest may come later. Nothing is held
    // for what only a pool that nobody could read might give.
    if !ever.anywhere(least) {
        return;
    }
    let probed = probe(work, map, ask, home, holders);
    let domain = hope
        .as_ref()
        .map(|(domain, _)| domain.clone())
        .or_else(|| home.first().cloned())
        .or(probed);
    let Some(domain) = domain else { return };
    match holders.get(&domain) {
        Some(first) => {
            let source = input.classes[*first].source.clone();
            work.note(class, Reason::GangWaitsForGang { source });
        }
        None => match over {
            Some(since) => work.note(class, Reason::HoldOver { since }),
            None => {
                let fits = hope.map(|(_, fits)| fits).unwrap_or_default();
                work.holds |= !fits.is_empty();
                for (b, n) in &fits {
                    work.bins[*b].take(unit, class, *n, true);
                }
                let units = gang
                    .assigned
                    .saturating_add(fits.iter().map(|(_, n)| *n).sum());
                if units > 0 {
                    let until = gang.holding_since.unwrap_or(input.now).after(gang.hold);
                    work.note(class, Reason::GangHolds { units, until });
                }
                holders.insert(domain, class);
            }
        },
    }
}

/// If the gang could be whole but for the ration of offerings that failed and are due: asks for the ration of one such
/// way, as a probe. Only for the first gang of the domain, so asks stay bounded (I11).
fn probe(
    work: &mut Work<'_>,
    map: &Map,
    ask: Ask<'_>,
    home: &BTreeSet<Domain>,
    holders: &Holders,
) -> Option<Domain> {
    let mut open = work.ledger.clone();
    for (i, offer) in work.offers.iter().enumerate() {
        if offer.probe.is_some() && offer.closed.is_none() && work.ledger.room(&work.offers, i) > 0
        {
            open.offer[i] = u32::MAX;
        }
    }
    let ask = Ask {
        would: false,
        ledger: &open,
        ..ask
    };
    let best = Ways::new(work, map, ask, home).whole(ask.need, |d| !holders.contains_key(d))?;
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
