//! The words of the simulated cloud: instances, asks, answers, tallies.

use super::spec::MarketSpec;
use std::collections::BTreeSet;

/// How an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceStatus {
    /// Boots.
    Pending,
    /// Runs.
    Running,
    /// No more.
    Terminated,
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRecord {
    /// `i-` and 17 hex digits, from the seed.
    pub id: String,
    /// Group.
    pub group: String,
    /// Index of the offering in its group.
    pub offering: usize,
    /// Status.
    pub status: InstanceStatus,
    /// Milliseconds, same clock as every argument.
    pub launched_ms: u64,
    /// When it runs.
    pub running_ms: u64,
    /// Its agent will be heard of.
    pub joins: bool,
    /// When it is taken back (spot); absent: never.
    pub interrupted_ms: Option<u64>,
    /// When it ended.
    pub terminated_ms: Option<u64>,
    /// Token of its launch.
    pub token: String,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Group.
    pub group: String,
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Market.
    pub market: MarketSpec,
    /// How many.
    pub count: u32,
    /// Idempotency token.
    pub token: String,
}

/// Why not all was granted, in AWS's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// AWS error code.
    pub code: String,
    /// AWS text.
    pub message: String,
}

/// What an ask gave. The same token gives the same answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// New instances.
    pub instances: Vec<String>,
    /// Set when fewer than asked.
    pub refusal: Option<Refusal>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// The API does not answer.
    #[error("no answer from the API of group {0}")]
    Away(String),
    /// Too many calls.
    #[error("RequestLimitExceeded: the API of group {0} throttles")]
    Throttled(String),
    /// No such group.
    #[error("AutoScalingGroup name not found - no such group: {0}")]
    NoGroup(String),
    /// The group has no such offering.
    #[error("group {0} has no offering {1}")]
    NoOffering(String, String),
    /// The token was used for another ask.
    #[error("the client token was used with other parameters")]
    TokenMismatch,
    /// No such instance, or it is gone.
    #[error("instance {0} is not in a group or has ended")]
    NoInstance(String),
}

/// What happened as time went on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorldEvent {
    /// An instance runs from now on.
    Running(String),
    /// A spot instance will be taken back at this time.
    Notice(String, u64),
    /// A spot instance is taken back: it has ended.
    Interrupted(String),
}

/// What the cloud itself has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Instances ever launched.
    pub launched: u32,
    /// Instances ended.
    pub terminated: u32,
    /// Most at once.
    pub peak: u32,
    /// Regions that ever had one.
    pub regions: BTreeSet<String>,
    /// Asks not granted in full for want of capacity.
    pub shortages: u32,
    /// Times that a region granted instances after another one was short.
    pub failovers: u32,
    /// Region that was short last and has not been followed by another one.
    pub short_region: Option<String>,
}
