//! What a node measures, as the CLI shows it. Used by `nodes::view`; missing is not zero.

use super::parts::short;
use crate::cli::duration;
use crate::cli::output::{Page, text};
use drover_proto::v1;
use serde::Serialize;

/// Measured values of one moment.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct TelemetryView {
    pub at_unix_ms: u64,
    pub uptime_s: Option<u64>,
    pub cpu_permille: Option<u32>,
    pub load1_milli: Option<u32>,
    pub load5_milli: Option<u32>,
    pub load15_milli: Option<u32>,
    pub memory_used_bytes: Option<u64>,
    pub swap_used_bytes: Option<u64>,
    pub psi_cpu_percent_hundredths: Option<u32>,
    pub psi_memory_percent_hundredths: Option<u32>,
    pub psi_io_percent_hundredths: Option<u32>,
    pub disks: Vec<DiskUseView>,
    pub nics: Vec<NicUseView>,
    pub gpus: Vec<GpuUseView>,
}

/// Use of a file system.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct DiskUseView {
    pub mount: String,
    pub used_bytes: Option<u64>,
    pub total_bytes: Option<u64>,
    pub stuck: bool,
}

/// Use of an interface since boot.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct NicUseView {
    pub name: String,
    pub rx_bytes: Option<u64>,
    pub tx_bytes: Option<u64>,
}

/// Use of a GPU.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct GpuUseView {
    pub uuid: Option<String>,
    pub pci_address: Option<String>,
    pub state: Option<String>,
    pub utilisation_percent: Option<u32>,
    pub memory_utilisation_percent: Option<u32>,
    pub memory_used_bytes: Option<u64>,
    pub memory_reserved_bytes: Option<u64>,
    pub used_includes_reserved: bool,
    pub temperature_c: Option<u32>,
    pub power_mw: Option<u32>,
    pub power_limit_mw: Option<u32>,
    pub sm_clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub throttle_reasons_bits: Option<u64>,
    pub processes_known: bool,
}

impl From<v1::Telemetry> for TelemetryView {
    fn from(t: v1::Telemetry) -> Self {
        Self {
            at_unix_ms: t.at_unix_ms,
            uptime_s: t.uptime_s,
            cpu_permille: t.cpu_permille,
            load1_milli: t.load1_milli,
            load5_milli: t.load5_milli,
            load15_milli: t.load15_milli,
            memory_used_bytes: t.memory_used_bytes,
            swap_used_bytes: t.swap_used_bytes,
            psi_cpu_percent_hundredths: t.psi_cpu,
            psi_memory_percent_hundredths: t.psi_memory,
            psi_io_percent_hundredths: t.psi_io,
            disks: t
                .disks
                .into_iter()
                .map(|d| DiskUseView {
                    mount: d.mount,
                    used_bytes: d.used_bytes,
                    total_bytes: d.total_bytes,
                    stuck: d.stuck,
                })
                .collect(),
            nics: t
                .nics
                .into_iter()
                .map(|n| NicUseView {
                    name: n.name,
                    rx_bytes: n.rx_bytes,
                    tx_bytes: n.tx_bytes,
                })
                .collect(),
            gpus: t.gpus.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::GpuUse> for GpuUseView {
    fn from(g: v1::GpuUse) -> Self {
        Self {
            state: short(g.state().as_str_name(), "GPU_STATE_"),
            uuid: text(g.uuid),
            pci_address: text(g.pci_address),
            utilisation_percent: g.utilisation_percent,
            memory_utilisation_percent: g.memory_utilisation_percent,
            memory_used_bytes: g.memory_used_bytes,
            memory_reserved_bytes: g.memory_reserved_bytes,
            used_includes_reserved: g.used_includes_reserved,
            temperature_c: g.temperature_c,
            power_mw: g.power_mw,
            power_limit_mw: g.power_limit_mw,
            sm_clock_mhz: g.sm_clock_mhz,
            memory_clock_mhz: g.memory_clock_mhz,
            throttle_reasons_bits: g.throttle_reasons,
            processes_known: g.processes_known,
        }
    }
}

impl TelemetryView {
    /// CPU use in percent, rounded.
    #[must_use]
    pub fn cpu_percent(&self) -> Option<String> {
        self.cpu_permille.map(|p| ((p + 5) / 10).to_string())
    }

    /// Mean of the GPUs that tell their use, in percent; missing when none does.
    #[must_use]
    pub fn gpu_percent(&self) -> Option<String> {
        let told: Vec<u32> = self
            .gpus
            .iter()
            .filter_map(|g| g.utilisation_percent)
            .collect();
        let count = u32::try_from(told.len()).ok().filter(|n| *n > 0)?;
        let sum: u32 = told.iter().sum();
        Some(((sum + count / 2) / count).to_string())
    }

    pub(super) fn lines(&self, page: &mut Page) {
        page.line(
            "CPU use",
            self.cpu_permille.map(|p| format!("{}.{}%", p / 10, p % 10)),
        );
        page.line(
            "Load",
            self.load1_milli
                .map(|l| format!("{}.{:02}", l / 1_000, l % 1_000 / 10)),
        );
        page.line("GPU use", self.gpu_percent().map(|p| p + "%"));
        page.line(
            "Up for",
            self.uptime_s
                .map(|s| duration::span(s.saturating_mul(1_000))),
        );
    }
}
