//! What the drain machine hears and asks for. Plain data.
//!
//! Used by `drain` and the executors; decides nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::status::Blocker;
use crate::clock::BootMs;
use crate::order::{Desired, DrainSpec, OrderId};

/// What does not change while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How old the coordinator's word may be for a destructive step.
    pub word_limit_ms: u64,
}

/// How a workload is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum How {
    /// It may clean up.
    Term,
    /// It is ended.
    Kill,
}

impl How {
    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Kill => "KILL",
        }
    }
}

/// One thing to do. At most one is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Take no new work.
    Cordon,
    /// Let the workloads save themselves; done by `by` if that is given.
    Checkpoint {
        /// Leave off at this time.
        by: Option<BootMs>,
    },
    /// Ask workloads to end.
    Evict {
        /// Which.
        ids: Vec<String>,
        /// How.
        how: How,
    },
    /// Tell that the node is empty (unmount, say).
    Announce,
    /// Undo ours, in reverse; the cordon stays if `keep_cordon`.
    Undo {
        /// The order before wanted a cordon.
        keep_cordon: bool,
    },
}

/// Name of an action, for what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// [`Action::Cordon`]
    Cordon,
    /// [`Action::Checkpoint`]
    Checkpoint,
    /// [`Action::Evict`]
    Evict,
    /// [`Action::Announce`]
    Announce,
    /// [`Action::Undo`]
    Undo,
}

impl Did {
    /// For logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Checkpoint => "checkpoint",
            Self::Evict => "evict",
            Self::Announce => "announce",
            Self::Undo => "undo",
        }
    }
}

/// In words, for logs.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.did().as_str();
        match self {
            Self::Evict { ids, how } => write!(f, "{name} {} with {}", ids.join(" "), how.as_str()),
            Self::Undo { keep_cordon: true } => write!(f, "{name} all but the cordon"),
            _ => f.write_str(name),
        }
    }
}

impl Action {
    /// Its name.
    #[must_use]
    pub fn did(&self) -> Did {
        match self {
            Self::Cordon => Did::Cordon,
            Self::Checkpoint { .. } => Did::Checkpoint,
            Self::Evict { .. } => Did::Evict,
            Self::Announce => Did::Announce,
            Self::Undo { .. } => Did::Undo,
        }
    }
}

/// A workload, as far as a drain cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Stable while it runs.
    pub id: String,
    /// For people: "process 4711 (alice) python train.py holds 2 GPUs".
    pub text: String,
    /// Why no executor may end it; `None` if one may.
    pub protected: Option<String>,
}

/// One look at the node. Each has a later number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// Number.
    pub number: u64,
    /// What runs.
    pub work: Vec<Work>,
    /// Witnesses that could not be read, with why.
    pub unreadable: Vec<(String, String)>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An order was taken, or is in force after a start.
    Ordered {
        /// Which one.
        id: OrderId,
        /// What it asks.
        desired: Desired,
        /// Its drain's deadline on the boot-time clock.
        deadline: Option<BootMs>,
    },
    /// The coordinator still meant the order in force at this moment.
    Word(BootMs),
    /// The cloud or the hardware takes the node at this time: word is not needed, and the deadline is no later.
    Emergency(Option<BootMs>),
    /// The cloud takes the node and nobody orders anything: a drain begins by itself. It needs no word.
    Local {
        /// What it is.
        spec: DrainSpec,
        /// Its deadline on the boot-time clock.
        deadline: BootMs,
    },
    /// The node was looked at.
    Looked(Look),
    /// An action ended. Failures name the hook or executor.
    Did(Did, Result<(), Blocker>),
    /// root ran `release` (true) or `resume` (false).
    Released(bool),
    /// The clock.
    Tick,
}
