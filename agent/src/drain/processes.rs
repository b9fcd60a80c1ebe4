//! The executor `processes`: what holds a GPU or matches a matcher, whoever started it.
//!
//! Called by `drain`. Signals only what the observation names, checked by (pid, start time) right before, and never
//! process 1, the agent itself or what it runs under.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::executor::{Executor, Job};
use super::machine::{How, Work};
use super::status::{Blocker, BlockerKind};
use crate::observation::{Observation, Workload};
use crate::state::{StateDir, StateError};

/// In the state directory while the node is cordoned for us; says why.
pub const CORDON_MARK: &str = "cordoned";

/// See the head of the file.
#[derive(Debug)]
pub struct Processes {
    state: StateDir,
}

impl Processes {
    /// Keeps its mark in the state directory.
    #[must_use]
    pub fn new(state: StateDir) -> Self {
        Self { state }
    }
}

#[async_trait]
impl Executor for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    async fn cordon(&self, job: &Job) -> Result<(), Blocker> {
        let text = format!("{}\n{}\n", job.drain_id, job.reason);
        self.state
            .write(CORDON_MARK, text.as_bytes())
            .map_err(|error| failed(&error))
    }

    fn workloads(&self, seen: &Observation) -> Vec<Work> {
        workloads(seen, None)
    }

    async fn evict(&self, ids: &[String], how: How) -> Result<(), Blocker> {
        let spared = own_chain(Path::new("/proc"));
        let mut trouble = Ok(());
        for id in ids {
            if let Err(blocker) = signal(id, how, &spared) {
                trouble = Err(blocker);
            }
        }
        trouble
    }

    async fn undo(&self, _job: &Job, keep_cordon: bool) -> Result<(), Blocker> {
        if keep_cordon {
            return Ok(());
        }
        self.state
            .remove(CORDON_MARK)
            .map_err(|error| failed(&error))
    }
}

fn failed(error: &StateError) -> Blocker {
    Blocker {
        kind: BlockerKind::Executor,
        subject: "processes".into(),
        message: format!("the cordon mark cannot be changed: {error}"),
    }
}

/// The observation's workloads; `spared` is why none of them may be ended.
#[must_use]
pub fn workloads(seen: &Observation, spared: Option<&str>) -> Vec<Work> {
    if seen.workloads.is_empty() {
        return Vec::new();
    }
    let chain = own_chain(Path::new("/proc"));
    seen.workloads
        .iter()
        .map(|work| Work {
            id: work.id(),
            text: describe(work),
            protected: spared.map(str::to_owned).or_else(|| {
                chain
                    .contains(&work.pid)
                    .then(|| "the agent runs under it".to_owned())
            }),
        })
        .collect()
}

/// "process 4711 (alice) python train.py holds 2 GPUs".
fn describe(work: &Workload) -> String {
    let user = if work.user.is_empty() {
        String::new()
    } else {
        format!(" ({})", work.user)
    };
    let held = match work.gpus.len() {
        0 => String::new(),
        1 => " holds 1 GPU".into(),
        count => format!(" holds {count} GPUs"),
    };
    format!("process {}{user} {}{held}", work.pid, work.command)
}

fn signal(id: &str, how: How, spared: &BTreeSet<u32>) -> Result<(), Blocker> {
    let Some((pid, start_ticks)) = id
        .split_once(':')
        .and_then(|(pid, ticks)| Some((pid.parse::<u32>().ok()?, ticks.parse::<u64>().ok()?)))
    else {
        // Another executor's.
        return Ok(());
    };
    let Some(raw) = i32::try_from(pid).ok().filter(|raw| *raw > 1) else {
        return Ok(());
    };
    if spared.contains(&pid) || start_of(Path::new("/proc"), pid) != Some(start_ticks) {
        return Ok(());
    }
    let signal = match how {
        How::Term => Signal::SIGTERM,
        How::Kill => Signal::SIGKILL,
    };
    tracing::info!(pid, signal = signal.as_str(), "ending a workload");
    match kill(Pid::from_raw(raw), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(Blocker {
            kind: BlockerKind::Executor,
            subject: id.to_owned(),
            message: format!(
                "{} to process {pid} failed: {}",
                signal.as_str(),
                errno.desc()
            ),
        }),
    }
}

/// The agent, its parent and so on up to process 1: ending one of them would end the agent.
fn own_chain(proc: &Path) -> BTreeSet<u32> {
    let mut chain = BTreeSet::from([1]);
    let mut pid = std::process::id();
    while pid > 1 && chain.insert(pid) {
        match stat_field(proc, pid, 4).and_then(|text| text.parse().ok()) {
            Some(parent) => pid = parent,
            None => break,
        }
    }
    chain
}

/// Start time of a process in clock ticks since boot: field 22.
fn start_of(proc: &Path, pid: u32) -> Option<u64> {
    stat_field(proc, pid, 22)?.parse().ok()
}

/// A field of /proc/PID/stat, counted from 1 as in proc(5). The name (2) may hold spaces and brackets.
fn stat_field(proc: &Path, pid: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    let behind_name = &text[text.rfind(')')? + 1..];
    behind_name
        .split_ascii_whitespace()
        .nth(field.checked_sub(3)?)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
