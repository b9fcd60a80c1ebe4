//! Why, and why not: the reasons of classes (I9). Called by `report`. Reads the run's state, changes
//! nothing, renders nothing.

mod offers;
mod places;

pub(super) use offers::limit_reason;
pub(super) use places::Places;

use super::away::Missing;
use super::could::{self, Could};
use super::state::Work;
use super::supply::{At, stale};
use super::{coming, gangs, matching};
use crate::model::{ClassOutcome, PoolInput, Reason, Stop};
use std::collections::BTreeSet;

/// Reasons listed for one class or pool at most.
pub(super) const LISTED: usize = 40;

/// Reasons of one class whose figures are known.
pub(super) fn class(
    work: &Work<'_>,
    places: &Places<'_>,
    missing: &Missing<'_>,
    class: usize,
    outcome: &mut ClassOutcome,
) {
    let unit = &work.input.classes[class];
    let mut reasons: Vec<Reason> = unit
        .constraints
        .unsupported
        .iter()
        .map(|rule| Reason::UnsupportedRule { rule: rule.clone() })
        .collect();
    reasons.extend(work.notes.get(&class).into_iter().flatten().cloned());
    places.say(work, class, &mut reasons);
    reasons.extend(coming::of_request(work, class));
    if outcome.unplaced > 0 && unit.constraints.unsupported.is_empty() {
        let could = could::could_ever(work, class);
        let least = unit.gang.as_ref().map_or(1, |g| g.min.max(1));
        outcome.impossible = could.never(least);
        if outcome.impossible {
            reasons.splice(0..0, never(work, class, &could, least));
        } else if !could.anywhere(least) {
            let unread = could.unread.iter().map(|p| &work.input.pools[*p]);
            for pool in unread {
                push(&mut reasons, Some(unread_reason(pool)));
            }
        }
        kept_for_gangs(work, class, &mut reasons);
        offers::not_placed(work, places, missing, class, &mut reasons);
    }
    let silent = reasons.is_empty();
    if outcome.unplaced > 0 {
        reasons.insert(0, Reason::needs(unit));
    }
    if silent {
        reasons.push(if outcome.unplaced > 0 {
            Reason::Unexplained
        } else {
            Reason::Settled
        });
    }
    if reasons.len() > LISTED {
        let more = reasons.split_off(LISTED).iter().fold(0, |sum: u32, r| {
            sum.saturating_add(match r {
                Reason::More { count } => *count,
                _ => 1,
            })
        });
        reasons.push(Reason::More { count: more });
    }
    outcome.reasons = reasons;
}

/// Why nobody could ever serve it; nothing here when only a limit is in the way, which is said with its pool.
fn never(work: &Work<'_>, class: usize, could: &Could, least: u32) -> Option<Reason> {
    let unit = &work.input.classes[class];
    if work.input.pools.is_empty() {
        return Some(Reason::NoPools);
    }
    match (could.best(), &unit.gang) {
        (Some((domain, most)), Some(_)) => Some(Reason::GangNever {
            min: least,
            could: most,
            place: gangs::name(work, domain),
        }),
        _ if could.fits => None,
        _ => Some(Reason::NoPoolOffers {
            unit: unit.unit.clone(),
            wants: wants(work, class),
        }),
    }
}

/// A pool whose template is not known.
fn unread_reason(pool: &PoolInput) -> Reason {
    let why = match stale(pool) {
        Some(Stop::Stale { why, .. }) => why.clone(),
        _ => "what it offers is not known".to_owned(),
    };
    Reason::PoolUnread {
        pool: pool.id.clone(),
        why,
    }
}

/// Gangs whose held part would serve it.
fn kept_for_gangs(work: &Work<'_>, class: usize, reasons: &mut Vec<Reason>) {
    if !work.holds && work.partial.is_empty() {
        return;
    }
    let bins = work.bins.iter().filter(|b| !b.would && b.placed.is_empty());
    let mut holders: BTreeSet<usize> = BTreeSet::new();
    for bin in bins.filter(|b| work.matches(class, b.kind)) {
        let At::Node(n) = bin.at else { continue };
        let node = &work.input.nodes[n];
        let by = gangs::holding(work, bin);
        if by.is_empty() || by.contains(&class) {
            continue;
        }
        let mut lent = bin.clone();
        lent.free.size = bin.total.minus(&work.names.size(&node.used));
        lent.free.shares.clone_from(&node.gpu_shares);
        lent.empty = bin.idle || node.used.is_zero();
        lent.held.clear();
        if work.room_by(&work.tally, class, &lent) > work.room_by(&work.tally, class, bin) {
            holders.extend(by);
        }
    }
    for holder in holders {
        reasons.push(gangs::kept(work, holder));
    }
}

pub(super) fn push(reasons: &mut Vec<Reason>, reason: Option<Reason>) {
    if let Some(reason) = reason
        && !reasons.contains(&reason)
    {
        reasons.push(reason);
    }
}

/// What a class asks besides its amounts.
fn wants(work: &Work<'_>, class: usize) -> String {
    let c = &work.input.classes[class].constraints;
    let mut all = Vec::new();
    if !c.gpu_model.is_empty() {
        all.push(format!("a GPU like \"{}\"", c.gpu_model));
    }
    if !c.pools.is_empty() {
        let names: Vec<&str> = c.pools.iter().map(crate::model::PoolId::as_str).collect();
        all.push(format!("pool {}", names.join(" or ")));
    }
    all.extend(c.requirements.iter().map(matching::words));
    if !c.any_of.is_empty() {
        all.push(matching::words_of_any(&c.any_of));
    }
    all.join(", ")
}
