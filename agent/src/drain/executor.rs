//! What carries out a drain: one trait, one implementation per thing that gives a node work.
//!
//! Called by `drain`. An executor does one step when told and never decides whether it is time for it.

use std::fmt::Debug;

use async_trait::async_trait;
use tokio::sync::watch;

use super::machine::{How, Work};
use super::status::Blocker;
use crate::clock::BootMs;
use crate::observation::Observation;

/// For whom a step is done.
#[derive(Debug, Clone)]
pub struct Job {
    /// Drain id, empty for a mere cordon.
    pub drain_id: String,
    /// Why, for people.
    pub reason: String,
    /// By the coordinator's clock, milliseconds since 1970.
    pub deadline_unix_ms: Option<u64>,
    /// True: the step is no longer wanted, leave off.
    pub cancel: watch::Receiver<bool>,
}

/// One executor. Every step may be repeated, since a restart repeats it.
#[async_trait]
pub trait Executor: Debug + Send + Sync {
    /// As in the config.
    fn name(&self) -> &'static str;

    /// Takes no new work from now on.
    async fn cordon(&self, job: &Job) -> Result<(), Blocker>;

    /// What runs here by its knowledge.
    fn workloads(&self, seen: &Observation) -> Vec<Work>;

    /// Lets the workloads save themselves before they are ended; done by `by`.
    async fn checkpoint(&self, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        let _nothing_to_do = (job, by);
        Ok(())
    }

    /// Asks these workloads to end, as far as they are its own; returns without waiting for them.
    async fn evict(&self, ids: &[String], how: How) -> Result<(), Blocker>;

    /// The node is empty.
    async fn announce(&self, job: &Job) -> Result<(), Blocker> {
        let _nothing_to_do = job;
        Ok(())
    }

    /// Undoes ours and nothing else; the cordon stays if `keep_cordon`.
    async fn undo(&self, job: &Job, keep_cordon: bool) -> Result<(), Blocker>;
}
