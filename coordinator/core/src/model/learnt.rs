//! What the fleet has learnt from its own work, as plain and bounded data: how long finished work ran, and when pools
//! last had to give an idle or a new node. Part of the planner's input; changed only by `rules::lives`. Decides nothing.

use super::ids::{OfferingId, PoolId};
use super::quantities::UnixMs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of it. Empty for a fleet that has seen no work end: whatever is read from it must then change nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    /// Run times of finished work, by the GPUs that one unit of it held (0: none), sizes above 16 rounded up to a power
    /// of two: at most 45 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lives: BTreeMap<u32, Lives>,
    /// The last demand that took an idle or a new node of a pool, or that waits for one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub demanded: BTreeMap<PoolId, Demanded>,
}

impl Learnt {
    /// Nothing is learnt yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Run times of finished work of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lives {
    /// The last eight, in seconds, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_s: Vec<u64>,
    /// Buckets of a quarter octave of seconds: at most 256.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spans: BTreeMap<u32, Span>,
}

/// Run times in one bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// How many.
    pub count: u64,
    /// Their sum in seconds.
    pub sum_s: u64,
}

/// Demand that an idle or a new node had to serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demanded {
    /// When it was submitted.
    pub at: UnixMs,
    /// What it took; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offering: Option<OfferingId>,
}
