//! What runs here and must not be killed: processes that hold a GPU by NVML's word, and those that a matcher names.
//!
//! Used by the collector. Only pids that NVML names are looked at, except for the matchers' walk, which is rarer. It
//! must say "unknown" rather than "nothing" when a list cannot be trusted.

pub mod accept;
pub mod matcher;

use std::collections::{BTreeMap, BTreeSet};

use crate::collector::{HostPaths, ProcessMatcher};
use crate::host::process::Processes;
use crate::host::users::Users;
use crate::observation::{GpuFacts, GpuState, Workload, WorkloadKind};
use crate::probe::protocol::Reading;
use accept::{Judged, judge};

/// Everything that is known of processes.
#[derive(Debug)]
pub struct Workloads {
    processes: Processes,
    users: Users,
    pid_max: u32,
    gpu: Vec<Workload>,
    matched: Vec<Workload>,
    /// (UUID, pid) that NVML listed although they were not in /proc, in the last round.
    vanished: BTreeSet<(String, u32)>,
    /// Entries of NVML that made no sense, since the start.
    pub invalid_entries: u64,
}

/// What a round of process lists has shown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seen {
    /// UUIDs whose processes are known.
    pub known: BTreeSet<String>,
    /// Why those of other GPUs are not, one text a GPU.
    pub unknown: Vec<String>,
}

impl Workloads {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(paths: &HostPaths) -> Self {
        let processes = Processes::new(&paths.proc);
        Self {
            pid_max: processes.pid_max(),
            processes,
            users: Users::new(&paths.etc),
            gpu: Vec::new(),
            matched: Vec::new(),
            vanished: BTreeSet::new(),
            invalid_entries: 0,
        }
    }

    /// Takes over the process lists of a reading that has them.
    pub fn take(&mut self, reading: &Reading, known: &[GpuFacts]) -> Seen {
        self.users.refresh();
        let mut seen = Seen::default();
        let mut found: BTreeMap<(u32, u64), Workload> = BTreeMap::new();
        let mut vanished = BTreeSet::new();
        for gpu in &reading.gpus {
            let uuid = match &gpu.identity {
                Some(identity) => identity.uuid.clone(),
                None => format!("index {}", gpu.index),
            };
            if gpu.state != GpuState::Ok {
                // The list of a lost GPU cannot be read, and no process computes on it.
                seen.unknown.push(format!("{uuid} does not answer"));
                continue;
            }
            let Some(entries) = &gpu.processes else {
                seen.unknown
                    .push(format!("{uuid}: the driver gives no list"));
                continue;
            };
            let mut starts = BTreeMap::new();
            let judged = judge(
                entries,
                gpu.values.memory_total_bytes,
                self.pid_max,
                |pid| {
                    let start = self.processes.start_ticks(pid);
                    starts.extend(start.map(|start| (pid, start)));
                    start.is_some()
                },
            );
            self.invalid_entries += u64::from(judged.invalid);
            if self.nothing_is_left(&uuid, &judged, gpu.values.memory_used_bytes) {
                seen.unknown
                    .push(format!("{uuid}: no entry of the driver's list makes sense"));
            } else {
                seen.known.insert(uuid.clone());
            }
            for (pid, memory) in judged.by_pid {
                let Some(start) = starts.get(&pid) else {
                    continue;
                };
                let workload = match found.entry((pid, *start)) {
                    std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                    std::collections::btree_map::Entry::Vacant(entry) => {
                        entry.insert(bare(WorkloadKind::GpuProcess, pid, *start))
                    }
                };
                workload.gpus.insert(uuid.clone());
                workload.gpu_memory_bytes = match (workload.gpu_memory_bytes, memory) {
                    (Some(sum), Some(more)) => Some(sum + more),
                    (one, other) => one.or(other),
                };
            }
            vanished.extend(judged.vanished.into_iter().map(|pid| (uuid.clone(), pid)));
        }
        for index in &reading.denied {
            let name = known.iter().find(|gpu| gpu.index == *index);
            let name = name.map_or_else(|| format!("index {index}"), |gpu| gpu.uuid.clone());
            seen.unknown.push(format!("{name}: no permission"));
        }
        self.vanished = vanished;
        self.gpu = found.into_values().collect();
        seen
    }

    /// Walks /proc for the matchers. `false` when it cannot be walked: then nothing is known.
    pub fn walk(&mut self, matchers: &[ProcessMatcher]) -> bool {
        self.users.refresh();
        let Some(pids) = self.processes.pids() else {
            return false;
        };
        let me = std::process::id();
        let mut found = Vec::new();
        for pid in pids.into_iter().filter(|pid| *pid != me) {
            let Some(uid) = self.processes.uid(pid) else {
                continue;
            };
            let Some(command) = self.processes.command(pid) else {
                continue;
            };
            let users = &mut self.users;
            if matchers
                .iter()
                .any(|matcher| matcher::matches(matcher, &command, uid, |uid| users.name(uid)))
                && let Some(start) = self.processes.start_ticks(pid)
            {
                found.push(bare(WorkloadKind::Process, pid, start));
            }
        }
        self.matched = found;
        true
    }

    /// What was seen last and still runs, as it is now: those that hold a GPU first, and no process twice.
    pub fn running(&mut self) -> Vec<Workload> {
        let processes = &self.processes;
        for workload in self.gpu.iter_mut().chain(&mut self.matched) {
            describe(workload, processes, &mut self.users);
        }
        // Looked at last: a process that has ended may have lent its pid to another meanwhile.
        let lives =
            |workload: &Workload| processes.start_ticks(workload.pid) == Some(workload.start_ticks);
        self.gpu.retain(lives);
        self.matched.retain(lives);
        let holds: BTreeSet<u32> = self.gpu.iter().map(|workload| workload.pid).collect();
        let mut all = self.gpu.clone();
        all.extend(
            self.matched
                .iter()
                .filter(|workload| !holds.contains(&workload.pid))
                .cloned(),
        );
        all
    }

    /// AG-10: every entry was dropped although the GPU's memory is in use. One that merely ended between the driver's
    /// list and the look-up is not held against the list, unless the list still has it a round later.
    fn nothing_is_left(&self, uuid: &str, judged: &Judged, used: Option<u64>) -> bool {
        let dropped = judged.invalid > 0
            || judged
                .vanished
                .iter()
                .any(|pid| self.vanished.contains(&(uuid.to_owned(), *pid)));
        judged.by_pid.is_empty() && dropped && used != Some(0)
    }
}

/// What can change while a process lives: one that runs another program or becomes another user keeps pid and start
/// time, so nothing of this may be remembered.
fn describe(workload: &mut Workload, processes: &Processes, users: &mut Users) {
    let pid = workload.pid;
    let uid = processes.uid(pid);
    workload.user = uid.map(|uid| users.name(uid)).unwrap_or_default();
    workload.command = processes.command(pid).unwrap_or_default();
    workload.request = processes.request(pid);
    workload.movable = processes.movable(pid);
}

/// A process of which only the identity is known yet.
fn bare(kind: WorkloadKind, pid: u32, start_ticks: u64) -> Workload {
    Workload {
        kind,
        pid,
        start_ticks,
        user: String::new(),
        command: String::new(),
        gpus: BTreeSet::new(),
        gpu_memory_bytes: None,
        request: None,
        movable: false,
    }
}
