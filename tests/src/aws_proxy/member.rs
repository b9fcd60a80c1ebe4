//! An instance of a group as the proxy sees it: where it stands between being asked for and being gone.
//!
//! Kept per region; moved on by `advance`. It makes no calls.

use std::time::{Duration, Instant};

use super::scenario::Timing;
use super::xml::Element;

/// Where an instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// On its way in.
    Pending,
    /// Held by launching hooks: `Pending:Wait`.
    LaunchWait,
    /// In service.
    InService,
    /// Held by terminating hooks: `Terminating:Wait`. It runs on in EC2.
    EndWait,
    /// Ending until then: `Terminating`.
    Ending { until: Instant },
    /// Gone in EC2, and still a member: what nobody has replaced yet.
    Dead,
}

/// What a lifecycle hook says.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) heartbeat: Duration,
    pub(super) global: Duration,
    pub(super) continues: bool,
    /// ARN of a queue that is told; nothing: none.
    pub(super) target: String,
    pub(super) metadata: String,
}

/// A hook that holds an instance.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) hook: Hook,
    pub(super) token: String,
    /// When the default is taken.
    pub(super) until: Instant,
    /// When no heartbeat helps any more.
    pub(super) at_most: Instant,
}

impl Wait {
    pub(super) fn new(hook: Hook) -> Self {
        let (now, bits) = (Instant::now(), rand::random::<u128>());
        Self {
            token: uuid(bits),
            until: now + hook.heartbeat.min(hook.global),
            at_most: now + hook.global,
            hook,
        }
    }

    /// Begins the time anew, within the whole that the hook allows.
    pub(super) fn beat(&mut self) {
        self.until = (Instant::now() + self.hook.heartbeat).min(self.at_most);
    }
}

/// An id in AWS's form from random bits.
pub(super) fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    let parts: Vec<&str> = [0..8, 8..12, 12..16, 16..20, 20..32]
        .into_iter()
        .map(|r| hex.get(r).unwrap_or_default())
        .collect();
    parts.join("-")
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) group: String,
    pub(super) since: Instant,
    pub(super) timing: Timing,
    pub(super) zone: Option<String>,
    pub(super) instance_type: Option<String>,
    pub(super) spot: bool,
    pub(super) phase: Phase,
    /// Hooks that will hold it on its way in.
    pub(super) hooks: Vec<Hook>,
    pub(super) waits: Vec<Wait>,
    /// The activity that is about it now.
    pub(super) activity: String,
    /// How the group lists it, once moto does not.
    pub(super) entry: Option<Element>,
}

impl Member {
    fn past(&self, ms: u64) -> bool {
        self.since.elapsed() >= Duration::from_millis(ms)
    }

    /// Whether no describe names it yet.
    pub(super) fn hidden(&self) -> bool {
        self.phase == Phase::Pending && !self.past(self.timing.hide_ms)
    }

    /// Whether it has been started long enough to leave the first phase.
    pub(super) fn has_started(&self) -> bool {
        self.past(self.timing.pending_ms.max(self.timing.hide_ms))
    }

    /// Whether EC2 still says `pending`.
    pub(super) fn pending(&self) -> bool {
        self.phase == Phase::Pending && !self.past(self.timing.pending_ms)
    }

    /// Whether protection from scale-in has not begun: it does with the service.
    pub(super) fn unprotected_yet(&self) -> bool {
        self.phase == Phase::LaunchWait || self.pending()
    }

    /// AWS's word, where it is not moto's.
    pub(super) fn word(&self) -> Option<&'static str> {
        match self.phase {
            Phase::Pending => self.pending().then_some("Pending"),
            Phase::LaunchWait => Some("Pending:Wait"),
            Phase::EndWait => Some("Terminating:Wait"),
            Phase::Ending { .. } => Some("Terminating"),
            Phase::InService | Phase::Dead => None,
        }
    }

    /// Whether it has not come into service yet.
    pub(super) fn is_coming(&self) -> bool {
        matches!(self.phase, Phase::Pending | Phase::LaunchWait)
    }

    /// Whether time alone may move it on.
    pub(super) fn is_moving(&self) -> bool {
        !matches!(self.phase, Phase::InService | Phase::Dead)
    }
}
