//! What a node says of itself, as the CLI shows it. Used by `nodes::view`; missing is not zero.

use crate::cli::output::{Page, text};
use drover_proto::v1;
use serde::Serialize;

/// What the host says of itself.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct FactsView {
    pub machine_id: Option<String>,
    pub boot_id: Option<String>,
    pub hostname: Option<String>,
    pub cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub os: Option<String>,
    pub kernel: Option<String>,
    pub arch: Option<String>,
    pub agent_version: Option<String>,
    pub driver_version: Option<String>,
    pub pci_gpus: Option<u32>,
    pub gpus: Vec<GpuFactsView>,
    pub disks: Vec<DiskFactsView>,
    pub nics: Vec<NicFactsView>,
}

/// A GPU as it is built.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct GpuFactsView {
    pub uuid: String,
    pub name: String,
    pub memory_bytes: Option<u64>,
    pub pci_address: Option<String>,
    pub index: u32,
}

/// A local file system.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct DiskFactsView {
    pub mount: String,
    pub kind: Option<String>,
    pub total_bytes: Option<u64>,
}

/// A network interface.
#[derive(Debug, Clone, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are the documentation: they are those of the JSON, held by golden files"
)]
pub struct NicFactsView {
    pub name: String,
    pub mac: Option<String>,
    pub addresses: Vec<String>,
}

impl From<v1::Facts> for FactsView {
    fn from(f: v1::Facts) -> Self {
        Self {
            machine_id: text(f.machine_id),
            boot_id: text(f.boot_id),
            hostname: text(f.hostname),
            cpus: f.cpus,
            memory_bytes: f.memory_bytes,
            os: text(f.os),
            kernel: text(f.kernel),
            arch: text(f.arch),
            agent_version: text(f.agent_version),
            driver_version: f.driver_version,
            pci_gpus: f.pci_gpus,
            gpus: f
                .gpus
                .into_iter()
                .map(|g| GpuFactsView {
                    uuid: g.uuid,
                    name: g.name,
                    memory_bytes: g.memory_bytes,
                    pci_address: text(g.pci_address),
                    index: g.index,
                })
                .collect(),
            disks: f
                .disks
                .into_iter()
                .map(|d| DiskFactsView {
                    mount: d.mount,
                    kind: text(d.kind),
                    total_bytes: d.total_bytes,
                })
                .collect(),
            nics: f
                .nics
                .into_iter()
                .map(|n| NicFactsView {
                    name: n.name,
                    mac: text(n.mac),
                    addresses: n.addresses,
                })
                .collect(),
        }
    }
}

impl FactsView {
    pub(super) fn lines(&self, page: &mut Page) {
        page.line("CPUs", self.cpus);
        page.line("OS", self.os.as_ref());
        page.line("Kernel", self.kernel.as_ref());
        page.line("Agent", self.agent_version.as_ref());
        page.line("Driver", self.driver_version.as_ref());
    }
}
