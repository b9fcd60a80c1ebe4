//! What happens, as an enum, rendered to text here and nowhere else.
//!
//! Used by the cycle, by commands and by `serve`; written to the store by the journal. Decides nothing.

use crate::records::{DrainPolicy, Severity};
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
    LaunchAsked {
        pool: PoolId,
        offering: OfferingId,
        launch: LaunchId,
        count: u32,
        reason: String,
    },
    LaunchGranted {
        pool: PoolId,
        launch: LaunchId,
        asked: u32,
        granted: u32,
    },
    LaunchFailed {
        pool: PoolId,
        offering: OfferingId,
        kind: FailureKind,
        message: String,
    },
    LaunchSettled {
        pool: PoolId,
        launch: LaunchId,
        granted: u32,
    },
    LaunchMissed {
        pool: PoolId,
        launch: LaunchId,
        missing: u32,
    },
    Failover {
        from: OfferingId,
        to: OfferingId,
        count: u32,
    },
    Adopted {
        pool: PoolId,
        instance: InstanceId,
    },
    PoolStopped {
        pool: PoolId,
        why: String,
    },
    PoolClear {
        pool: PoolId,
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

/// The most that one text may take in the log of events.
const TEXT: usize = 1_000;

fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The machine-readable word of a failure.
#[must_use]
pub const fn failure_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Shortage => "shortage",
        FailureKind::Quota => "quota",
        FailureKind::Price => "price",
        FailureKind::Config => "config",
        FailureKind::Permission => "permission",
        FailureKind::Suspended => "suspended",
        FailureKind::Throttle => "throttle",
        FailureKind::Transient => "transient",
        FailureKind::NeverJoined => "never_joined",
    }
}

/// The word of a drain policy.
#[must_use]
pub const fn policy_word(policy: DrainPolicy) -> &'static str {
    match policy {
        DrainPolicy::Wait => "wait",
        DrainPolicy::Evict => "evict",
        DrainPolicy::Force => "force",
    }
}

/// The word of a mode.
#[must_use]
pub const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Observe => "observe",
        Mode::Grow => "grow",
        Mode::Full => "full",
    }
}

/// Kind of subject, subject, machine-readable word, text for people, how serious.
pub(super) struct Told {
    pub(super) kind: &'static str,
    pub(super) subject: String,
    pub(super) what: &'static str,
    pub(super) message: String,
    pub(super) severity: Severity,
}

