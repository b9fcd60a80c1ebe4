//! Pools as they are shown.

use crate::records::{FreezeRecord, LaunchRecord};
use drover_core::model::{MemoryEntry, Mode, Offering, PoolId, PoolKind, SiteId};

/// A pool.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// Name.
    pub name: PoolId,
    /// Kind; absent for an orphaned one.
    pub kind: Option<PoolKind>,
    /// Site.
    pub site: Option<SiteId>,
    /// Mode in force.
    pub mode: Mode,
    /// Limits in force.
    pub min: u32,
    /// Limits in force.
    pub max: u32,
    /// What the config or a person allows, where the provider's own maximum is below it, and so is `max`.
    pub config_max: Option<u32>,
    /// Limits in force.
    pub spare: u32,
    /// Joined nodes.
    pub nodes: u32,
    /// Of them ready.
    pub ready: u32,
    /// Of them idle.
    pub idle: u32,
    /// From draining to leaving.
    pub draining: u32,
    /// Asked for and not joined.
    pub coming: u32,
    /// Silent.
    pub unreachable: u32,
    /// Instances that no agent speaks for.
    pub unmanaged: u32,
    /// A person's pause.
    pub paused: Vec<String>,
    /// What stopped growth until it is mended: launches that never join, a failure, a group that is not ours.
    pub stopped: Vec<String>,
    /// What holds for a while: removal, or all on a silent site and on old data.
    pub holds: Vec<String>,
    /// Instances that were asked for, run, and did not join in time.
    pub missed: u32,
    /// Freeze of this pool.
    pub frozen: Option<FreezeRecord>,
    /// The last reading failed: why, and how old what is shown is.
    pub read_error: Option<String>,
    /// What can be asked, with what the memory says of it.
    pub offerings: Vec<(Offering, Option<MemoryEntry>)>,
    /// Current reasons in words (I9), the provider's warnings included.
    pub reasons: Vec<String>,
    /// What the provider says that is worth knowing and no trouble.
    pub remarks: Vec<String>,
    /// Where it came from: the config file, or a region where it was discovered; empty for an orphaned one.
    pub origin: String,
    /// No longer in the config.
    pub orphaned: bool,
    /// Launches in a row that never joined, or of which nothing was ready in its time.
    pub misses: u32,
    /// Launches in flight.
    pub launches: Vec<LaunchRecord>,
}
