//! Prices and reservations as AWS tells them.
//!
//! Filled by `sdk/offers`, read by the `asg` adapter. A value that AWS did not send is `None`, never zero.

use crate::ReservationId;

/// The present spot price of a type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    /// The type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// Millionths of a USD per hour.
    pub micro_usd_per_hour: u64,
    /// Since when, milliseconds since 1970.
    pub since_unix_ms: Option<i64>,
}

/// What kind of reservation it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReservationKind {
    /// An on-demand capacity reservation.
    OnDemand,
    /// A capacity block: paid ahead, with a fixed end.
    CapacityBlock,
    /// A word this release does not know.
    Other(String),
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Its kind.
    pub kind: ReservationKind,
    /// The type it holds.
    pub instance_type: String,
    /// The zone it holds it in.
    pub zone: String,
    /// Whether it is `active` now (others are scheduled, pending, expired, cancelled, failed).
    pub active: bool,
    /// AWS's word for its state.
    pub state: String,
    /// How many it holds.
    pub total: u32,
    /// How many of them are free.
    pub available: u32,
    /// Whether only launches that name it use it (`targeted`); else any matching launch does (`open`).
    pub targeted: bool,
    /// When it begins, milliseconds since 1970.
    pub start_unix_ms: Option<i64>,
    /// When it ends, milliseconds since 1970; `None` when it does not by itself. AWS begins to end a capacity block's
    /// instances 30 minutes before.
    pub end_unix_ms: Option<i64>,
}
