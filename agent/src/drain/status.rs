//! How far an order is, in plain types: made by `drain`, kept by the outbox, sent by the session.

use serde::{Deserialize, Serialize};

use crate::order::{OrderId, Refusal};

/// How far a drain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Taken, nothing done.
    Requested,
    /// The executors are being told to take no new work.
    Cordoning,
    /// Workloads may end by themselves.
    Waiting,
    /// Workloads are being ended.
    Evicting,
    /// Nothing is seen; looking again.
    Confirming,
    /// Empty.
    Drained,
    /// Something that is no ordinary workload is in the way.
    Blocked,
    /// Taken back by a later order.
    Cancelled,
    /// Given up; the state before is restored.
    RolledBack,
}

/// What kind of thing is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockerKind {
    /// A workload.
    Workload,
    /// A hook that failed.
    Hook,
    /// An executor that failed.
    Executor,
    /// A witness that cannot be read.
    UnreadableGpu,
    /// The coordinator's word is too old for a destructive step.
    NoFreshWord,
}

impl BlockerKind {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Hook => "hook",
            Self::Executor => "executor",
            Self::UnreadableGpu => "unreadable_gpu",
            Self::NoFreshWord => "no_fresh_word",
        }
    }
}

/// Something that keeps a drain from being done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// Kind.
    pub kind: BlockerKind,
    /// A workload id, a hook's name, a witness.
    pub subject: String,
    /// For people.
    pub message: String,
}

/// What became of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Which order.
    pub order: OrderId,
    /// Why it was refused, as on the wire; `None` when it was taken.
    pub refused: Option<String>,
    /// Its drain, empty when it has none.
    pub drain_id: String,
    /// How far the drain is.
    pub phase: Option<Phase>,
    /// What is in the way.
    pub blockers: Vec<Blocker>,
    /// Workloads seen when the drain began.
    pub workloads_at_start: u32,
    /// Workloads now.
    pub workloads_now: u32,
    /// Why it was cancelled or rolled back; empty otherwise.
    pub reason: String,
    /// "ID how" of the workloads that it ended.
    pub ended: Vec<String>,
}

impl Status {
    /// The answer to an order that is not taken.
    #[must_use]
    pub fn refused(order: OrderId, drain_id: String, refusal: Refusal, reason: String) -> Self {
        Self {
            order,
            refused: Some(refusal.as_str().to_owned()),
            drain_id,
            reason,
            ..Self::default()
        }
    }

    /// An order was not taken.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.refused.is_some()
    }

    /// The last word on a drain or an order: never dropped.
    #[must_use]
    pub fn is_result(&self) -> bool {
        let ended = matches!(
            self.phase,
            Some(Phase::Drained | Phase::Cancelled | Phase::RolledBack)
        );
        self.is_refusal() || ended
    }
}
