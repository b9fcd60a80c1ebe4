//! Orders and whether one is taken: by (epoch, generation), and by content when these are equal. Pure.
//!
//! Called by `drain`, which writes the book to disk before it acts on what was taken.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock;

/// Which order: compared by epoch first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OrderId {
    /// Exceeds every epoch that the node saw before.
    pub epoch: u64,
    /// Grows with every change within an epoch.
    pub generation: u64,
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.epoch, self.generation)
    }
}

/// How a drain treats workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Let them end.
    Wait,
    /// End them with grace; roll back at the deadline.
    Evict,
    /// End them within the deadline whatever they say.
    Force,
}

/// The drain of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainSpec {
    /// Hooks, marks and results carry it.
    pub id: String,
    /// How workloads are treated.
    pub policy: Policy,
    /// By the coordinator's clock, milliseconds since 1970; `None`: no deadline.
    pub deadline_unix_ms: Option<u64>,
    /// Between TERM and KILL.
    pub grace_ms: u64,
    /// Why, for people.
    pub reason: String,
}

/// What a node should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// Takes work.
    Active,
    /// Takes no new work.
    Cordoned,
    /// Is to be empty.
    Draining(DrainSpec),
}

/// In words, for logs.
impl fmt::Display for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Cordoned => f.write_str("cordoned"),
            Self::Draining(spec) => {
                let policy = match spec.policy {
                    Policy::Wait => "wait",
                    Policy::Evict => "evict",
                    Policy::Force => "force",
                };
                write!(f, "draining ({policy}")?;
                if let Some(deadline) = spec.deadline_unix_ms {
                    write!(f, ", by {}", clock::text(deadline))?;
                }
                write!(f, ", drain {}: {})", spec.id, spec.reason)
            }
        }
    }
}

/// The desired state of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which one.
    pub id: OrderId,
    /// What it asks.
    pub desired: Desired,
}

/// Why an order is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Older than what the node has seen.
    Stale,
    /// The order in force has the same number and asks something else.
    Contradicting,
    /// It makes no sense.
    Invalid,
}

impl Refusal {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Contradicting => "contradicting",
            Self::Invalid => "invalid",
        }
    }
}

/// What becomes of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// New: write it, then do it.
    Take,
    /// The one in force, said again: fresh word.
    Same,
    /// Not taken.
    Refuse(Refusal),
}

/// What the node remembers of its orders, across everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// The highest epoch ever seen. Stays when orders go.
    pub highest_epoch: u64,
    /// The order in force.
    pub in_force: Option<Order>,
}

impl Book {
    /// Judges an order; changes nothing.
    #[must_use]
    pub fn judge(&self, order: &Order) -> Verdict {
        if let Desired::Draining(spec) = &order.desired
            && spec.id.is_empty()
        {
            return Verdict::Refuse(Refusal::Invalid);
        }
        if order.id.epoch == 0 || order.id.epoch < self.highest_epoch {
            return Verdict::Refuse(Refusal::Stale);
        }
        match &self.in_force {
            Some(held) if order.id < held.id => Verdict::Refuse(Refusal::Stale),
            Some(held) if order.id == held.id && order.desired == held.desired => Verdict::Same,
            Some(held) if order.id == held.id => Verdict::Refuse(Refusal::Contradicting),
            _ => Verdict::Take,
        }
    }

    /// Puts an order in force that [`Book::judge`] took.
    pub fn take(&mut self, order: Order) {
        self.highest_epoch = self.highest_epoch.max(order.id.epoch);
        self.in_force = Some(order);
    }

    /// Remembers the epoch of a session. True when it is new and must be written.
    pub fn saw_epoch(&mut self, epoch: u64) -> bool {
        let new = epoch > self.highest_epoch;
        self.highest_epoch = self.highest_epoch.max(epoch);
        new
    }

    /// Whether the coordinator means the order in force: only that makes its word fresh.
    #[must_use]
    pub fn confirms(&self, id: OrderId) -> bool {
        self.in_force.as_ref().is_some_and(|held| held.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(id: &str, reason: &str) -> Desired {
        Desired::Draining(DrainSpec {
            id: id.into(),
            policy: Policy::Evict,
            deadline_unix_ms: Some(1),
            grace_ms: 1,
            reason: reason.into(),
        })
    }

    #[test]
    fn what_is_desired_is_said_in_words() {
        assert_eq!(Desired::Cordoned.to_string(), "cordoned");
        assert_eq!(
            drain("d-1", "new fan").to_string(),
            "draining (evict, by 1970-01-01T00:00:00.001Z, drain d-1: new fan)"
        );
    }

    fn order(epoch: u64, generation: u64, desired: Desired) -> Order {
        Order {
            id: OrderId { epoch, generation },
            desired,
        }
    }

    #[test]
    fn judges_by_number_then_by_content() {
        use Refusal::{Contradicting, Invalid, Stale};
        use Verdict::{Refuse, Same, Take};
        let mut book = Book::default();
        assert_eq!(book.judge(&order(1, 1, Desired::Active)), Take);
        assert_eq!(
            book.judge(&order(0, 1, Desired::Active)),
            Refuse(Stale),
            "no epoch"
        );
        book.take(order(3, 7, drain("d", "why")));
        for (epoch, generation, desired, want) in [
            (3, 7, drain("d", "why"), Same),
            (3, 7, drain("d", "other"), Refuse(Contradicting)),
            (3, 7, Desired::Active, Refuse(Contradicting)),
            (3, 6, drain("d", "why"), Refuse(Stale)),
            (2, 99, Desired::Active, Refuse(Stale)),
            (3, 8, Desired::Active, Take),
            (4, 0, Desired::Active, Take),
            (3, 8, drain("", "why"), Refuse(Invalid)),
        ] {
            let offered = order(epoch, generation, desired);
            assert_eq!(book.judge(&offered), want, "{offered:?}");
        }
    }

    #[test]
    fn an_epoch_that_was_seen_outlives_its_orders() {
        let mut book = Book::default();
        assert!(book.saw_epoch(5));
        assert!(!book.saw_epoch(5));
        assert!(!book.saw_epoch(4));
        assert_eq!(
            book.judge(&order(4, 1, Desired::Active)),
            Verdict::Refuse(Refusal::Stale),
            "a leader of before says nothing any more"
        );
        assert_eq!(book.judge(&order(5, 1, Desired::Active)), Verdict::Take);
        assert_eq!(book.highest_epoch, 5);
    }

    #[test]
    fn only_word_about_the_order_in_force_is_fresh() {
        let mut book = Book::default();
        let id = OrderId {
            epoch: 3,
            generation: 7,
        };
        assert!(!book.confirms(OrderId::default()));
        book.take(order(3, 7, drain("d", "why")));
        assert!(book.confirms(id));
        assert!(!book.confirms(OrderId {
            generation: 8,
            ..id
        }));
        assert!(!book.confirms(OrderId { epoch: 4, ..id }));
    }

    #[test]
    fn ag_16_a_withdrawn_order_stays_withdrawn() {
        let mut book = Book::default();
        book.take(order(3, 7, drain("d", "xid 95")));
        book.take(order(3, 8, Desired::Active));
        let late = order(3, 7, drain("d", "xid 95"));
        assert_eq!(book.judge(&late), Verdict::Refuse(Refusal::Stale));
        assert_eq!(book.in_force, Some(order(3, 8, Desired::Active)));
    }
}
