//! The next order of a node: what it should be, with an (epoch, generation) above all before.
//!
//! Called by commands and by the cycle, which commit it before anything is sent. Pure.

use crate::records::order::OrderedDrain;
use crate::records::{DesiredState, DrainPolicy, DrainRecord, OrderRecord, Then};

/// Epoch and generation above everything that the store or the node has seen.
fn next(before: Option<&OrderRecord>, highest_epoch: u64) -> (u64, u64) {
    match before {
        Some(order) if order.epoch >= highest_epoch => (order.epoch, order.generation + 1),
        Some(_) | None => (highest_epoch + 1, 1),
    }
}

/// Take work.
#[must_use]
pub fn active(before: Option<&OrderRecord>, highest_epoch: u64, reason: &str) -> OrderRecord {
    let (epoch, generation) = next(before, highest_epoch);
    OrderRecord {
        epoch,
        generation,
        desired: DesiredState::Active,
        drain: None,
        by: String::new(),
        reason: reason.to_owned(),
    }
}

/// Take no new work.
#[must_use]
pub fn cordoned(
    before: Option<&OrderRecord>,
    highest_epoch: u64,
    by: &str,
    reason: &str,
) -> OrderRecord {
    let (epoch, generation) = next(before, highest_epoch);
    OrderRecord {
        epoch,
        generation,
        desired: DesiredState::Cordoned,
        drain: None,
        by: by.to_owned(),
        reason: reason.to_owned(),
    }
}

/// A drain of ours that moves work for cost. One that a group's own end asks for stops at the cordon, and asks nobody.
#[must_use]
pub fn moves(drain: &DrainRecord) -> bool {
    drain.policy == DrainPolicy::Evict && drain.by == DROVER && drain.then == Then::Leave
}

/// A drain that moves work first only keeps new work off: what runs then is looked at once more.
#[must_use]
pub fn looks_again(drain: &DrainRecord) -> bool {
    moves(drain) && drain.moving.is_none()
}

/// Be emptied.
#[must_use]
pub fn draining(
    before: Option<&OrderRecord>,
    highest_epoch: u64,
    drain: &DrainRecord,
) -> OrderRecord {
    let (epoch, generation) = next(before, highest_epoch);
    OrderRecord {
        epoch,
        generation,
        desired: DesiredState::Draining,
        drain: Some(OrderedDrain {
            id: drain.id.clone(),
            policy: if looks_again(drain) {
                DrainPolicy::Wait
            } else {
                drain.policy
            },
            deadline: drain.deadline,
            grace: drain.grace,
        }),
        by: drain.by.clone(),
        reason: drain.reason.clone(),
    }
}

/// What it was before a drain: a person's cordon stays, everything else takes work again.
#[must_use]
pub fn restored(
    current: Option<&OrderRecord>,
    highest_epoch: u64,
    before: Option<&OrderRecord>,
    reason: &str,
) -> OrderRecord {
    match before {
        Some(was) if was.desired == DesiredState::Cordoned && was.by != DROVER => {
            cordoned(current, highest_epoch, &was.by, &was.reason)
        }
        _ => active(current, highest_epoch, reason),
    }
}

/// Name under which Drover itself acts.
pub const DROVER: &str = "drover";

/// Ids of Drover's own drains begin so: a node that obeys one says whose it is, also to a store that has lost it.
pub const OWN_DRAIN: &str = "own-";

/// Whose a found order is when that cannot be told: a person's, to be safe (I7).
pub const SOMEBODY: &str = "somebody";

/// The order that a node obeys, as it says in Hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obeyed<'a> {
    /// Epoch and generation.
    pub number: (u64, u64),
    /// What it does.
    pub desired: DesiredState,
    /// Id and reason of its drain.
    pub drain: Option<(&'a str, &'a str)>,
}

/// What becomes of a node's order when it says Hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// The store's stands, or there is none.
    Stands,
    /// The store's, in an epoch above all that the node has seen (I10).
    Raised(OrderRecord),
    /// The node keeps work off by an order newer than any that this store knows: the store is restored or another.
    /// Work stays off, and only what is certainly Drover's own is Drover's to undo (I7).
    Found(OrderRecord),
}

