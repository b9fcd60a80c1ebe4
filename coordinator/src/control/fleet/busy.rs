//! What the witnesses of a node say (I13): idle is a fresh "no work" from every witness. A missing, stale or failing one
//! means busy.
//!
//! Called by the join and, with the newest view, once more right before a node leaves. Pure.

use crate::config::{Config, PoolConfig};
use crate::ports::link::AgentView;
use drover_core::model::{Busy, Millis, UnixMs};
use drover_core::rules::idle::{Said, Witness, judge};
use drover_proto::v1::{Workload, WorkloadKind};

/// Witnesses of an agent that a pool names.
pub const WITNESSES: [&str; 2] = ["gpu-processes", "processes"];

/// What counts as an answer.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// Now, monotonic.
    pub mono: Millis,
    /// Agents report this often.
    pub report_interval: Millis,
    /// And in full this often.
    pub full_interval: Millis,
    /// GPU use in percent below which a GPU counts as unused; absent: GPU use is no witness.
    pub gpu_below: Option<u32>,
}

impl Evidence {
    /// As the config wants it of nodes of a pool.
    #[must_use]
    pub fn of(config: &Config, pool: Option<&PoolConfig>, mono: Millis) -> Self {
        Self {
            mono,
            report_interval: config.control.report_interval,
            full_interval: config.control.full_interval,
            gpu_below: pool.and_then(|pool| pool.idle_gpu_below),
        }
    }
}

/// What a node's agent says of work on it. `since` is the durable time, or now.
#[must_use]
pub fn busy(view: &AgentView, evidence: Evidence, now: UnixMs, since: UnixMs) -> Busy {
    let mut witnesses = vec![listed(view, evidence, now)];
    if let Some(list) = &view.workloads {
        let silent = list
            .unreadable
            .first()
            .map(|first| format!("witness {first}"));
        witnesses.extend(silent.map(|why| failed("a witness", why)));
        for name in WITNESSES {
            let no_gpu = name == "gpu-processes" && view.facts.pci_gpus == Some(0);
            if !no_gpu && !list.witnesses.iter().any(|found| found == name) {
                witnesses.push(failed(name, format!("witness {name} does not answer")));
            }
        }
    }
    if let Some(below) = evidence.gpu_below {
        witnesses.extend(gpu_use(view, below));
    }
    judge(&witnesses, Some(since), now)
}

fn failed(name: &str, why: String) -> Witness {
    Witness {
        name: name.to_owned(),
        said: Some((Said::Failed { why }, UnixMs(0))),
        fresh_for: Millis::ZERO,
    }
}

/// The agent's list of workloads. Even an old word of work is work.
fn listed(view: &AgentView, evidence: Evidence, now: UnixMs) -> Witness {
    let name = "its workloads";
    if let Some(list) = view
        .workloads
        .as_ref()
        .filter(|list| !list.items.is_empty())
    {
        let work = Said::Work {
            what: list.items.iter().map(named).collect(),
            // An old word of work is work, but no leave to move it.
            movable: is_fresh(view, evidence) && list.items.iter().all(|work| work.movable),
        };
        return Witness {
            name: name.to_owned(),
            said: Some((work, view.workloads_at)),
            fresh_for: Millis::ZERO,
        };
    }
    if !view.connected {
        failed(name, "its agent is not connected".to_owned())
    } else if !is_fresh(view, evidence) {
        let silent = evidence.mono.0.saturating_sub(view.last_seen_mono);
        failed(name, format!("no report for {} s", silent / 1_000))
    } else if view.workloads.is_none() {
        failed(name, "its agent has not told its workloads yet".to_owned())
    } else {
        Witness {
            name: name.to_owned(),
            said: Some((Said::NoWork, view.workloads_at.min(now))),
            fresh_for: Millis(evidence.full_interval.0.saturating_mul(3).max(3_000)),
        }
    }
}

/// Somebody holds the GPU, and everybody who does says that it can move: the use is theirs.
fn held_by_movable(view: &AgentView, uuid: &str) -> bool {
    let listed = view.workloads.iter().flat_map(|list| &list.items);
    let mut holders = listed
        .filter(|work| work.gpus.iter().any(|gpu| gpu == uuid))
        .peekable();
    holders.peek().is_some() && holders.all(|work| work.movable)
}

/// Its agent is connected, and reports as it should.
fn is_fresh(view: &AgentView, evidence: Evidence) -> bool {
    let silent = evidence.mono.0.saturating_sub(view.last_seen_mono);
    view.connected && silent <= evidence.report_interval.0.saturating_mul(3).max(1_000)
}

/// GPUs that are used, or that do not say whether they are: a use that is not known is not 0.
fn gpu_use(view: &AgentView, below: u32) -> Vec<Witness> {
    let told = view.telemetry.as_ref();
    let gpus = view
        .facts
        .gpus
        .iter()
        .enumerate()
        .filter_map(|(index, gpu)| {
            let name = format!("use of GPU {index}");
            let found = told
                .and_then(|told| told.gpus.iter().find(|found| found.uuid == gpu.uuid))
                .and_then(|found| found.utilisation_percent);
            match found {
                None => Some(failed(&name, format!("GPU {index} does not tell its use"))),
                Some(used) if used >= below => Some(Witness {
                    name,
                    said: Some((
                        Said::Work {
                            what: vec![format!("GPU {index} at {used} % (idle below {below} %)")],
                            movable: held_by_movable(view, &gpu.uuid),
                        },
                        view.last_seen,
                    )),
                    fresh_for: Millis::ZERO,
                }),
                Some(_) => None,
            }
        });
    gpus.collect()
}

fn named(work: &Workload) -> String {
    let kind = match work.kind() {
        WorkloadKind::GpuProcess => "GPU process",
        WorkloadKind::Process => "process",
        WorkloadKind::Login => "login",
        WorkloadKind::Pod => "pod",
        WorkloadKind::Job => "job",
        WorkloadKind::Unspecified => "work",
    };
    let mut text = format!("{kind} {}", work.id);
    if !work.user.is_empty() {
        text.push_str(&format!(" ({})", work.user));
    }
    if !work.command.is_empty() {
        text.push_str(&format!(" {}", work.command));
    }
    text
}

#[cfg(test)]
mod tests;
