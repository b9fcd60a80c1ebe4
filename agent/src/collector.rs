//! The task that publishes what the agent sees: one `Arc<Observation>` per interval through a watch channel.
//!
//! `main` spawns it; `session` and `drain` read it. It owns the GPU probe child, so `release` and `resume` of the GPU
//! go through it. It must not wait for the driver, a mount or the network longer than one interval.

pub mod conditions;
pub mod config;
pub mod release;
mod task;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

pub use task::{GPU_PROCESSES, NOT_YET, PROCESSES};

pub use config::{CollectorConfig, HostPaths, ImdsConfig, ProbeConfig, ProcessMatcher};

use crate::imds;
use crate::observation::Observation;

/// Why the GPU could not be let go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// The probe is inside a driver call that does not return.
    #[error("refused: probe hung ({op})")]
    Hung {
        /// The call.
        op: String,
    },
    /// The time limit could not be written, so a restart of the agent would take the GPU back.
    #[error("refused: cannot record the release: {0}")]
    State(String),
    /// The collector has ended.
    #[error("the collector has ended")]
    Ended,
}

/// Orders to the collector.
#[derive(Debug)]
pub(crate) enum Command {
    /// End the probe and keep it away for so long.
    Release(Duration, oneshot::Sender<Result<(), ReleaseError>>),
    /// Start the probe again.
    Resume(oneshot::Sender<Result<(), ReleaseError>>),
    /// Another interval.
    Interval(Duration),
    /// End the probe and the task.
    Stop,
}

/// A handle on the running collector. Dropping it ends the collector and its probe.
#[derive(Debug)]
pub struct Collector {
    observations: watch::Receiver<Arc<Observation>>,
    metadata: Option<watch::Receiver<imds::watch::Known>>,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

/// Starts the collector on the current tokio runtime. The first observation (facts without telemetry) may be empty for
/// a moment: wait with `changed()`.
#[must_use]
pub fn spawn(config: CollectorConfig) -> Collector {
    let (publish, observations) = watch::channel(Arc::new(Observation::default()));
    let (commands, orders) = mpsc::channel(8);
    let metadata = metadata(&config);
    let known = metadata.clone();
    let task = tokio::spawn(async move {
        task::Task::new(config, publish, known).run(orders).await;
    });
    Collector {
        observations,
        metadata,
        commands,
        task,
    }
}

/// Begins to ask for instance metadata, on a host that has some.
fn metadata(config: &CollectorConfig) -> Option<watch::Receiver<imds::watch::Known>> {
    match imds::Endpoint::find(&config.imds, &config.paths.sys) {
        Ok(endpoint) => Some(imds::watch::spawn(endpoint?, config.imds.poll).0),
        Err(error) => {
            tracing::warn!(%error, "no instance metadata");
            None
        }
    }
}

impl Collector {
    /// What the cloud's metadata says; `None` on a host without.
    #[must_use]
    pub fn metadata(&self) -> Option<watch::Receiver<imds::watch::Known>> {
        self.metadata.clone()
    }

    /// What is seen, latest value.
    #[must_use]
    pub fn observations(&self) -> watch::Receiver<Arc<Observation>> {
        self.observations.clone()
    }

    /// Lets go of every handle on the GPUs for `ttl`; survives a restart of the agent when a state directory is set.
    ///
    /// # Errors
    /// [`ReleaseError::Hung`] when the probe is stuck in the driver: its handles are then still open.
    pub async fn release(&self, ttl: Duration) -> Result<(), ReleaseError> {
        let (reply, answer) = oneshot::channel();
        self.order(Command::Release(ttl, reply)).await?;
        answer.await.map_err(|_| ReleaseError::Ended)?
    }

    /// Takes the GPUs back before the time limit.
    ///
    /// # Errors
    /// When the record of the release cannot be removed.
    pub async fn resume(&self) -> Result<(), ReleaseError> {
        let (reply, answer) = oneshot::channel();
        self.order(Command::Resume(reply)).await?;
        answer.await.map_err(|_| ReleaseError::Ended)?
    }

    /// Observes every so often from now on (the coordinator may ask for another rate).
    pub async fn set_interval(&self, interval: Duration) {
        // The collector ended: nothing observes any more, and the receiver of observations tells.
        let _ended = self.order(Command::Interval(interval)).await;
    }

    /// Ends the collector within two seconds. A child that hangs in the driver is killed and not waited for.
    pub async fn stop(mut self) {
        let _ended = self.order(Command::Stop).await;
        if tokio::time::timeout(Duration::from_secs(2), &mut self.task)
            .await
            .is_err()
        {
            tracing::warn!("collector did not end in time");
        }
    }

    async fn order(&self, command: Command) -> Result<(), ReleaseError> {
        self.commands
            .send(command)
            .await
            .map_err(|_| ReleaseError::Ended)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_telemetry_carries_the_rates() {
        let collector = spawn(CollectorConfig {
            // Only the first tick comes within this test.
            interval: Duration::from_secs(3_600),
            imds: ImdsConfig {
                disabled: true,
                ..ImdsConfig::default()
            },
            probe: ProbeConfig {
                program: "/bin/false".into(),
                ..ProbeConfig::default()
            },
            ..CollectorConfig::default()
        });
        let mut observations = collector.observations();
        let first = observations.wait_for(|seen| seen.telemetry.is_some());
        let first = tokio::time::timeout(Duration::from_secs(10), first)
            .await
            .unwrap()
            .unwrap()
            .telemetry
            .clone()
            .unwrap();
        assert!(first.cpu_permille.is_some_and(|permille| permille <= 1000));
        assert!(first.memory_used_bytes.is_some() && !first.disks.is_empty());
        collector.stop().await;
    }
}