impl Happening {
    #[expect(
        clippy::too_many_lines,
        reason = "one table, one line each: the only place that renders"
    )]
    pub(super) fn tell(&self) -> Told {
        use Severity::{Alarm, Info, Warning};
        let node = |id: &NodeId, what, severity, message: String| Told {
            kind: "node",
            subject: id.0.clone(),
            what,
            message: cut(&message).to_owned(),
            severity,
        };
        let pool = |id: &PoolId, what, severity, message: String| Told {
            kind: "pool",
            subject: id.0.clone(),
            what,
            message: cut(&message).to_owned(),
            severity,
        };
        let request = |id: &RequestName, what, severity, message: String| Told {
            kind: "request",
            subject: id.0.clone(),
            what,
            message: cut(&message).to_owned(),
            severity,
        };
        let fleet = |subject: &str, what, severity, message: String| Told {
            kind: "fleet",
            subject: subject.to_owned(),
            what,
            message: cut(&message).to_owned(),
            severity,
        };
        match self {
            Self::Started { fence } => fleet(
                "",
                "started",
                Info,
                format!("the coordinator started (fence {fence})"),
            ),
            Self::Joined {
                node: id,
                name,
                pool,
                late,
            } => node(
                id,
                "joined",
                Info,
                match (pool, late) {
                    (Some(pool), false) => format!("{name} joined pool {pool}"),
                    (Some(pool), true) => {
                        format!("{name} joined pool {pool} after its launch had been given up")
                    }
                    (None, _) => format!("{name} joined in no pool: supply, never touched"),
                },
            ),
            Self::Ready { node: id, name } => node(id, "ready", Info, format!("{name} takes work")),
            Self::Unreachable { node: id, name } => node(
                id,
                "unreachable",
                Warning,
                format!("the agent of {name} is silent"),
            ),
            Self::Returned { node: id, name } => {
                node(id, "returned", Info, format!("the agent of {name} is back"))
            }
            Self::Faulty {
                node: id,
                name,
                what,
            } => node(id, "faulty", Warning, format!("{name} is faulty: {what}")),
            Self::Mended { node: id, name } => {
                node(id, "mended", Info, format!("{name} is no longer faulty"))
            }
            Self::ForeignCordon {
                node: id,
                name,
                who,
            } => node(
                id,
                "foreign_cordon",
                Info,
                format!("{name} was cordoned outside Drover ({who})"),
            ),
            Self::Cordoned {
                node: id,
                by,
                reason,
            } => node(
                id,
                "cordoned",
                Info,
                because(format!("cordoned by {by}"), reason),
            ),
            Self::Uncordoned {
                node: id,
                by,
                reason,
            } => node(
                id,
                "uncordoned",
                Info,
                because(format!("uncordoned by {by}"), reason),
            ),
            Self::DrainStarted {
                node: id,
                policy,
                by,
                reason,
            } => node(
                id,
                "drain_started",
                Info,
                because(
                    format!("{by} drains it (policy {})", policy_word(*policy)),
                    reason,
                ),
            ),
            Self::DrainCancelled {
                node: id,
                by,
                reason,
            } => node(
                id,
                "drain_cancelled",
                Info,
                because(format!("{by} took the drain back"), reason),
            ),
            Self::DrainRolledBack { node: id, reason } => node(
                id,
                "drain_rolled_back",
                Info,
                because("the drain was undone".to_owned(), reason),
            ),
            Self::DrainExpired { node: id } => node(
                id,
                "drain_expired",
                Warning,
                "the drain's deadline passed: the state before is restored".to_owned(),
            ),
            Self::DrainRefused { node: id, reason } => node(
                id,
                "drain_refused",
                Warning,
                because("the agent refused the order".to_owned(), reason),
            ),
            Self::Drained { node: id } => node(id, "drained", Info, "empty, confirmed".to_owned()),
            Self::Leaving {
                node: id,
                instance,
                pool,
            } => node(
                id,
                "leaving",
                Info,
                format!("{instance} of pool {pool} leaves"),
            ),
            Self::LeaveFailed {
                node: id,
                kind,
                message,
            } => node(
                id,
                "leave_failed",
                if matches!(kind, FailureKind::Permission | FailureKind::Config) {
                    Alarm
                } else {
                    Warning
                },
                format!("could not leave ({}): {message}", failure_word(*kind)),
            ),
            Self::Gone { node: id, name } => node(id, "gone", Info, format!("{name} is gone")),
            Self::Vanished {
                node: id,
                name,
                instance,
            } => node(
                id,
                "vanished",
                Warning,
                format!("{instance} of {name} ended without Drover"),
            ),
            Self::Notice {
                node: id,
                kind,
                message,
            } => node(
                id,
                "notice",
                Warning,
                because(format!("notice {kind}"), message),
            ),
            Self::LaunchAsked {
                pool: id,
                offering,
                launch,
                count,
                reason,
            } => pool(
                id,
                "launch_asked",
                Info,
                because(
                    format!("asks for {count} of {offering} (launch {launch})"),
                    reason,
                ),
            ),
            Self::LaunchGranted {
                pool: id,
                launch,
                asked,
                granted,
            } => pool(
                id,
                "launch_granted",
                Info,
                format!("launch {launch}: {granted} of {asked} granted"),
            ),
            Self::LaunchFailed {
                pool: id,
                offering,
                kind,
                message,
            } => pool(
                id,
                "launch_failed",
                if matches!(
                    kind,
                    FailureKind::Config | FailureKind::Permission | FailureKind::Quota
                ) {
                    Alarm
                } else {
                    Warning
                },
                format!("{offering}: {} ({message})", failure_word(*kind)),
            ),
            Self::LaunchSettled {
                pool: id,
                launch,
                granted,
            } => pool(
                id,
                "launch_settled",
                Info,
                format!("launch {launch}, whose answer was lost, gave {granted}"),
            ),
            Self::LaunchMissed {
                pool: id,
                launch,
                missing,
            } => pool(
                id,
                "launch_missed",
                Warning,
                format!("{missing} of launch {launch} never joined"),
            ),
            Self::Failover { from, to, count } => Told {
                kind: "pool",
                subject: to.0.clone(),
                what: "failover",
                severity: Info,
                message: format!("{count} go to {to}, since {from} had none"),
            },
            Self::Adopted { pool: id, instance } => pool(
                id,
                "adopted",
                Info,
                format!("{instance} was not launched by this store: adopted"),
            ),
            Self::PoolStopped { pool: id, why } => {
                pool(id, "pool_stopped", Alarm, format!("stopped: {why}"))
            }
            Self::PoolClear { pool: id } => {
                pool(id, "pool_clear", Info, "no longer stopped".to_owned())
            }
            Self::PoolPaused { pool: id, by, why } => {
                pool(id, "paused", Info, because(format!("paused by {by}"), why))
            }
            Self::PoolResumed { pool: id, by } => {
                pool(id, "resumed", Info, format!("resumed by {by}"))
            }
            Self::PoolMode {
                pool: id,
                by,
                mode,
                reason,
            } => pool(
                id,
                "mode",
                Info,
                because(format!("mode {} by {by}", mode_word(*mode)), reason),
            ),
            Self::PoolLimits {
                pool: id,
                by,
                detail,
            } => pool(
                id,
                "limits",
                Info,
                format!("limits changed by {by}: {detail}"),
            ),
            Self::PoolUnreadable { pool: id, message } => pool(
                id,
                "unreadable",
                Warning,
                format!("cannot be read: {message}"),
            ),
            Self::PoolReadable { pool: id } => {
                pool(id, "readable", Info, "can be read again".to_owned())
            }
            Self::PoolOrphaned { pool: id } => pool(
                id,
                "orphaned",
                Warning,
                "no longer in the config file: reported, never drained".to_owned(),
            ),
            Self::PoolWarning { pool: id, message } => {
                pool(id, "warning", Warning, message.clone())
            }
            Self::RequestCreated {
                request: id,
                by,
                detail,
            } => request(id, "created", Info, format!("{by} asks for {detail}")),
            Self::RequestServed { request: id, ends } => request(
                id,
                "served",
                Info,
                match ends {
                    Some(at) => format!("served, until {}", time(*at)),
                    None => "served, until cancelled".to_owned(),
                },
            ),
            Self::RequestExtended {
                request: id,
                by,
                ends,
            } => request(
                id,
                "extended",
                Info,
                format!("{by} extended it to {}", time(*ends)),
            ),
            Self::RequestEnded { request: id } => request(
                id,
                "ended",
                Info,
                "its time is over: its capacity is free".to_owned(),
            ),
            Self::RequestCancelled { request: id, by } => {
                request(id, "cancelled", Info, format!("cancelled by {by}"))
            }
            Self::RequestLost {
                request: id,
                units,
                why,
            } => request(
                id,
                "lost",
                Warning,
                format!("{units} units wait again: {why}"),
            ),
            Self::RequestReleased { request: id, why } => request(
                id,
                "released",
                Info,
                because("its partial capacity is given up".to_owned(), why),
            ),
            Self::RequestImpossible { request: id, why } => request(
                id,
                "impossible",
                Warning,
                because("no pool can ever serve it".to_owned(), why),
            ),
            Self::Frozen {
                pool: id,
                by,
                reason,
            } => scoped(
                id.as_ref(),
                "frozen",
                Alarm,
                because(format!("frozen by {by}"), reason),
            ),
            Self::Thawed { pool: id, by } => {
                scoped(id.as_ref(), "thawed", Info, format!("thawed by {by}"))
            }
            Self::ApprovalNeeded {
                pool: id,
                id: approval,
                message,
            } => pool(
                id,
                "approval_needed",
                Alarm,
                format!("{message}: `drover approve {approval}` allows it"),
            ),
            Self::Approved {
                pool: id,
                id: approval,
                by,
            } => pool(id, "approved", Info, format!("{by} approved {approval}")),
            Self::SiteSilent { site, nodes } => fleet(
                site.as_str(),
                "site_silent",
                Alarm,
                format!(
                    "all {nodes} nodes of site {site} are silent: a network fault, nothing is removed or bought for it"
                ),
            ),
            Self::SiteBack { site } => fleet(
                site.as_str(),
                "site_back",
                Info,
                format!("site {site} is heard again"),
            ),
            Self::ClockDrift { drift, until } => fleet(
                "",
                "clock_drift",
                Alarm,
                format!(
                    "wall and monotonic clock drifted apart by {} s: nothing is removed before {}",
                    drift.0 / 1_000,
                    time(*until)
                ),
            ),
            Self::ClockTrusted => fleet(
                "",
                "clock_trusted",
                Info,
                "clocks agree again: removals go on".to_owned(),
            ),
            Self::SourceShrunk {
                source,
                before,
                now,
            } => fleet(
                source,
                "source_shrunk",
                Warning,
                format!(
                    "source {source} fell from {before} to {now} units: shrinking holds until it is confirmed"
                ),
            ),
            Self::SourceFailed { source, message } => fleet(
                source,
                "source_failed",
                Warning,
                format!("source {source} cannot be read: {message}"),
            ),
            Self::SourceBack { source } => fleet(
                source,
                "source_back",
                Info,
                format!("source {source} is read again"),
            ),
            Self::PlanDropped { invariant, why } => Told {
                kind: "plan",
                subject: invariant.clone(),
                what: "dropped",
                severity: Alarm,
                message: format!("an action was dropped by {invariant}: {why}"),
            },
        }
    }
}

fn because(text: String, reason: &str) -> String {
    if reason.is_empty() {
        text
    } else {
        format!("{text}: {reason}")
    }
}

fn scoped(pool: Option<&PoolId>, what: &'static str, severity: Severity, message: String) -> Told {
    Told {
        kind: if pool.is_some() { "pool" } else { "fleet" },
        subject: pool.map_or_else(String::new, |pool| pool.0.clone()),
        what,
        message,
        severity,
    }
}

/// A moment as people read it (UTC).
#[must_use]
pub fn time(at: UnixMs) -> String {
    i64::try_from(at.0)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(
            || format!("{} ms", at.0),
            |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        )
}
