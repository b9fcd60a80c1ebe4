//! What happens, as an enum; `table` says about what and how serious it is, `text` renders it, and nothing else does.
//!
//! Used by the cycle, by commands and by `serve`; written to the store by the journal. Decides nothing.

mod table;
mod text;
mod words;

pub(in crate::control) use words::OF_NO_ASK;
pub use words::{failure_word, mode_word, policy_word, time};

use crate::records::DrainPolicy;
use drover_core::model::{
    FailureKind, InstanceId, LaunchId, Millis, Mode, NodeId, OfferingId, PoolId, RequestName,
    SiteId, UnixMs,
};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant and its fields say themselves; the text is below"
)]
pub enum Happening {
    Started {
        fence: u64,
    },
    ConfigTaken {
        gained: String,
        lost: String,
    },
    ConfigRefused {
        why: String,
    },
    PoolsDiscovered {
        gained: String,
        lost: String,
    },
    DiscoveryTrouble {
        what: String,
    },
    Joined {
        node: NodeId,
        name: String,
        pool: Option<PoolId>,
        late: bool,
    },
    Ready {
        node: NodeId,
        name: String,
    },
    Unreachable {
        node: NodeId,
        name: String,
    },
    Returned {
        node: NodeId,
        name: String,
    },
    Faulty {
        node: NodeId,
        name: String,
        what: String,
    },
    Mended {
        node: NodeId,
        name: String,
    },
    ForeignCordon {
        node: NodeId,
        name: String,
        who: String,
    },
    Cordoned {
        node: NodeId,
        by: String,
        reason: String,
    },
    Uncordoned {
        node: NodeId,
        by: String,
        reason: String,
    },
    DrainStarted {
        node: NodeId,
        policy: DrainPolicy,
        by: String,
        reason: String,
    },
    /// Work that says that it can move is told to.
    Moving {
        node: NodeId,
        reason: String,
    },
    DrainCancelled {
        node: NodeId,
        by: String,
        reason: String,
    },
    DrainRolledBack {
        node: NodeId,
        reason: String,
    },
    DrainExpired {
        node: NodeId,
    },
    DrainRefused {
        node: NodeId,
        reason: String,
    },
    Drained {
        node: NodeId,
    },
    Leaving {
        node: NodeId,
        instance: InstanceId,
        pool: PoolId,
    },
    LeaveFailed {
        node: NodeId,
        kind: FailureKind,
        message: String,
    },
    Gone {
        node: NodeId,
        name: String,
        instance: Option<InstanceId>,
    },
    Quarantined {
        node: NodeId,
        name: String,
        why: String,
    },
    Readmitted {
        node: NodeId,
        name: String,
        by: String,
        reason: String,
    },
    Vanished {
        node: NodeId,
        name: String,
        instance: InstanceId,
    },
    Notice {
        node: NodeId,
        kind: String,
        message: String,
    },
    /// A cloud's notice does not hold any more.
    NoticeOver {
        node: NodeId,
        kind: &'static str,
        why: String,
    },
    /// A queue of notices cannot be read.
    NoticesUnreadable {
        queue: String,
        message: String,
    },
    NoticesReadable {
        queue: String,
    },
    /// An instance waits in a lifecycle hook.
    HookWaits {
        node: NodeId,
        hook: String,
    },
    /// The time that a hook can be held runs out.
    HookEnds {
        node: NodeId,
        hook: String,
        at: UnixMs,
    },
    /// A hook is completed.
    HookCompleted {
        node: NodeId,
        hook: String,
        why: String,
    },
    LaunchAsked {
        pool: PoolId,
        offering: OfferingId,
        launch: LaunchId,
        count: u32,
        reason: String,
        /// Requests that it is for, where that is known.
        requests: Option<Vec<RequestName>>,
    },
    /// The provider took an ask that tells no instances: nothing is to be seen of it yet.
    LaunchAccepted {
        pool: PoolId,
        launch: LaunchId,
        count: u32,
    },
    LaunchGranted {
        pool: PoolId,
        launch: LaunchId,
        asked: u32,
        granted: u32,
    },
    LaunchFailed {
        pool: PoolId,
        /// Of an ask of ours; absent: the provider said it of the pool.
        launch: Option<LaunchId>,
        offering: OfferingId,
        kind: FailureKind,
        message: String,
    },
    LaunchSettled {
        pool: PoolId,
        launch: LaunchId,
        asked: u32,
        granted: u32,
    },
    LaunchMissed {
        pool: PoolId,
        launch: LaunchId,
        missing: u32,
    },
    /// What a launch had coming cannot come.
    LaunchLost {
        pool: PoolId,
        launch: LaunchId,
        missing: u32,
        why: String,
    },
    Withdrawn {
        pool: PoolId,
        from: u32,
        to: u32,
    },
    /// Another offering is asked for what this pool's did not have.
    Failover {
        pool: PoolId,
        from: OfferingId,
        to: OfferingId,
        count: u32,
    },
    /// An instance that did not run any more is off its provider's books.
    Buried {
        pool: PoolId,
        instance: InstanceId,
    },
    /// Instances of a pool cost money and nobody hears of them or has work on them.
    Silent {
        pool: PoolId,
        message: String,
    },
    /// Nodes of a pool are not what its template promises.
    TemplateMismatch {
        pool: PoolId,
        message: String,
    },
    Adopted {
        pool: PoolId,
        instance: InstanceId,
    },
    PoolStopped {
        pool: PoolId,
        why: String,
        /// How it goes on.
        next: String,
    },
    PoolClear {
        pool: PoolId,
        /// What ended it; empty when that is known.
        why: String,
    },
    PoolPaused {
        pool: PoolId,
        by: String,
        why: String,
    },
    PoolResumed {
        pool: PoolId,
        by: String,
    },
    PoolMode {
        pool: PoolId,
        by: String,
        mode: Mode,
        reason: String,
    },
    PoolAdopted {
        pool: PoolId,
        by: String,
        detail: String,
    },
    PoolWatched {
        pool: PoolId,
        span: Millis,
    },
    PoolLimits {
        pool: PoolId,
        by: String,
        detail: String,
    },
    PoolUnreadable {
        pool: PoolId,
        message: String,
    },
    PoolReadable {
        pool: PoolId,
    },
    PoolOrphaned {
        pool: PoolId,
    },
    PoolWarning {
        pool: PoolId,
        message: String,
    },
    RequestCreated {
        request: RequestName,
        by: String,
        detail: String,
    },
    RequestServed {
        request: RequestName,
        ends: Option<UnixMs>,
    },
    RequestExtended {
        request: RequestName,
        by: String,
        ends: UnixMs,
    },
    RequestEnded {
        request: RequestName,
        why: String,
    },
    RequestCancelled {
        request: RequestName,
        by: String,
    },
    RequestLost {
        request: RequestName,
        units: u32,
        why: String,
    },
    RequestMoved {
        request: RequestName,
        units: u32,
        from: String,
        to: String,
    },
    RequestReleased {
        request: RequestName,
        why: String,
    },
    RequestImpossible {
        request: RequestName,
        why: String,
    },
    Frozen {
        pool: Option<PoolId>,
        by: String,
        reason: String,
    },
    Thawed {
        pool: Option<PoolId>,
        by: String,
    },
    ApprovalNeeded {
        pool: PoolId,
        id: String,
        message: String,
    },
    Approved {
        pool: PoolId,
        id: String,
        by: String,
    },
    SiteSilent {
        site: SiteId,
        nodes: u32,
    },
    SiteBack {
        site: SiteId,
    },
    ClockDrift {
        drift: Millis,
        until: UnixMs,
    },
    ClockTrusted,
    SourceShrunk {
        source: String,
        before: u32,
        now: u32,
    },
    SourceFailed {
        source: String,
        message: String,
    },
    SourceBack {
        source: String,
    },
    PlanDropped {
        invariant: String,
        why: String,
    },
}
