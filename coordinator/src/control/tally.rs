//! What happened since the start, in numbers: events, launches, removals, commits.
//!
//! Kept by the journal for what it has committed; read by `serve/http`. Never a name that is not of a pool: how many
//! different counts there can be is bounded by the config. Decides nothing.

use super::events::Happening;
use crate::ports::store::{CommitError, Revision};
use crate::records::Severity;
use drover_core::model::{FailureKind, NodeId, PoolId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What became of nodes that a pool was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// Asked for.
    Asked,
    /// Their agent enrolled; hosts that nobody asked for as well.
    Joined,
    /// Not joined in time.
    Missed,
    /// Wished and not brought: the wish was given back.
    Withdrawn,
}

impl Arrival {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Asked, Self::Joined, Self::Missed, Self::Withdrawn];

    /// Machine-readable.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Joined => "joined",
            Self::Missed => "missed",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// How a machine was told to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    /// A drained node.
    Leave,
    /// An instance that never joined.
    Reap,
    /// A member that did not run any more, taken off its provider's books.
    Bury,
}

impl Removal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Leave, Self::Reap, Self::Bury];

    /// Machine-readable.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Reap => "reap",
            Self::Bury => "bury",
        }
    }

    /// An instance that no agent speaks for has no minted id.
    fn of(node: &NodeId) -> Self {
        if node.as_str().starts_with("instance/") {
            Self::Reap
        } else {
            Self::Leave
        }
    }
}

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitEnd {
    /// It is durable.
    Done,
    /// Somebody was faster; it is decided again.
    Conflict,
    /// Another coordinator leads.
    Fenced,
    /// Beyond a limit.
    TooLarge,
    /// The engine failed.
    Failed,
}

impl CommitEnd {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Done,
        Self::Conflict,
        Self::Fenced,
        Self::TooLarge,
        Self::Failed,
    ];

    /// Machine-readable.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Fenced => "fenced",
            Self::TooLarge => "too_large",
            Self::Failed => "failed",
        }
    }
}

/// The numbers since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines of the log of events, by what kind of thing they are about, their word and how serious they are.
    pub events: BTreeMap<(&'static str, &'static str, Severity), u64>,
    /// Nodes.
    pub arrivals: BTreeMap<(PoolId, Arrival), u64>,
    /// Asks that failed, wholly or in part.
    pub launch_failures: BTreeMap<(PoolId, FailureKind), u64>,
    /// Machines.
    pub removals: BTreeMap<(PoolId, Removal), u64>,
    /// Removals that a provider refused.
    pub removal_failures: BTreeMap<FailureKind, u64>,
    /// Commits.
    pub commits: BTreeMap<CommitEnd, u64>,
}

impl Counts {
    fn happened(&mut self, happening: &Happening) {
        *self.events.entry(happening.mark()).or_default() += 1;
        match happening {
            Happening::LaunchAsked { pool, count, .. } => {
                self.arrive(pool, Arrival::Asked, *count);
            }
            Happening::Joined {
                pool: Some(pool), ..
            } => self.arrive(pool, Arrival::Joined, 1),
            Happening::LaunchMissed { pool, missing, .. } => {
                self.arrive(pool, Arrival::Missed, *missing);
            }
            Happening::Withdrawn { pool, from, to } => {
                self.arrive(pool, Arrival::Withdrawn, from.saturating_sub(*to));
            }
            Happening::LaunchFailed { pool, kind, .. } => {
                let key = (pool.clone(), *kind);
                *self.launch_failures.entry(key).or_default() += 1;
            }
            Happening::Leaving { node, pool, .. } => self.remove(pool, Removal::of(node)),
            Happening::Buried { pool, .. } => self.remove(pool, Removal::Bury),
            Happening::LeaveFailed { kind, .. } => {
                *self.removal_failures.entry(*kind).or_default() += 1;
            }
            _ => {}
        }
    }

    fn arrive(&mut self, pool: &PoolId, what: Arrival, nodes: u32) {
        *self.arrivals.entry((pool.clone(), what)).or_default() += u64::from(nodes);
    }

    fn remove(&mut self, pool: &PoolId, how: Removal) {
        *self.removals.entry((pool.clone(), how)).or_default() += 1;
    }
}

/// The one place that counts.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counts>);

impl Tally {
    /// These are durable.
    pub(super) fn happened(&self, happenings: &[Happening]) {
        self.with(|counts| happenings.iter().for_each(|h| counts.happened(h)));
    }

    /// A commit ended so.
    pub(super) fn ended(&self, result: &Result<Revision, CommitError>) {
        let end = match result {
            Ok(_) => CommitEnd::Done,
            Err(CommitError::Conflict { .. }) => CommitEnd::Conflict,
            Err(CommitError::Fenced { .. }) => CommitEnd::Fenced,
            Err(CommitError::TooLarge(_)) => CommitEnd::TooLarge,
            Err(CommitError::Backend(_)) => CommitEnd::Failed,
        };
        self.with(|counts| *counts.commits.entry(end).or_default() += 1);
    }

    pub(super) fn counts(&self) -> Counts {
        self.with(|counts| counts.clone())
    }

    fn with<T>(&self, then: impl FnOnce(&mut Counts) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::model::InstanceId;

    #[test]
    fn an_instance_without_an_agent_is_reaped_and_a_node_leaves() {
        let tally = Tally::default();
        let leaving = |node: &str| Happening::Leaving {
            node: NodeId::from(node),
            instance: InstanceId::from("i-1"),
            pool: PoolId::from("p"),
        };
        tally.happened(&[leaving("n-7"), leaving("instance/i-1"), leaving("n-8")]);
        let counts = tally.counts();
        let of = |how| counts.removals.get(&(PoolId::from("p"), how)).copied();
        assert_eq!(of(Removal::Leave), Some(2));
        assert_eq!(of(Removal::Reap), Some(1));
        assert_eq!(of(Removal::Bury), None);
        assert_eq!(counts.events[&("node", "leaving", Severity::Info)], 3);
    }

    #[test]
    fn what_was_not_committed_is_a_commit_that_ended_so_and_nothing_else() {
        let tally = Tally::default();
        tally.ended(&Ok(Revision(3)));
        tally.ended(&Err(CommitError::Conflict { key: "/k".into() }));
        let counts = tally.counts();
        assert_eq!(counts.commits[&CommitEnd::Done], 1);
        assert_eq!(counts.commits[&CommitEnd::Conflict], 1);
        assert!(counts.events.is_empty());
    }
}
