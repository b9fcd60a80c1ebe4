//! What the agent knows about its host, in plain types: written by the collectors (`telemetry`, `inventory`,
//! `probe`), read by `drain` and, through `session/convert.rs`, sent to the coordinator.
//!
//! Missing is not zero: what was not measured is `None` or absent, end to end.

use std::collections::{BTreeMap, BTreeSet};

/// Everything known at one moment. Published whole through a watch channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What the host is.
    pub facts: Facts,
    /// What it measures; `None` before the first round.
    pub telemetry: Option<Telemetry>,
    /// What holds a GPU or matches a process matcher.
    pub workloads: Vec<Workload>,
    /// Witnesses that answered in this round ("gpu-processes", "processes").
    pub witnesses: BTreeSet<String>,
    /// Witnesses that could not be read, with why. While one is here the node is not known to be idle.
    pub unreadable: BTreeMap<String, String>,
    /// Named troubles, with when they began.
    pub conditions: Vec<Condition>,
}

/// What a host says of itself. Facts, never identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// /etc/machine-id, empty when there is none.
    pub machine_id: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Kernel host name.
    pub hostname: String,
    /// EC2 instance id; `None` when no metadata service answers.
    pub instance_id: Option<String>,
    /// EC2 availability zone.
    pub zone: Option<String>,
    /// EC2 instance type.
    pub instance_type: Option<String>,
    /// Logical CPUs.
    pub cpus: Option<u32>,
    /// Physical memory, bytes.
    pub memory_bytes: Option<u64>,
    /// PRETTY_NAME of os-release.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine hardware name.
    pub arch: String,
    /// NVIDIA driver version.
    pub driver_version: Option<String>,
    /// NVIDIA GPUs on the PCI bus; `None` when it cannot be read.
    pub pci_gpus: Option<u32>,
    /// GPUs that the driver names, lost ones with their last identity included.
    pub gpus: Vec<GpuFacts>,
    /// Local file systems.
    pub disks: Vec<DiskFacts>,
    /// Interfaces without the loopback.
    pub nics: Vec<NicFacts>,
}

/// One GPU as it is built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuFacts {
    /// NVML UUID: the join key.
    pub uuid: String,
    /// Product name.
    pub name: String,
    /// Total memory, bytes.
    pub memory_bytes: Option<u64>,
    /// PCI address.
    pub pci_address: String,
    /// Index in this boot.
    pub index: u32,
}

/// One local file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskFacts {
    /// Mount point.
    pub mount: String,
    /// Kind (ext4).
    pub kind: String,
    /// Size, bytes.
    pub total_bytes: Option<u64>,
}

/// One network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicFacts {
    /// Name.
    pub name: String,
    /// MAC address.
    pub mac: String,
    /// Addresses, as text.
    pub addresses: Vec<String>,
}

/// Measured values of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Telemetry {
    /// Wall clock, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Not-idle part of all CPU time since the last sample, thousandths.
    pub cpu_permille: Option<u32>,
    /// Load averages of 1, 5, 15 min, thousandths.
    pub load_milli: Option<[u32; 3]>,
    /// total - available, bytes.
    pub memory_used_bytes: Option<u64>,
    /// Swap in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// PSI "some" avg10 of cpu, memory, io in hundredths of a percent, each absent with psi=0.
    pub psi: [Option<u32>; 3],
    /// Per mount.
    pub disks: Vec<DiskUse>,
    /// Per interface.
    pub nics: Vec<NicUse>,
    /// Per GPU.
    pub gpus: Vec<GpuUse>,
    /// Seconds since boot.
    pub uptime_s: Option<u64>,
}

/// Use of one file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Mount point.
    pub mount: String,
    /// Bytes in use.
    pub used_bytes: Option<u64>,
    /// Size, bytes.
    pub total_bytes: Option<u64>,
    /// statfs does not return.
    pub stuck: bool,
}

/// Use of one interface since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NicUse {
    /// Name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: Option<u64>,
    /// Bytes sent.
    pub tx_bytes: Option<u64>,
}

/// How a GPU is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuState {
    /// Answers.
    #[default]
    Ok,
    /// GPU_IS_LOST.
    Lost,
    /// RESET_REQUIRED.
    ResetRequired,
    /// Another device fault.
    Faulty,
}

/// Use of one GPU. One whose state is not ok carries no values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuUse {
    /// NVML UUID.
    pub uuid: String,
    /// PCI address.
    pub pci_address: String,
    /// How it is.
    pub state: GpuState,
    /// Percent of time in which a kernel was resident.
    pub utilisation_percent: Option<u32>,
    /// Percent of time in which memory was read or written.
    pub memory_utilisation_percent: Option<u32>,
    /// Bytes in use.
    pub memory_used_bytes: Option<u64>,
    /// Bytes reserved by the driver; absent on old drivers.
    pub memory_reserved_bytes: Option<u64>,
    /// `memory_used_bytes` contains the reserved part.
    pub used_includes_reserved: bool,
    /// Degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Milliwatts.
    pub power_mw: Option<u32>,
    /// Milliwatts.
    pub power_limit_mw: Option<u32>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Raw bits of NVML.
    pub throttle_reasons: Option<u64>,
    /// Nanoseconds below the wanted clocks for want of power since the driver was loaded; not sent yet.
    pub power_violation_ns: Option<u64>,
    /// The list of its processes could be read.
    pub processes_known: bool,
}

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// Holds a GPU.
    GpuProcess,
    /// Named by a process matcher.
    Process,
}

/// Something that runs here and must not be killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Kind.
    pub kind: WorkloadKind,
    /// Process id.
    pub pid: u32,
    /// Field 22 of /proc/PID/stat: with the pid the identity, against reuse.
    pub start_ticks: u64,
    /// User name, or the uid when no name is known; empty when unknown.
    pub user: String,
    /// Command line, at most 256 bytes.
    pub command: String,
    /// UUIDs of the GPUs it holds.
    pub gpus: BTreeSet<String>,
    /// GPU memory over all its GPUs, bytes; `None` when the driver gives none.
    pub gpu_memory_bytes: Option<u64>,
    /// DROVER_REQUEST of its environment, if readable.
    pub request: Option<String>,
    /// DROVER_MOVABLE=1 in its environment: it says that it can move.
    pub movable: bool,
}

impl Workload {
    /// "pid:start_ticks", stable while it runs.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}:{}", self.pid, self.start_ticks)
    }
}

/// Something to know about the node until it is gone again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Machine-readable: gpu_probe_hung, gpu_probe_crashed, driver_absent, driver_lib_mismatch,
    /// driver_reload_needed, gpu_probe_failed, gpu_lost, gpu_reset_required, gpu_faulty, gpu_hidden, gpu_released,
    /// imds_degraded, metadata_disabled, mount_stuck, ...
    pub kind: String,
    /// What it is about: an operation, a GPU, a mount; empty for the host.
    pub subject: String,
    /// For people.
    pub message: String,
    /// Wall clock, milliseconds since 1970.
    pub since_unix_ms: u64,
    /// The node must not get new work while this holds.
    pub faulty: bool,
}
