//! What the fleet has learnt from its own work, as plain and bounded data: how long finished work ran, when pools last
//! had to give an idle or a new node, and what units with GPUs ask for. Part of the planner's input; changed only by
//! `rules::lives` and `rules::learn`. Decides nothing.

use super::demand::Constraints;
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
    /// What units with GPUs ask for.
    #[serde(default, skip_serializing_if = "Asked::is_empty")]
    pub asked: Asked,
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

/// What units with GPUs ask for, by kind; old arrivals fade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Units that came.
    #[serde(default)]
    pub units: u64,
    /// Number of units at which `residual` is made anew.
    #[serde(default)]
    pub next: u64,
    /// In order; at most 192.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<AskedKind>,
    /// Units that asked for a share of a GPU, by its hundredths, rounded up (1 to 100).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<u32, u64>,
    /// What is left of one GPU is worth: `residual[r]` thousandths of a whole one for `r` hundredths, 101 values that
    /// never fall. Empty: no shares of GPUs were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residual: Vec<u32>,
}

impl Asked {
    /// No unit came yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Units that are alike in where they may go, in whole GPUs, and roughly in CPU per GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedKind {
    /// Where they may go: the rules about nodes only.
    #[serde(default)]
    pub constraints: Constraints,
    /// Whole GPUs of a unit; 1 for shares too.
    pub gpus: u32,
    /// Binary logarithm of milli-CPU per whole GPU.
    pub cpu_log2: u32,
    /// Sum of their weights: units, those of more GPUs counting more.
    pub weight: u64,
    /// Sum of weight times milli-CPU per whole GPU.
    pub cpu: u64,
    /// Sum of weight times MiB per whole GPU.
    pub memory: u64,
}
