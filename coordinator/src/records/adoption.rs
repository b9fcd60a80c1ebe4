//! A group that is being adopted: for a time what Drover would have done is kept beside what happened.
//!
//! Written by `control` once a minute at most and bounded, read by the admin service. Kept after its time, until the pool
//! is adopted again.

use drover_core::model::{MicroUsd, Millis, UnixMs};
use serde::{Deserialize, Serialize};

/// Samples of one adoption at most: five minutes each for a day.
pub const SAMPLES: u64 = 288;
/// Decisions of one adoption at most; older ones are counted and dropped.
pub const DECISIONS: usize = 100;

/// An adoption, by its pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptionRecord {
    /// Region of the group.
    pub region: String,
    /// ARN of the role that is assumed for it.
    #[serde(default)]
    pub role: Option<String>,
    /// The group.
    pub group: String,
    /// Who began it.
    pub by: String,
    /// When.
    pub since: UnixMs,
    /// How long it is to be watched.
    pub span: Millis,
    /// How long it was: cycles in `observe` with a fresh reading.
    #[serde(default)]
    pub watched: Millis,
    /// When it was last looked at.
    #[serde(default)]
    pub last: Option<UnixMs>,
    /// When the pool left `observe`: nothing is added any more.
    #[serde(default)]
    pub left: Option<UnixMs>,
    /// What it adds up to.
    #[serde(default)]
    pub tally: Tally,
    /// The course, oldest first.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// What would have been done, oldest first.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// Decisions that no longer fit.
    #[serde(default)]
    pub dropped: u64,
}

impl AdoptionRecord {
    /// It was watched as long as it was to be.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.watched >= self.span
    }
}

/// Sums over the time that was watched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Members that came.
    pub came: u64,
    /// Members that went.
    pub went: u64,
    /// Nodes that would have been asked for: what each plan wanted beyond the plan before it.
    pub would_ask: u64,
    /// Time of nodes that were wanted and not there.
    pub missing_node_ms: u64,
    /// Nodes that would have been drained, each time that one became due.
    pub would_remove: u64,
    /// GPU time of those, from then on.
    pub removable_gpu_ms: u64,
    /// Their price for that time.
    pub removable_cost: MicroUsd,
    /// GPU time of all idle nodes, due or not.
    pub idle_gpu_ms: u64,
    /// Their price for that time.
    pub idle_cost: MicroUsd,
    /// Time of members without an agent: nothing is known of their work.
    pub blind_node_ms: u64,
}

/// A stretch of the course.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Its begin.
    pub at: UnixMs,
    /// Members at its end.
    pub size: u32,
    /// Of them idle.
    pub idle: u32,
    /// Most that would have been asked for at once.
    pub would_ask: u32,
    /// Most that would have been drained at once.
    pub would_remove: u32,
}

/// Something that would have been done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at: UnixMs,
    /// What, and why, for people.
    pub what: String,
}
