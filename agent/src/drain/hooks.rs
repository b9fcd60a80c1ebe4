//! The executor `hooks`: executables in a directory that are told of each phase.
//!
//! Called by `drain`. One at a time, in the order of their names, no shell, a deadline each, output capped. They
//! run apart from the agent, so that its restart does not end a checkpoint.

mod directory;
mod process;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

pub use directory::check_dir;
use directory::list;

use super::executor::{Executor, Job};
use super::machine::{How, Work};
use super::status::{Blocker, BlockerKind};
use crate::clock::BootMs;
use crate::config;
use crate::observation::Observation;

/// Makes transient scopes; used where systemd runs.
const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";

/// When a hook is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Cordon,
    Checkpoint,
    Drained,
    Undo,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Checkpoint => "checkpoint",
            Self::Drained => "drained",
            Self::Undo => "undo",
        }
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Hooks {
    config: config::Hooks,
    in_scopes: bool,
}

impl Hooks {
    /// Hooks of this config; in transient scopes where systemd runs the machine.
    #[must_use]
    pub fn new(config: config::Hooks) -> Self {
        let in_scopes = Path::new("/run/systemd/system").is_dir()
            && Path::new(SYSTEMD_RUN).exists()
            && nix::unistd::geteuid().is_root();
        Self { config, in_scopes }
    }

    async fn run(&self, phase: Phase, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        let result = self.all(phase, job, by).await;
        match result {
            Err(blocker) if self.config.fail_open => {
                tracing::warn!(
                    hook = blocker.subject,
                    problem = blocker.message,
                    "hook failed, ignored"
                );
                Ok(())
            }
            other => other,
        }
    }

    async fn all(&self, phase: Phase, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        for hook in list(&self.config.dir)? {
            if *job.cancel.borrow() {
                return Err(blocker(
                    &hook,
                    phase,
                    "was not run: the drain was taken back",
                ));
            }
            let mut limit = self.config.deadline;
            if let Some(by) = by {
                limit = limit.min(Duration::from_millis(by.since(BootMs::now())));
            }
            self.one(&hook, phase, job, limit).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Executor for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    async fn cordon(&self, job: &Job) -> Result<(), Blocker> {
        self.run(Phase::Cordon, job, None).await
    }

    fn workloads(&self, _seen: &Observation) -> Vec<Work> {
        Vec::new()
    }

    async fn checkpoint(&self, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        self.run(Phase::Checkpoint, job, by).await
    }

    async fn evict(&self, _ids: &[String], _how: How) -> Result<(), Blocker> {
        Ok(())
    }

    async fn announce(&self, job: &Job) -> Result<(), Blocker> {
        self.run(Phase::Drained, job, None).await
    }

    async fn undo(&self, job: &Job, _keep_cordon: bool) -> Result<(), Blocker> {
        self.run(Phase::Undo, job, None).await
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn blocker(hook: &Path, phase: Phase, why: &str) -> Blocker {
    let name = name_of(hook);
    Blocker {
        kind: BlockerKind::Hook,
        message: format!("hook {name} ({}) {why}", phase.as_str()),
        subject: name,
    }
}

#[cfg(test)]
mod tests;
