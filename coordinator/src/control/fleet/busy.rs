//! What the witnesses of a node say (I13): idle is a fresh "no work" from every witness. A missing, stale or failing one
//! means busy.
//!
//! Called by the join and, with the newest view, once more right before a node leaves. Pure.

use crate::ports::link::AgentView;
use drover_core::model::{Busy, Millis, UnixMs};
use drover_proto::v1::{Workload, WorkloadKind};

/// Witnesses of an agent that a pool names.
pub const WITNESSES: [&str; 2] = ["gpu-processes", "processes"];

/// How old a word may be.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    /// Now, monotonic.
    pub mono: Millis,
    /// Agents report this often.
    pub report_interval: Millis,
    /// And in full this often.
    pub full_interval: Millis,
}

/// Names at most this many workloads.
const NAMED: usize = 5;

/// What a node's agent says of work on it. `since` is the durable time, or now.
#[must_use]
pub fn busy(view: &AgentView, fresh: Freshness, now: UnixMs, since: UnixMs) -> Busy {
    let unknown = |why: String| Busy::Unknown { why };
    if !view.connected {
        return unknown("its agent is not connected".to_owned());
    }
    let silent = fresh.mono.0.saturating_sub(view.last_seen_mono);
    if silent > fresh.report_interval.0.saturating_mul(3).max(1_000) {
        return unknown(format!("no report for {} s", silent / 1_000));
    }
    let Some(list) = &view.workloads else {
        return unknown("its agent has not told its workloads yet".to_owned());
    };
    let age = now.since(view.workloads_at);
    if age.0 > fresh.full_interval.0.saturating_mul(3).max(3_000) {
        return unknown(format!("no full list of workloads for {} s", age.0 / 1_000));
    }
    if !list.items.is_empty() {
        let mut what: Vec<String> = list.items.iter().take(NAMED).map(named).collect();
        if list.items.len() > NAMED {
            what.push(format!("and {} more", list.items.len() - NAMED));
        }
        return Busy::Working {
            what,
            movable: false,
        };
    }
    if let Some(first) = list.unreadable.first() {
        return unknown(format!("witness {first}"));
    }
    for witness in WITNESSES {
        let no_gpu = witness == "gpu-processes" && view.facts.pci_gpus == Some(0);
        if !no_gpu && !list.witnesses.iter().any(|found| found == witness) {
            return unknown(format!("witness {witness} does not answer"));
        }
    }
    Busy::Idle { since }
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
mod tests {
    use super::*;
    use crate::control::testing::view;
    use std::sync::Arc;

    const FRESH: Freshness = Freshness {
        mono: Millis(100_000),
        report_interval: Millis(5_000),
        full_interval: Millis(60_000),
    };
    const NOW: UnixMs = UnixMs(1_000_000);

    fn judged(change: impl FnOnce(&mut AgentView)) -> Busy {
        let mut view = view("n1");
        view.last_seen_mono = 99_000;
        view.workloads_at = UnixMs(990_000);
        change(&mut view);
        busy(&view, FRESH, NOW, UnixMs(5))
    }

    fn list(view: &mut AgentView) -> &mut drover_proto::v1::WorkloadList {
        Arc::make_mut(view.workloads.as_mut().expect("listed"))
    }

    #[test]
    fn i13_idle_needs_witnesses() {
        assert_eq!(judged(|_| {}), Busy::Idle { since: UnixMs(5) });
        let unknown = |found: Busy| matches!(found, Busy::Unknown { .. });
        assert!(unknown(judged(|view| view.connected = false)));
        assert!(unknown(judged(|view| view.last_seen_mono = 80_000)));
        assert!(unknown(judged(|view| view.workloads = None)));
        assert!(unknown(judged(|view| view.workloads_at = UnixMs(1))));
        assert!(unknown(judged(|view| list(view).witnesses.clear())));
        assert!(unknown(judged(|view| {
            list(view).witnesses.retain(|name| name != "gpu-processes");
        })));
        assert!(unknown(judged(|view| {
            list(view).unreadable = vec!["gpu-processes: probe hung".into()];
        })));
        // A host without GPUs has nothing to ask.
        assert_eq!(
            judged(|view| {
                list(view).witnesses.retain(|name| name != "gpu-processes");
                Arc::make_mut(&mut view.facts).pci_gpus = Some(0);
            }),
            Busy::Idle { since: UnixMs(5) }
        );
    }

    #[test]
    fn sc_34_what_runs_is_named() {
        let found = judged(|view| {
            list(view).items = vec![Workload {
                kind: WorkloadKind::GpuProcess.into(),
                id: "4711:9".into(),
                user: "alice".into(),
                command: "python train.py".into(),
                ..Workload::default()
            }];
        });
        let Busy::Working { what, movable } = found else {
            panic!("busy")
        };
        assert_eq!(what, ["GPU process 4711:9 (alice) python train.py"]);
        assert!(!movable);
    }
}
