//! About what each happening is, its machine-readable word, and how serious it is.

use super::Happening;
use crate::records::Severity;
use drover_core::model::{FailureKind, LaunchId, NodeId, PoolId, RequestName};

/// About what something is.
enum Subject<'a> {
    Node(&'a NodeId),
    Pool(&'a PoolId),
    Request(&'a RequestName),
    /// A pool, or the whole fleet.
    Scope(Option<&'a PoolId>),
    /// The fleet, or a part of it by name.
    Fleet(&'a str),
    /// A plan, by the invariant.
    Plan(&'a str),
}

impl Subject<'_> {
    /// node, pool, request, plan, fleet.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Node(_) => "node",
            Self::Pool(_) | Self::Scope(Some(_)) => "pool",
            Self::Request(_) => "request",
            Self::Scope(None) | Self::Fleet(_) => "fleet",
            Self::Plan(_) => "plan",
        }
    }
}

/// One line of the log of events, but for its number and time.
pub(in crate::control) struct Told {
    /// node, pool, request, plan, fleet.
    pub(in crate::control) kind: &'static str,
    pub(in crate::control) subject: String,
    pub(in crate::control) what: &'static str,
    pub(in crate::control) message: String,
    pub(in crate::control) severity: Severity,
    /// The ask that it tells of.
    pub(in crate::control) launch: Option<LaunchId>,
    /// Of an ask: the requests that it is for, where that is known.
    pub(in crate::control) requests: Option<Vec<RequestName>>,
    /// What people call it beside its id.
    pub(in crate::control) names: Vec<String>,
}

impl Happening {
    /// As it is written.
    pub(in crate::control) fn tell(&self) -> Told {
        let (subject, what, severity) = self.place();
        let kind = subject.kind();
        let subject = match subject {
            Subject::Node(id) => id.0.clone(),
            Subject::Pool(id) | Subject::Scope(Some(id)) => id.0.clone(),
            Subject::Request(id) => id.0.clone(),
            Subject::Scope(None) => String::new(),
            Subject::Fleet(part) | Subject::Plan(part) => part.to_owned(),
        };
        Told {
            kind,
            subject,
            what,
            message: self.text(),
            severity,
            launch: self.launch().cloned(),
            requests: match self {
                Self::LaunchAsked { requests, .. } => requests.clone(),
                _ => None,
            },
            names: self.names(),
        }
    }

    /// What people call a node, or an instance, beside its id: for when only events remember it.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Joined { name, .. } | Self::Ready { name, .. } => vec![name.clone()],
            Self::Gone { name, instance, .. } => {
                let instance = instance.iter().map(|id| id.0.clone());
                [name.clone()].into_iter().chain(instance).collect()
            }
            Self::Vanished { name, instance, .. } => vec![name.clone(), instance.0.clone()],
            Self::Leaving { instance, .. } | Self::Adopted { instance, .. } => {
                vec![instance.0.clone()]
            }
            _ => Vec::new(),
        }
    }

    /// The ask that it tells of.
    const fn launch(&self) -> Option<&LaunchId> {
        match self {
            Self::LaunchAsked { launch, .. }
            | Self::LaunchAccepted { launch, .. }
            | Self::LaunchGranted { launch, .. }
            | Self::LaunchSettled { launch, .. }
            | Self::LaunchMissed { launch, .. }
            | Self::LaunchLost { launch, .. } => Some(launch),
            Self::LaunchFailed { launch, .. } => launch.as_ref(),
            _ => None,
        }
    }

    /// The kind of thing that it is about, its word, and how serious it is.
    pub(in crate::control) fn mark(&self) -> (&'static str, &'static str, Severity) {
        let (subject, what, severity) = self.place();
        (subject.kind(), what, severity)
    }

    fn place(&self) -> (Subject<'_>, &'static str, Severity) {
        use Severity::{Alarm, Info, Warning};
        match self {
            Self::Started { .. } => (Subject::Fleet(""), "started", Info),
            Self::ConfigTaken { .. } => (Subject::Fleet(""), "config_taken", Info),
            Self::ConfigRefused { .. } => (Subject::Fleet(""), "config_refused", Alarm),
            Self::PoolsDiscovered { .. } => (Subject::Fleet(""), "pools_discovered", Info),
            Self::DiscoveryTrouble { .. } => (Subject::Fleet(""), "discovery_trouble", Warning),
            Self::Joined { node: id, .. } => (Subject::Node(id), "joined", Info),
            Self::Ready { node: id, .. } => (Subject::Node(id), "ready", Info),
            Self::Unreachable { node: id, .. } => (Subject::Node(id), "unreachable", Warning),
            Self::Returned { node: id, .. } => (Subject::Node(id), "returned", Info),
            Self::Faulty { node: id, .. } => (Subject::Node(id), "faulty", Warning),
            Self::Mended { node: id, .. } => (Subject::Node(id), "mended", Info),
            Self::Quarantined { node: id, .. } => (Subject::Node(id), "quarantined", Alarm),
            Self::Readmitted { node: id, .. } => (Subject::Node(id), "readmitted", Info),
            Self::ForeignCordon { node: id, .. } => (Subject::Node(id), "foreign_cordon", Info),
            Self::Cordoned { node: id, .. } => (Subject::Node(id), "cordoned", Info),
            Self::Uncordoned { node: id, .. } => (Subject::Node(id), "uncordoned", Info),
            Self::DrainStarted { node: id, .. } => (Subject::Node(id), "drain_started", Info),
            Self::Moving { node: id, .. } => (Subject::Node(id), "moving", Info),
            Self::DrainCancelled { node: id, .. } => (Subject::Node(id), "drain_cancelled", Info),
            Self::DrainRolledBack { node: id, .. } => {
                (Subject::Node(id), "drain_rolled_back", Info)
            }
            Self::DrainExpired { node: id } => (Subject::Node(id), "drain_expired", Warning),
            Self::DrainRefused { node: id, .. } => (Subject::Node(id), "drain_refused", Warning),
            Self::Drained { node: id } => (Subject::Node(id), "drained", Info),
            Self::Leaving { node: id, .. } => (Subject::Node(id), "leaving", Info),
            Self::LeaveFailed { node: id, kind, .. } => (
                Subject::Node(id),
                "leave_failed",
                if matches!(kind, FailureKind::Permission | FailureKind::Config) {
                    Alarm
                } else {
                    Warning
                },
            ),
            Self::Gone { node: id, .. } => (Subject::Node(id), "gone", Info),
            Self::Vanished { node: id, .. } => (Subject::Node(id), "vanished", Warning),
            Self::Notice { node: id, .. } => (Subject::Node(id), "notice", Warning),
            Self::NoticeOver { node: id, .. } => (Subject::Node(id), "notice_over", Info),
            Self::NoticesUnreadable { queue, .. } => {
                (Subject::Fleet(queue), "notices_unreadable", Alarm)
            }
            Self::NoticesReadable { queue } => (Subject::Fleet(queue), "notices_readable", Info),
            Self::HookWaits { node: id, .. } => (Subject::Node(id), "hook_waits", Warning),
            Self::HookEnds { node: id, .. } => (Subject::Node(id), "hook_ends", Warning),
            Self::HookCompleted { node: id, .. } => (Subject::Node(id), "hook_completed", Info),
            Self::LaunchAsked { pool: id, .. } => (Subject::Pool(id), "launch_asked", Info),
            Self::LaunchAccepted { pool: id, .. } => (Subject::Pool(id), "launch_accepted", Info),
            Self::LaunchGranted { pool: id, .. } => (Subject::Pool(id), "launch_granted", Info),
            Self::LaunchFailed { pool: id, kind, .. } => (
                Subject::Pool(id),
                "launch_failed",
                if matches!(
                    kind,
                    FailureKind::Config | FailureKind::Permission | FailureKind::Quota
                ) {
                    Alarm
                } else {
                    Warning
                },
            ),
            Self::LaunchSettled { pool: id, .. } => (Subject::Pool(id), "launch_settled", Info),
            Self::LaunchMissed { pool: id, .. } => (Subject::Pool(id), "launch_missed", Warning),
            Self::LaunchLost { pool: id, .. } => (Subject::Pool(id), "launch_lost", Warning),
            Self::Withdrawn { pool: id, .. } => (Subject::Pool(id), "withdrawn", Info),
            Self::Failover { pool: id, .. } => (Subject::Pool(id), "failover", Info),
            Self::Buried { pool: id, .. } => (Subject::Pool(id), "buried", Info),
            Self::Silent { pool: id, .. } => (Subject::Pool(id), "silent_and_empty", Alarm),
            Self::TemplateMismatch { pool: id, .. } => {
                (Subject::Pool(id), "template_mismatch", Alarm)
            }
            Self::Adopted { pool: id, .. } => (Subject::Pool(id), "adopted", Info),
            Self::PoolStopped { pool: id, .. } => (Subject::Pool(id), "pool_stopped", Alarm),
            Self::PoolClear { pool: id, .. } => (Subject::Pool(id), "pool_clear", Info),
            Self::PoolPaused { pool: id, .. } => (Subject::Pool(id), "paused", Info),
            Self::PoolResumed { pool: id, .. } => (Subject::Pool(id), "resumed", Info),
            Self::PoolMode { pool: id, .. } => (Subject::Pool(id), "mode", Info),
            Self::PoolAdopted { pool: id, .. } => (Subject::Pool(id), "adopted", Info),
            Self::PoolWatched { pool: id, .. } => (Subject::Pool(id), "watched", Info),
            Self::PoolLimits { pool: id, .. } => (Subject::Pool(id), "limits", Info),
            Self::PoolUnreadable { pool: id, .. } => (Subject::Pool(id), "unreadable", Warning),
            Self::PoolReadable { pool: id } => (Subject::Pool(id), "readable", Info),
            Self::PoolOrphaned { pool: id } => (Subject::Pool(id), "orphaned", Warning),
            Self::PoolWarning { pool: id, .. } => (Subject::Pool(id), "warning", Warning),
            Self::RequestCreated { request: id, .. } => (Subject::Request(id), "created", Info),
            Self::RequestServed { request: id, .. } => (Subject::Request(id), "served", Info),
            Self::RequestExtended { request: id, .. } => (Subject::Request(id), "extended", Info),
            Self::RequestEnded { request: id, .. } => (Subject::Request(id), "ended", Info),
            Self::RequestCancelled { request: id, .. } => (Subject::Request(id), "cancelled", Info),
            Self::RequestLost { request: id, .. } => (Subject::Request(id), "lost", Warning),
            Self::RequestMoved { request: id, .. } => (Subject::Request(id), "moved", Info),
            Self::RequestReleased { request: id, .. } => (Subject::Request(id), "released", Info),
            Self::RequestImpossible { request: id, .. } => {
                (Subject::Request(id), "impossible", Warning)
            }
            Self::Frozen { pool: id, .. } => (Subject::Scope(id.as_ref()), "frozen", Alarm),
            Self::Thawed { pool: id, .. } => (Subject::Scope(id.as_ref()), "thawed", Info),
            Self::ApprovalNeeded { pool: id, .. } => (Subject::Pool(id), "approval_needed", Alarm),
            Self::Approved { pool: id, .. } => (Subject::Pool(id), "approved", Info),
            Self::SiteSilent { site, .. } => (Subject::Fleet(site.as_str()), "site_silent", Alarm),
            Self::SiteBack { site } => (Subject::Fleet(site.as_str()), "site_back", Info),
            Self::ClockDrift { .. } => (Subject::Fleet(""), "clock_drift", Alarm),
            Self::ClockTrusted => (Subject::Fleet(""), "clock_trusted", Info),
            Self::SourceShrunk { source, .. } => (Subject::Fleet(source), "source_shrunk", Warning),
            Self::SourceFailed { source, .. } => (Subject::Fleet(source), "source_failed", Warning),
            Self::SourceBack { source } => (Subject::Fleet(source), "source_back", Info),
            Self::PlanDropped { invariant, .. } => (Subject::Plan(invariant), "dropped", Alarm),
        }
    }
}
