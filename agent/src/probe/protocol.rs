//! What parent and child say to each other: one JSON object a line, sizes bounded on both sides.
//!
//! Used by `child` and `parent`. Both ends are always the same build, so nothing here is versioned.

use serde::{Deserialize, Serialize};

use crate::observation::GpuState;

/// Longest request, bytes.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;
/// Longest answer, bytes: 64 GPUs with 256 processes each fit.
pub const MAX_ANSWER_BYTES: usize = 2 << 20;
/// Processes of one GPU that are passed on; a longer list is cut and marked unreadable.
pub const MAX_PROCESSES: usize = 256;

/// Parent to child: one round over all GPUs. The end of the stream asks the child to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Comes back in the answer.
    pub round: u64,
    /// Also ask for the processes.
    pub processes: bool,
    /// Ask lost GPUs again.
    pub lost: bool,
}

/// Child to parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// NVML is there. Sent once.
    Ready(Ready),
    /// It is not; the child ends.
    Failed(InitFailure),
    /// One round.
    Round(Reading),
}

/// What a fresh NVML says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Driver version.
    pub driver_version: Option<String>,
}

/// Why NVML could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitFailure {
    /// The kind of failure.
    pub kind: InitFailureKind,
    /// The library's or loader's words.
    pub message: String,
}

/// Kinds of [`InitFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitFailureKind {
    /// No library could be opened.
    NoLibrary,
    /// The kernel module is not there, or has no GPU.
    NoDriver,
    /// Library and kernel module differ.
    Mismatch,
    /// NVML's return code.
    Code(u32),
}

/// Every GPU in one round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// From the request.
    pub round: u64,
    /// Processes were asked for.
    pub processes: bool,
    /// By index.
    pub gpus: Vec<GpuReading>,
    /// Indices that may not be opened.
    pub denied: Vec<u32>,
}

/// One GPU in one round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuReading {
    /// Index in this boot.
    pub index: u32,
    /// Who it is; of a lost GPU, who it was when this child last saw it.
    pub identity: Option<Identity>,
    /// How it is; when not ok there are no values.
    pub state: GpuState,
    /// What it measures.
    pub values: Values,
    /// Its processes; `None` when not asked for or not readable.
    pub processes: Option<Vec<ProcessEntry>>,
}

/// Who a GPU is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// NVML UUID.
    pub uuid: String,
    /// PCI address dddd:bb:dd.f, lower case.
    pub pci_address: String,
    /// Product name.
    pub name: String,
}

/// Values of a GPU; absent is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "as in observation::GpuUse")]
pub struct Values {
    pub utilisation_percent: Option<u32>,
    pub memory_utilisation_percent: Option<u32>,
    pub memory_total_bytes: Option<u64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_reserved_bytes: Option<u64>,
    pub used_includes_reserved: bool,
    pub temperature_c: Option<u32>,
    pub power_mw: Option<u32>,
    pub power_limit_mw: Option<u32>,
    pub sm_clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub throttle_reasons: Option<u64>,
    pub power_violation_ns: Option<u64>,
}

/// One entry of NVML's process lists, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEntry {
    /// Process id of the host.
    pub pid: u32,
    /// Bytes; `None` when NVML says it is not available.
    pub memory_bytes: Option<u64>,
}