/// Meets a node that says Hello.
#[must_use]
pub fn met(held: Option<&OrderRecord>, highest_epoch: u64, obeyed: Option<&Obeyed<'_>>) -> Met {
    let newer = obeyed.filter(|obeyed| {
        let known = held.map(|held| (held.epoch, held.generation));
        obeyed.desired != DesiredState::Active && known.is_none_or(|known| known < obeyed.number)
    });
    if let Some(obeyed) = newer {
        let highest = highest_epoch.max(obeyed.number.0);
        let (by, why) = match obeyed.drain {
            Some((id, why)) if id.starts_with(OWN_DRAIN) => (DROVER, why),
            Some((_, why)) => (SOMEBODY, why),
            None => (SOMEBODY, ""),
        };
        let lost = "by an order that this store does not know: it was restored, or the node counted as gone";
        let reason = if why.is_empty() {
            lost.to_owned()
        } else {
            format!("{why}: {lost}")
        };
        return Met::Found(cordoned(None, highest, by, &reason));
    }
    match held {
        Some(held) if held.epoch <= highest_epoch => Met::Raised(OrderRecord {
            epoch: highest_epoch + 1,
            ..held.clone()
        }),
        _ => Met::Stands,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_grow_and_epochs_exceed_what_the_node_has_seen() {
        let first = active(None, 0, "");
        assert_eq!((first.epoch, first.generation), (1, 1));
        let second = cordoned(Some(&first), 1, "admin/a", "x");
        assert_eq!((second.epoch, second.generation), (1, 2));
        // A restored store: the node has seen more than we remember.
        let third = active(Some(&second), 7, "");
        assert_eq!((third.epoch, third.generation), (8, 1));
    }

    #[test]
    fn sc_58_a_persons_cordon_is_what_comes_back() {
        let theirs = cordoned(None, 0, "admin/ada", "broken fan");
        let now = active(Some(&theirs), 0, "");
        let back = restored(Some(&now), 0, Some(&theirs), "cancelled");
        assert_eq!(back.desired, DesiredState::Cordoned);
        assert_eq!(
            (back.by.as_str(), back.reason.as_str()),
            ("admin/ada", "broken fan")
        );
        let ours = cordoned(None, 0, DROVER, "");
        let back = restored(Some(&now), 0, Some(&ours), "cancelled");
        assert_eq!(back.desired, DesiredState::Active);
        assert_eq!(
            restored(Some(&now), 0, None, "").desired,
            DesiredState::Active
        );
    }
    fn obeyed<'a>(desired: DesiredState, drain: Option<(&'a str, &'a str)>) -> Obeyed<'a> {
        Obeyed {
            number: (3, 2),
            desired,
            drain,
        }
    }

    #[test]
    fn i10_fenced_hello_raises_the_epoch_of_what_the_store_knows() {
        let ours = cordoned(None, 2, "admin/ada", "broken fan");
        assert_eq!(met(None, 3, None), Met::Stands);
        assert_eq!(met(Some(&ours), 2, None), Met::Stands, "epoch 3 is above 2");
        let raised = OrderRecord {
            epoch: 4,
            ..ours.clone()
        };
        assert_eq!(met(Some(&ours), 3, None), Met::Raised(raised.clone()));
        // The node takes work, or does what the store knows: the store's order stands.
        let active = obeyed(DesiredState::Active, None);
        assert_eq!(met(Some(&ours), 3, Some(&active)), Met::Raised(raised));
        let same = Obeyed {
            number: (3, 1),
            ..obeyed(DesiredState::Cordoned, None)
        };
        assert!(matches!(met(Some(&ours), 3, Some(&same)), Met::Raised(_)));
    }

    #[test]
    fn i7_undo_only_own_a_cordon_that_the_store_has_lost_stays_whose_it_was() {
        let old = active(None, 2, "");
        let found = |drain, desired| match met(Some(&old), 3, Some(&obeyed(desired, drain))) {
            Met::Found(order) => order,
            other => panic!("{other:?}"),
        };
        let cordon = found(None, DesiredState::Cordoned);
        assert_eq!((cordon.epoch, cordon.generation), (4, 1));
        assert_eq!(cordon.desired, DesiredState::Cordoned);
        assert_eq!(cordon.by, SOMEBODY);
        let theirs = found(Some(("drain-1", "fan")), DesiredState::Draining);
        assert_eq!(theirs.desired, DesiredState::Cordoned, "nothing is evicted");
        assert_eq!(
            (theirs.by.as_str(), theirs.reason.as_str()),
            (
                SOMEBODY,
                "fan: by an order that this store does not know: it was restored, or the node counted as gone"
            )
        );
        let own = found(Some(("own-1", "idle")), DesiredState::Draining);
        assert_eq!(own.by, DROVER);
        let fresh = met(None, 3, Some(&obeyed(DesiredState::Cordoned, None)));
        assert!(matches!(fresh, Met::Found(_)), "a store that is empty");
    }
}
