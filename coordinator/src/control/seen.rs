//! What the cycle remembers between cycles and may forget at a restart: times on the monotonic clock, what was already
//! told, what was already called.
//!
//! Owned by `Control`. Nothing here decides; nothing here is needed to go on after a crash.

use super::adoptions::Watch;
use super::arrivals::Arrivals;
use super::launches::Trail;
use crate::ports::hooks::Hook;
use drover_core::model::{
    InstanceId, LaunchId, Millis, NodeId, OfferingId, PoolId, RequestName, SiteId, UnixMs,
};
use drover_core::rules::clock;
use std::collections::{BTreeMap, BTreeSet};

/// The cycle's own short memory.
#[derive(Debug)]
pub struct Seen {
    /// Cycles since start.
    pub cycle: u64,
    /// When it started, wall clock.
    pub started: UnixMs,
    /// When it started, monotonic.
    pub started_mono: Millis,
    /// Agents have had time to return.
    pub settled: bool,
    /// Both clocks at the last cycle, and until when nothing is removed for their drift.
    pub clocks: clock::Guard,
    /// The clocks drifted apart at this time, monotonic, by so much.
    pub drifted: Option<(Millis, Millis)>,
    /// When the "alive" record was last written, monotonic; and how long nobody looked before this start.
    pub alive: Option<Millis>,
    /// Nobody looked for so long before this start.
    pub blind: Millis,
    /// Silent sites, since.
    pub silent_sites: BTreeMap<SiteId, UnixMs>,
    /// Nodes that were seen to join.
    pub joined: BTreeSet<NodeId>,
    /// Silent nodes that were told.
    pub unreachable: BTreeSet<NodeId>,
    /// Faulty nodes that were told.
    pub faulty: BTreeMap<NodeId, String>,
    /// Nodes under somebody else's cordon that were told.
    pub foreign_cordons: BTreeSet<NodeId>,
    /// Since when a node's witnesses give no answer, monotonic.
    pub unknown: BTreeMap<NodeId, Millis>,
    /// Nodes whose witnesses have answered since the start.
    pub judged: BTreeSet<NodeId>,
    /// Instances that were told as adopted.
    pub adopted: BTreeSet<InstanceId>,
    /// Those of earlier runs are among them.
    pub recalled: bool,
    /// Groups that are being adopted.
    pub(super) adoptions: BTreeMap<PoolId, Watch>,
    /// Pools that cannot be read and were told.
    pub unreadable: BTreeSet<PoolId>,
    /// Provider's warnings that were told.
    pub warned: BTreeSet<(PoolId, String)>,
    /// Orphaned pools that were told.
    pub orphaned: BTreeSet<PoolId>,
    /// Requests that nothing can serve, told.
    pub impossible: BTreeSet<RequestName>,
    /// Intended launches: not called again before, monotonic.
    pub retry: BTreeMap<LaunchId, Millis>,
    /// What tells whose a failure is that a provider reports by itself.
    pub(super) trails: BTreeMap<LaunchId, Trail>,
    /// What was wanted of an offering and not had, for telling a fail-over.
    pub fell: Vec<(PoolId, OfferingId, u32)>,
    /// Leaving nodes whose instance was told to go: when, monotonic.
    pub leave_called: BTreeMap<NodeId, Millis>,
    /// Leaving nodes: readings of the pool when it was told to go.
    pub leave_read: BTreeMap<NodeId, u64>,
    /// Instances that were reaped: when, monotonic.
    pub reaped: BTreeMap<InstanceId, Millis>,
    /// Pools whose provider refused to end an instance, with what it said: nothing more is drained there until the pool
    /// is resumed.
    pub refused_leaves: BTreeMap<PoolId, String>,
    /// Pools whose provider refused to end an instance for now: what it said, and until when nothing more is drained there,
    /// monotonic.
    pub held_leaves: BTreeMap<PoolId, (String, Millis)>,
    /// Pools whose provider throttles asks: why, how often in a row, and until when none is made, monotonic.
    pub held_growth: BTreeMap<PoolId, (String, u32, Millis)>,
    /// Dead members that were to be taken off the books: how often, and not again before, monotonic.
    pub buried: BTreeMap<InstanceId, (u32, Millis)>,
    /// Orders that were handed to the link: (epoch, generation).
    pub sent: BTreeMap<NodeId, (u64, u64)>,
    /// Units per source in the last good reading.
    pub units: BTreeMap<String, u32>,
    /// Units that came.
    pub(super) arrivals: Arrivals,
    /// Sources that shrank or failed: why shrinking holds, since when (monotonic).
    pub doubtful: BTreeMap<String, (String, Millis)>,
    /// What each source said last of how much has left its queue for a known reason.
    pub left: BTreeMap<String, u64>,
    /// Gangs of schedulers that hold partial capacity, by source and first member: since when.
    pub holds: BTreeMap<(String, String), UnixMs>,
    /// Both clocks when they were looked at last.
    pub holds_at: Option<(UnixMs, Millis)>,
    /// What of it stands in the store; absent before it was read.
    pub holds_written: Option<BTreeMap<(String, String), UnixMs>>,
    /// What discovery could not read or had to leave out.
    pub undiscovered: Vec<String>,
    /// Why the config that was pushed last was refused.
    pub refused_config: Option<String>,
    /// Notices of queues about instances that nobody knows: since when, monotonic.
    pub unplaced: BTreeMap<String, Millis>,
    /// Queues that cannot be read and were told.
    pub deaf: BTreeSet<String>,
    /// Lifecycle hooks of pools as read last, monotonic; `None` after a reading that failed.
    pub hooks: BTreeMap<PoolId, (Millis, Option<Vec<Hook>>)>,
    /// Hooks that were called for: when, monotonic.
    pub hook_called: BTreeMap<String, Millis>,
    /// Alarms, since when.
    pub alarms: BTreeMap<(&'static str, String), UnixMs>,
}

impl Seen {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(started: UnixMs, started_mono: Millis) -> Self {
        Self {
            cycle: 0,
            started,
            started_mono,
            undiscovered: Vec::new(),
            refused_config: None,
            settled: false,
            clocks: clock::Guard::default(),
            drifted: None,
            alive: None,
            blind: Millis::ZERO,
            silent_sites: BTreeMap::new(),
            joined: BTreeSet::new(),
            unreachable: BTreeSet::new(),
            faulty: BTreeMap::new(),
            foreign_cordons: BTreeSet::new(),
            unknown: BTreeMap::new(),
            judged: BTreeSet::new(),
            adopted: BTreeSet::new(),
            recalled: false,
            adoptions: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            warned: BTreeSet::new(),
            orphaned: BTreeSet::new(),
            impossible: BTreeSet::new(),
            retry: BTreeMap::new(),
            trails: BTreeMap::new(),
            fell: Vec::new(),
            leave_called: BTreeMap::new(),
            leave_read: BTreeMap::new(),
            reaped: BTreeMap::new(),
            refused_leaves: BTreeMap::new(),
            held_leaves: BTreeMap::new(),
            buried: BTreeMap::new(),
            held_growth: BTreeMap::new(),
            sent: BTreeMap::new(),
            units: BTreeMap::new(),
            arrivals: Arrivals::default(),
            doubtful: BTreeMap::new(),
            left: BTreeMap::new(),
            holds: BTreeMap::new(),
            holds_at: None,
            holds_written: None,
            unplaced: BTreeMap::new(),
            deaf: BTreeSet::new(),
            hooks: BTreeMap::new(),
            hook_called: BTreeMap::new(),
            alarms: BTreeMap::new(),
        }
    }
}
