//! The next order of a node: what it should be, with an (epoch, generation) above all before.
//!
//! Called by commands and by the cycle, which commit it before anything is sent. Pure.

use crate::records::order::OrderedDrain;
use crate::records::{DesiredState, DrainPolicy, DrainRecord, OrderRecord};

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

/// A drain of ours that moves work first only keeps new work off: what runs then is looked at once more.
#[must_use]
pub fn looks_again(drain: &DrainRecord) -> bool {
    drain.policy == DrainPolicy::Evict && drain.by == DROVER && drain.moving.is_none()
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
}
