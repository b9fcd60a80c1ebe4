//! What happened in a simulation: the plain record that every score, plot and comparison is computed from.
//!
//! Written by the engine and by the policies for comparison; read by `score`, `report` and `compare`. Decides nothing.

use drover_core::model::{MicroUsd, Millis, Resources};
use std::collections::BTreeMap;

/// One run over one trace. All times are since the start of the simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Policy, for people: `drover`, `best-fit`, `no-packing`, ...
    pub policy: String,
    /// When the run was over.
    pub end: Millis,
    /// Per job of the trace, in its order.
    pub jobs: Vec<JobHistory>,
    /// Every node that ever was, in the order of asking.
    pub nodes: Vec<NodeHistory>,
    /// Plans made.
    pub plans: u64,
    /// Core time of all plans, seconds.
    pub plan_seconds: f64,
    /// Capacity asks that were refused, by kind of failure.
    pub refusals: BTreeMap<String, u32>,
    /// What the jobs that never started were waiting for when the run was over, in words; the weightiest first. Empty
    /// when all started, or when the policy does not say.
    pub waited_for: Vec<String>,
    /// Violations of invariants: when, which, what. Empty in a sound run.
    pub violations: Vec<(Millis, String, String)>,
    /// What else happened, for people: when, what. At most some thousands.
    pub notes: Vec<(Millis, String)>,
}

/// What became of one job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobHistory {
    /// First start of all its units; absent: never started.
    pub started: Option<Millis>,
    /// End; absent: still running or never started.
    pub ended: Option<Millis>,
    /// Nodes of its last start, as indices into `nodes`: (node, units).
    pub on: Vec<(u32, u32)>,
    /// Times it was killed.
    pub kills: u32,
    /// Times it was told to move, as it had said that it can. No kill: it lost nothing but the wait.
    pub moves: u32,
    /// A start of it waited for a node to boot.
    pub waited_for_boot: bool,
}

/// One node's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeHistory {
    /// Pool.
    pub pool: String,
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Price per hour.
    pub price: MicroUsd,
    /// What it offers workloads.
    pub allocatable: Resources,
    /// Asked and granted: it costs from then on.
    pub launched: Millis,
    /// Takes work; absent: never did.
    pub ready: Option<Millis>,
    /// Ended: it costs nothing from then on; absent: until the end of the run.
    pub ended: Option<Millis>,
    /// Capacity of it in use over time: (from, in use), until the next entry.
    pub used: Vec<(Millis, Resources)>,
    /// Spans in which it was held for a gang and ran nothing: (from, until).
    pub gang_held: Vec<(Millis, Millis)>,
}
