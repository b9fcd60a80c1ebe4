//! What a played agent says: an eight-GPU host under load, in the shapes and sizes of a real one.
//!
//! Used by `session_load`. It measures nothing; the values are drawn within what such hosts show.

use std::time::{SystemTime, UNIX_EPOCH};

use drover_proto::limits;
use drover_proto::v1::{
    ConditionList, Facts, GpuFacts, GpuState, GpuUse, Hello, NodeActual, Report, Telemetry,
    Workload, WorkloadKind, WorkloadList,
};
use rand::Rng as _;

/// GPUs per agent.
const GPUS: u32 = 8;
/// In one of so many reports the memory of a process has changed, and the list of workloads is said again.
const BREATHES: u32 = 4;

/// One agent that is played; its number makes it differ from the others.
#[derive(Debug, Clone, Copy)]
pub struct PlayedAgent {
    /// From 0.
    pub number: u32,
}

impl PlayedAgent {
    /// The first message of a session.
    #[must_use]
    pub fn hello(&self) -> Hello {
        Hello {
            protocol: limits::PROTOCOL,
            facts: Some(self.facts()),
            highest_epoch: 0,
            observed: None,
            now_unix_ms: unix_ms(),
            actual: Some(NodeActual::default()),
        }
    }

    /// What its host says of itself.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            machine_id: format!("{:032x}", self.number),
            boot_id: format!("00000000-0000-4000-8000-{:012x}", self.number),
            hostname: format!("load-{:05}", self.number),
            cpus: Some(96),
            memory_bytes: Some(1 << 40),
            os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            kernel: "6.1.0".to_owned(),
            arch: "x86_64".to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            driver_version: Some("550.54".to_owned()),
            pci_gpus: Some(GPUS),
            gpus: (0..GPUS).map(|index| self.gpu(index)).collect(),
            ..Facts::default()
        }
    }

    fn gpu(&self, index: u32) -> GpuFacts {
        GpuFacts {
            uuid: self.uuid(index),
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            memory_bytes: Some(85_520_809_984),
            pci_address: format!("0000:{:02x}:00.0", index + 1),
            index,
        }
    }

    fn uuid(&self, index: u32) -> String {
        format!("GPU-{:08x}-0000-4000-8000-{index:012x}", self.number)
    }

    /// A report, with values drawn anew; a full one carries facts and workloads, a delta sometimes workloads.
    #[must_use]
    pub fn report(&self, full: bool) -> Report {
        let mut random = rand::rng();
        let breathes = random.random_ratio(1, BREATHES);
        let held = random.random_range(39_000_000_000..41_000_000_000);
        let gpus = (0..GPUS).map(|index| GpuUse {
            uuid: self.uuid(index),
            state: GpuState::Ok.into(),
            utilisation_percent: Some(random.random_range(80..=100)),
            memory_utilisation_percent: Some(random.random_range(20..=60)),
            memory_used_bytes: Some(40_000_000_000),
            memory_reserved_bytes: Some(551 << 20),
            temperature_c: Some(random.random_range(50..=80)),
            power_mw: Some(random.random_range(400_000..=700_000)),
            power_limit_mw: Some(700_000),
            sm_clock_mhz: Some(1_980),
            memory_clock_mhz: Some(2_619),
            throttle_reasons: Some(0),
            processes_known: true,
            ..GpuUse::default()
        });
        let telemetry = Telemetry {
            at_unix_ms: unix_ms(),
            gpus: gpus.collect(),
            cpu_permille: Some(300),
            load1_milli: Some(28_000),
            memory_used_bytes: Some(1 << 38),
            uptime_s: Some(86_400),
            ..Telemetry::default()
        };
        Report {
            telemetry: Some(telemetry),
            full,
            facts: full.then(|| self.facts()),
            workloads: (full || breathes).then(|| self.workloads(held)),
            conditions: full.then(ConditionList::default),
            actual: Some(NodeActual::default()),
        }
    }

    /// Eight processes, the first of which holds so much memory.
    fn workloads(&self, held: u64) -> WorkloadList {
        let items = (0..GPUS).map(|index| Workload {
            kind: WorkloadKind::GpuProcess.into(),
            id: format!("{}:{}", 4_000 + index, 1_000_000 + index),
            user: "alice".to_owned(),
            command: "python3 train.py --config large.yaml".to_owned(),
            gpus: vec![self.uuid(index)],
            gpu_memory_bytes: Some(if index == 0 { held } else { 40_000_000_000 }),
            request: String::new(),
            movable: false,
        });
        WorkloadList {
            items: items.collect(),
            unreadable: Vec::new(),
            witnesses: vec!["processes".to_owned()],
        }
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
