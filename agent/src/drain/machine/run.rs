//! One drain: what it is asked, how far it is, what is in its way. Pure.
//!
//! Used by the drain machine alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::status::{Blocker, BlockerKind, Phase};
use super::event::{How, Look};
use crate::clock::BootMs;
use crate::order::DrainSpec;

/// A failed executor or hook is tried again after this.
const RETRY_MS: u64 = 10_000;
/// A workload that outlives KILL by this is said to be stuck.
pub(super) const STUCK_MS: u64 = 10_000;
/// Empty looks in a row that make a node empty.
pub(super) const EMPTY_LOOKS: u8 = 2;

/// A thing to be done once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Once {
    #[default]
    Open,
    Done,
    Failed {
        blocker: Blocker,
        again: BootMs,
    },
}

impl Once {
    pub(super) fn take(&mut self, result: Result<(), Blocker>, now: BootMs) {
        *self = match result {
            Ok(()) => Self::Done,
            Err(blocker) => Self::Failed {
                blocker,
                again: now.plus(RETRY_MS),
            },
        };
    }

    pub(super) fn is_due(&self, now: BootMs) -> bool {
        match self {
            Self::Open => true,
            Self::Done => false,
            Self::Failed { again, .. } => now >= *again,
        }
    }

    pub(super) fn blocker(&self) -> Option<&Blocker> {
        match self {
            Self::Failed { blocker, .. } => Some(blocker),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) how: How,
    /// For the first time in this way.
    pub(super) at: BootMs,
    /// For the last time.
    pub(super) last: BootMs,
}

/// One drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) spec: DrainSpec,
    pub(super) deadline: Option<BootMs>,
    /// Nobody ordered it.
    #[serde(default)]
    pub(super) local: bool,
    /// The order before it wanted a cordon: that is what a roll-back restores.
    pub(super) cordoned_before: bool,
    pub(super) phase: Phase,
    pub(super) at_start: Option<u32>,
    pub(super) now: u32,
    pub(super) checkpoint: Once,
    pub(super) announce: Once,
    pub(super) asked: BTreeMap<String, Asked>,
    pub(super) ended: BTreeMap<String, How>,
    pub(super) reason: String,
    #[serde(skip)]
    pub(super) empty_looks: u8,
    #[serde(skip)]
    pub(super) blockers: Vec<Blocker>,
    /// Nothing that is still there can be ended.
    #[serde(skip)]
    pub(super) stands_still: bool,
    /// Why the last eviction did not reach everything.
    #[serde(skip)]
    pub(super) trouble: Option<Blocker>,
}

/// Why a drain is over without being done: the one place that puts it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Deadline,
    TakenBack,
    TakenBackDone,
    Released,
    OtherBoot,
}

impl End {
    fn phase(self) -> Phase {
        match self {
            Self::Deadline => Phase::RolledBack,
            Self::TakenBack | Self::TakenBackDone | Self::Released | Self::OtherBoot => {
                Phase::Cancelled
            }
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Deadline => "not empty at its deadline",
            Self::TakenBack => "taken back by a later order",
            Self::TakenBackDone => "taken back after it was done",
            Self::Released => "released by root on the host",
            Self::OtherBoot => "the host booted anew after it",
        }
    }
}

pub(super) fn earlier(one: Option<BootMs>, other: Option<BootMs>) -> Option<BootMs> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Run {
    pub(super) fn start(spec: DrainSpec, deadline: Option<BootMs>, cordoned_before: bool) -> Self {
        Self {
            spec,
            deadline,
            local: false,
            cordoned_before,
            phase: Phase::Requested,
            at_start: None,
            now: 0,
            checkpoint: Once::Open,
            announce: Once::Open,
            asked: BTreeMap::new(),
            ended: BTreeMap::new(),
            reason: String::new(),
            empty_looks: 0,
            blockers: Vec::new(),
            stands_still: false,
            trouble: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Cancelled | Phase::RolledBack)
    }

    /// Whether it goes on when it is told again. One that was given up begins anew only with another deadline.
    pub(super) fn resumes(&self, spec: &DrainSpec) -> bool {
        match self.phase {
            Phase::Cancelled => false,
            Phase::RolledBack => spec.deadline_unix_ms == self.spec.deadline_unix_ms,
            _ => true,
        }
    }

    pub(super) fn end(&mut self, why: End) {
        self.phase = why.phase();
        self.empty_looks = 0;
        // What was in the way at a deadline stays readable in the reason.
        self.reason = match self.blockers.first() {
            Some(first) if why == End::Deadline => format!("{}: {}", why.text(), first.message),
            _ => why.text().to_owned(),
        };
        self.blockers.clear();
    }

    /// Takes a look: counts, and notes which of those it asked to end are gone.
    pub(super) fn looked(&mut self, look: &Look) {
        let empty = look.work.is_empty() && look.unreadable.is_empty();
        self.empty_looks = if empty {
            self.empty_looks.saturating_add(1)
        } else {
            0
        };
        self.now = u32::try_from(look.work.len()).unwrap_or(u32::MAX);
        if !look.unreadable.is_empty() {
            return;
        }
        let here = |id: &String| look.work.iter().any(|work| work.id == *id);
        let ended = &mut self.ended;
        self.asked.retain(|id, asked| {
            let stays = here(id);
            if !stays {
                ended.insert(id.clone(), asked.how);
            }
            stays
        });
    }

    /// Nothing is seen now.
    pub(super) fn confirm(&mut self) {
        if self.phase == Phase::Drained {
            return;
        }
        self.phase = Phase::Confirming;
        if self.empty_looks < EMPTY_LOOKS {
            return;
        }
        match &self.announce {
            Once::Done => self.phase = Phase::Drained,
            Once::Failed { blocker, .. } => self.blockers.push(blocker.clone()),
            Once::Open => {}
        }
    }

    /// Lists what a look found in the way.
    pub(super) fn block(&mut self, look: &Look, now: BootMs) {
        for (witness, why) in &look.unreadable {
            self.blockers.push(Blocker {
                kind: BlockerKind::UnreadableGpu,
                subject: witness.clone(),
                message: format!("{witness} cannot be read: {why}"),
            });
        }
        self.stands_still = !look.work.is_empty();
        for work in &look.work {
            let stuck = self
                .asked
                .get(&work.id)
                .is_some_and(|asked| asked.how == How::Kill && now.since(asked.at) >= STUCK_MS);
            self.stands_still &= stuck || work.protected.is_some();
            let message = match &work.protected {
                Some(why) => format!("{}; not ended: {why}", work.text),
                None if stuck => format!("{}; does not end after KILL", work.text),
                None => work.text.clone(),
            };
            self.blockers.push(Blocker {
                kind: BlockerKind::Workload,
                subject: work.id.clone(),
                message,
            });
        }
    }

    /// `Blocked` is how a drain looks when more than workloads that end, or may be ended, is in its way.
    pub(super) fn shown(&self) -> Phase {
        let other = self
            .blockers
            .iter()
            .any(|blocker| blocker.kind != BlockerKind::Workload);
        let stuck = self.phase == Phase::Evicting && self.stands_still;
        if !self.is_over() && self.phase != Phase::Drained && (other || stuck) {
            Phase::Blocked
        } else {
            self.phase
        }
    }
}
