//! Why, and why not: the reasons of classes (I9). Called by `report`. Reads the run's state, changes
//! nothing, renders nothing.

mod alike;
mod never;
mod offers;
mod places;

pub(super) use offers::limit_reason;
pub(super) use places::Places;

use super::away::Missing;
use super::state::Work;
use super::supply::stale;
use super::{coming, gangs};
use crate::model::{ClassOutcome, PoolInput, Reason, Stop};

/// Reasons listed for one class or pool at most.
pub(super) const LISTED: usize = 40;

/// Reasons of one class whose figures are known.
pub(super) fn class<'a>(
    work: &Work<'a>,
    places: &Places<'a>,
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
        let told = places.alike(work, missing, class);
        let could = &told.could;
        let least = unit.gang.as_ref().map_or(1, |g| g.min.max(1));
        outcome.impossible = could.never(least);
        if outcome.impossible {
            reasons.splice(0..0, never::never(work, places, class, could, least));
        } else if !could.anywhere(least) {
            let unread = could.unread.iter().map(|p| &work.input.pools[*p]);
            for pool in unread {
                push(&mut reasons, Some(unread_reason(pool)));
            }
        }
        let holders = told.holders.iter().filter(|h| **h != class);
        reasons.extend(holders.take(LISTED).map(|h| gangs::kept(work, *h)));
        for reason in &told.not_placed {
            push(&mut reasons, Some(reason.clone()));
        }
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

pub(super) fn push(reasons: &mut Vec<Reason>, reason: Option<Reason>) {
    if let Some(reason) = reason
        && !reasons.contains(&reason)
    {
        reasons.push(reason);
    }
}
