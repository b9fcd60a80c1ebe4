//! Judging a group before it is driven, and mending what is safe to mend.
//!
//! Asked by `serve/admin` for `drover pools doctor` and `adopt`; implemented by the `asg` adapter. A survey never fails as
//! a whole: a question that AWS does not answer is a finding among the others.

mod finding;
mod kind;
mod text;

pub use finding::{Finding, Gap, Hook, Next, Question, Severity, SuspendedBy, Told};
pub use kind::Kind;

use async_trait::async_trait;
use drover_core::model::{InstanceId, Millis, Mode};
use std::collections::BTreeSet;

/// A group, wherever it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupRef {
    /// Region, as AWS spells it.
    pub region: String,
    /// ARN of the role that is assumed for it; absent: the coordinator's own credentials.
    pub role: Option<String>,
    /// Its name.
    pub group: String,
}

/// What is known here of a group that is to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyAsk {
    /// Mode of its pool; `observe` where it is in none.
    pub mode: Mode,
    /// Most nodes that its pool may have; absent: the group's own maximum counts.
    pub max: Option<u32>,
    /// The time that emptying a node may take where AWS ends it.
    pub drain: Millis,
    /// Instances whose agents are known; absent: not to be judged.
    pub agents: Option<BTreeSet<InstanceId>>,
}

/// Whose a group is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// It could not be read.
    #[default]
    Unknown,
    /// This coordinator's.
    Ours,
    /// Offered to whoever claims it.
    Unclaimed,
    /// It carries no owner tag.
    NotOffered,
    /// Another coordinator's, or a later opening's of this store.
    Others,
}

impl Standing {
    /// As in the admin service.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ours => "ours",
            Self::Unclaimed => "unclaimed",
            Self::NotOffered => "not offered",
            Self::Others => "another's",
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Whose it is.
    pub standing: Standing,
    /// The group's own bounds and wish; absent when it could not be read.
    pub sizes: Option<Sizes>,
    /// Instance types that it launches, as far as they are known.
    pub types: Vec<String>,
    /// The worst first; empty: the group is right.
    pub findings: Vec<Finding>,
    /// What could not be made sure, and is no fault of the group.
    pub doubts: Vec<String>,
}

/// Sizes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Fewest members that AWS keeps.
    pub min: u32,
    /// Most members that may be asked for.
    pub max: u32,
    /// How many AWS tries to have.
    pub desired: u32,
    /// Members that are there or come.
    pub running: u32,
}

/// Why nothing (more) was mended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MendError {
    /// The group is not ours to change.
    #[error("{0}")]
    Refused(String),
    /// A call failed. What was done before it stays done.
    #[error("{why}{}", if done.is_empty() { String::new() } else { format!("; done before: {}", done.join("; ")) })]
    Failed {
        /// What was done.
        done: Vec<String>,
        /// The call and AWS's words.
        why: String,
    },
}

/// Judges groups, and mends what harms nothing.
#[async_trait]
pub trait GroupSurvey: Send + Sync {
    /// Everything that is to be known before a group is driven. Changes nothing.
    async fn survey(&self, of: &GroupRef, ask: &SurveyAsk) -> Survey;

    /// Protects new and present members, suspends AZRebalance and ReplaceUnhealthy, switches capacity rebalancing off:
    /// each only where it is needed, and what was done in words. A person has asked for it. Only for a group that is ours or
    /// unclaimed, and not frozen.
    ///
    /// # Errors
    /// The group is not to be changed, or a call failed.
    async fn mend(&self, of: &GroupRef) -> Result<Vec<String>, MendError>;
}
