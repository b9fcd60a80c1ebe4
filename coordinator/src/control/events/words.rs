//! Words that texts of events share with what else people and machines read. Used wherever one is told.

use crate::records::DrainPolicy;
use drover_core::model::{FailureKind, Mode, UnixMs};

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

/// Said of a failure that a group reports and that no launch of ours is known to have met: somebody else may have asked.
pub(in crate::control) const OF_NO_ASK: &str =
    "the group's own, of no ask of Drover's that is known";

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
