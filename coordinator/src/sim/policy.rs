//! Policies for comparison: small replays of a trace that give a history, so that the table compares like with like.
//!
//! Called by `drover simulate`, the score and the tests. They use no planner and no world: what boots, how long, and
//! what is short comes from what is offered. Sources: the rules of the reference figures for the greedy ones, the
//! published documentation of Cluster Autoscaler and of kubernetes-ec2-autoscaler v1.6.0 for the other two.

mod cluster;
mod cluster_autoscaler;
mod fleet;
mod greedy;
mod predecessor;
mod scheduler;

pub use cluster_autoscaler::Expander;
pub use greedy::{Choose, Greedy};

use super::engine::STILL;
use super::history::History;
use super::offered::Offered;
use super::trace::Trace;
use drover_core::model::Millis;
use std::fmt;
use std::str::FromStr;

/// What decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Each unit on a node of its own.
    NoPacking,
    /// Places each job at once, opens what it lacks.
    Greedy(Greedy),
    /// kubernetes-ec2-autoscaler with its defaults, with or without its brake on removals; the default scheduler places.
    Predecessor {
        /// Removes nothing when more than a tenth of all nodes would go.
        brake: bool,
    },
    /// Cluster Autoscaler with its defaults; the default scheduler places.
    ClusterAutoscaler(Expander),
}

/// What a policy may be called, with what follows `=` or `:`.
pub const NAMES: &str = "no-packing, best-fit, best-fit:TYPE, best-fit-cpu, best-fit-apart, first-fit, known-ends, known-ends-fit, \
                         best-fit-timeout=10m, predecessor, \
                         predecessor:no-brake, cluster-autoscaler, cluster-autoscaler:least-waste";

/// A name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No such name.
    #[error("no policy {0:?}; the policies for comparison are {NAMES}")]
    Unknown(String),
    /// What follows the name is wrong.
    #[error("policy {policy:?}: {problem}")]
    Value {
        /// Its name.
        policy: String,
        /// What is wrong, and how it is written.
        problem: String,
    },
    /// Nothing is offered.
    #[error("nothing is offered: the simulation's world has no group with an offering")]
    NothingOffered,
    /// A type that the policy names is not offered.
    #[error("policy {policy}: nothing offered is called {name:?}")]
    NoSuchType {
        /// Policy.
        policy: String,
        /// Type.
        name: String,
    },
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, value) = match text.split_once(['=', ':']) {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let greedy = |choose| Greedy {
            choose,
            open: value.map(str::to_owned),
            ..Greedy::default()
        };
        let policy = match (name, value) {
            ("no-packing", None) => Self::NoPacking,
            ("best-fit", _) => Self::Greedy(greedy(Choose::Best)),
            ("best-fit-cpu", _) => Self::Greedy(greedy(Choose::BestCpu)),
            ("first-fit", _) => Self::Greedy(greedy(Choose::First)),
            ("known-ends", _) => Self::Greedy(greedy(Choose::KnownEnds)),
            ("known-ends-fit", _) => Self::Greedy(greedy(Choose::KnownEndsBest)),
            ("best-fit-apart", None) => Self::Greedy(Greedy {
                apart: true,
                ..Greedy::default()
            }),
            ("best-fit-timeout", time) => Self::Greedy(Greedy {
                idle: idle(text, time.unwrap_or("10m"))?,
                ..Greedy::default()
            }),
            ("predecessor", None) => Self::Predecessor { brake: true },
            ("predecessor", Some("no-brake")) => Self::Predecessor { brake: false },
            ("cluster-autoscaler", None | Some("random")) => {
                Self::ClusterAutoscaler(Expander::Random)
            }
            ("cluster-autoscaler", Some("least-waste")) => {
                Self::ClusterAutoscaler(Expander::LeastWaste)
            }
            _ => return Err(PolicyError::Unknown(text.to_owned())),
        };
        Ok(policy)
    }
}

fn idle(policy: &str, text: &str) -> Result<Millis, PolicyError> {
    let time = drover_config::duration(text).map_err(|problem| PolicyError::Value {
        policy: policy.to_owned(),
        problem: problem.to_string(),
    })?;
    Ok(Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPacking => f.write_str("no-packing"),
            Self::Greedy(greedy) => greedy.fmt(f),
            Self::Predecessor { brake: true } => f.write_str("predecessor"),
            Self::Predecessor { brake: false } => f.write_str("predecessor:no-brake"),
            Self::ClusterAutoscaler(Expander::Random) => f.write_str("cluster-autoscaler"),
            Self::ClusterAutoscaler(Expander::LeastWaste) => {
                f.write_str("cluster-autoscaler:least-waste")
            }
        }
    }
}

impl Policy {
    /// Who places, for people.
    #[must_use]
    pub const fn placer(&self) -> &'static str {
        match self {
            Self::NoPacking | Self::Greedy(_) => "itself",
            Self::Predecessor { .. } | Self::ClusterAutoscaler(_) => "kube-default",
        }
    }

    /// Can it decide about what is offered?
    ///
    /// # Errors
    /// When nothing is offered, or not the type that the policy names.
    pub fn check(&self, offered: &[Offered]) -> Result<(), PolicyError> {
        if offered.is_empty() {
            return Err(PolicyError::NothingOffered);
        }
        let known = |name: &String| offered.iter().any(|kind| kind.name == *name);
        match self {
            Self::Greedy(Greedy {
                open: Some(name), ..
            }) if !known(name) => Err(PolicyError::NoSuchType {
                policy: self.to_string(),
                name: name.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// What happens when it decides about this workload. Jobs that nothing offered can hold never start.
    ///
    /// # Errors
    /// When nothing is offered, or not the type that the policy names.
    pub fn run(
        &self,
        trace: &Trace,
        offered: &[Offered],
        seed: u64,
    ) -> Result<History, PolicyError> {
        self.check(offered)?;
        let mut history = match self {
            Self::NoPacking => greedy::no_packing(trace, offered),
            Self::Greedy(greedy) => greedy::replay(greedy, trace, offered),
            Self::Predecessor { brake } => {
                let autoscaler = predecessor::Loop { brake: *brake };
                cluster::run(trace, offered, seed, autoscaler)
            }
            Self::ClusterAutoscaler(expander) => cluster::run(
                trace,
                offered,
                seed,
                cluster_autoscaler::Loop::new(*expander, offered.len(), seed),
            ),
        };
        history.policy = self.to_string();
        // Jobs that never start are waited for as long as the simulation of Drover would.
        let unstarted = history.jobs.iter().any(|job| job.started.is_none());
        if let (Some(last), true) = (trace.jobs.iter().map(|job| job.submit).max(), unstarted) {
            history.end = history.end.max(last.plus(STILL));
        }
        Ok(history)
    }
}

#[cfg(test)]
mod tests;
