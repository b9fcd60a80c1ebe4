//! Named troubles: every finding as an enum, rendered here and nowhere else, each with when it began.
//!
//! Used by the collector's task. Pure.

use std::collections::BTreeMap;

use crate::clock;
use crate::imds::ImdsError;
use crate::observation::{Condition, GpuState};
use crate::probe::op::function;
use crate::probe::protocol::{InitFailure, InitFailureKind};
use crate::probe::view::Trouble;

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The probe has a trouble; with what is known of the driver besides.
    Probe(Trouble, Driver),
    /// The loaded module and the library on disk differ, while the old handle still works.
    ReloadNeeded(Driver),
    /// A GPU is not ok.
    Gpu {
        /// UUID.
        uuid: String,
        /// PCI address.
        pci_address: String,
        /// How it is.
        state: GpuState,
    },
    /// A GPU that may not be opened.
    Hidden(u32),
    /// The GPUs are let go on request.
    Released {
        /// Wall clock, milliseconds since 1970.
        until_unix_ms: u64,
    },
    /// Instance metadata cannot be read.
    Imds(ImdsError),
    /// statfs of this mount does not return.
    MountStuck(String),
}

/// What is known of the driver without NVML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    /// Version of the loaded module.
    pub module: Option<String>,
    /// Version of the library on disk.
    pub library: Option<String>,
    /// NVIDIA GPUs on the bus.
    pub pci_gpus: Option<u32>,
}

impl Driver {
    fn versions(&self) -> String {
        let text =
            |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
        format!(
            "module {}, library {}",
            text(&self.module),
            text(&self.library)
        )
    }
}

/// (kind, subject, message, faulty); `None` for what is no trouble on this host.
type Rendered = Option<(&'static str, String, String, bool)>;

fn render(finding: &Finding) -> Rendered {
    let some = |kind, subject: &str, message: String, faulty| {
        Some((kind, subject.to_owned(), message, faulty))
    };
    match finding {
        Finding::Probe(trouble, driver) => render_probe(trouble, driver),
        Finding::ReloadNeeded(driver) => some(
            "driver_reload_needed",
            "",
            format!("{}: reload the driver or reboot", driver.versions()),
            true,
        ),
        Finding::Gpu {
            uuid,
            pci_address,
            state,
        } => match state {
            GpuState::Ok => None,
            GpuState::Lost => some(
                "gpu_lost",
                uuid,
                format!("the GPU at {pci_address} is lost"),
                true,
            ),
            GpuState::ResetRequired => some(
                "gpu_reset_required",
                uuid,
                format!("the GPU at {pci_address} needs a reset"),
                true,
            ),
            GpuState::Faulty => some(
                "gpu_faulty",
                uuid,
                format!("the GPU at {pci_address} is faulty"),
                true,
            ),
        },
        Finding::Hidden(index) => some(
            "gpu_hidden",
            &index.to_string(),
            format!("no permission to open GPU {index}"),
            false,
        ),
        Finding::Released { until_unix_ms } => some(
            "gpu_released",
            "",
            format!("the GPUs are let go until {}", clock::text(*until_unix_ms)),
            true,
        ),
        Finding::Imds(error @ ImdsError::Disabled(_)) => {
            some("metadata_disabled", "", error.to_string(), false)
        }
        Finding::Imds(error) => some("imds_degraded", "", error.to_string(), false),
        Finding::MountStuck(mount) => some(
            "mount_stuck",
            mount,
            format!("statfs of {mount} does not return"),
            false,
        ),
    }
}

fn render_probe(trouble: &Trouble, driver: &Driver) -> Rendered {
    let some =
        |kind, subject: &str, message: String| Some((kind, subject.to_owned(), message, true));
    match trouble {
        Trouble::Hung { op, gpu } => {
            let about = gpu.map(|gpu| format!(" of GPU {gpu}")).unwrap_or_default();
            some(
                "gpu_probe_hung",
                op,
                format!("gpu probe hung in {}{about}", function(op)),
            )
        }
        Trouble::Crashed { op, how } => some(
            "gpu_probe_crashed",
            op,
            format!("gpu probe died in {}: {how}", function(op)),
        ),
        Trouble::Broken(error) => some("gpu_probe_failed", "", error.clone()),
        Trouble::Init(InitFailure { kind, message }) => match kind {
            InitFailureKind::NoLibrary | InitFailureKind::NoDriver => {
                let gpus = driver.pci_gpus.filter(|gpus| *gpus > 0)?;
                let plural = if gpus == 1 { "" } else { "s" };
                some(
                    "driver_absent",
                    "",
                    format!("{gpus} NVIDIA GPU{plural} on the PCI bus, no driver: {message}"),
                )
            }
            InitFailureKind::Mismatch => some("driver_lib_mismatch", "", driver.versions()),
            InitFailureKind::Code(code) => some(
                "gpu_probe_failed",
                &code.to_string(),
                format!("NVML cannot be used: {message} (code {code})"),
            ),
        },
    }
}

/// Since when each condition holds.
#[derive(Debug, Default)]
pub struct Book {
    since: BTreeMap<(&'static str, String), u64>,
}

impl Book {
    /// The conditions of now. One that goes on keeps its beginning; one that begins or ends is logged once.
    pub fn settle(&mut self, findings: &[Finding], now_unix_ms: u64) -> Vec<Condition> {
        let mut since = BTreeMap::new();
        let mut conditions = Vec::new();
        for (kind, subject, message, faulty) in findings.iter().filter_map(render) {
            let key = (kind, subject.clone());
            let began = self.since.get(&key).copied();
            if began.is_none() {
                tracing::warn!(kind, subject, problem = message, "condition begins");
            }
            let began = began.unwrap_or(now_unix_ms);
            if since.insert(key, began).is_some() {
                continue;
            }
            conditions.push(Condition {
                kind: kind.to_owned(),
                subject,
                message,
                since_unix_ms: began,
                faulty,
            });
        }
        for (kind, subject) in self.since.keys().filter(|key| !since.contains_key(*key)) {
            tracing::info!(kind, subject, "condition ends");
        }
        self.since = since;
        conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(kind: InitFailureKind) -> Trouble {
        Trouble::Init(InitFailure {
            kind,
            message: "no".to_owned(),
        })
    }

    fn driver(pci_gpus: Option<u32>) -> Driver {
        Driver {
            module: Some("535.183.01".to_owned()),
            library: Some("550.90.07".to_owned()),
            pci_gpus,
        }
    }

    #[test]
    fn troubles_have_names() {
        let name = |trouble, gpus| {
            render_probe(&trouble, &driver(gpus)).map(|(kind, subject, ..)| (kind, subject))
        };
        let named = |kind, subject: &str| Some((kind, subject.to_owned()));
        let hung = Trouble::Hung {
            op: "init".to_owned(),
            gpu: None,
        };
        assert_eq!(name(hung, None), named("gpu_probe_hung", "init"));
        assert_eq!(name(init(InitFailureKind::NoLibrary), Some(0)), None);
        assert_eq!(name(init(InitFailureKind::NoLibrary), None), None);
        assert_eq!(
            name(init(InitFailureKind::NoDriver), Some(2)),
            named("driver_absent", "")
        );
        assert_eq!(
            name(init(InitFailureKind::Mismatch), Some(0)),
            named("driver_lib_mismatch", "")
        );
        assert_eq!(
            name(init(InitFailureKind::Code(999)), None),
            named("gpu_probe_failed", "999")
        );
        let said = |trouble, gpus| render_probe(&trouble, &driver(gpus)).unwrap().2;
        assert_eq!(
            said(init(InitFailureKind::NoLibrary), Some(2)),
            "2 NVIDIA GPUs on the PCI bus, no driver: no"
        );
        let hung = |op: &str, gpu| Trouble::Hung {
            op: op.to_owned(),
            gpu,
        };
        assert_eq!(
            said(hung("init", None), None),
            "gpu probe hung in nvmlInit_v2"
        );
        assert_eq!(
            said(hung("power_usage", Some(1)), None),
            "gpu probe hung in nvmlDeviceGetPowerUsage of GPU 1"
        );
        let text = render(&Finding::ReloadNeeded(driver(None))).unwrap().2;
        assert!(
            text.contains("535.183.01") && text.contains("550.90.07"),
            "{text}"
        );
    }

    #[test]
    fn a_condition_keeps_its_beginning_and_may_come_back() {
        let mut book = Book::default();
        let stuck = [Finding::MountStuck("/home".to_owned())];
        let since = |conditions: Vec<Condition>| {
            conditions
                .iter()
                .map(|c| c.since_unix_ms)
                .collect::<Vec<_>>()
        };
        assert_eq!(since(book.settle(&stuck, 10)), [10]);
        assert_eq!(since(book.settle(&stuck, 20)), [10]);
        assert_eq!(since(book.settle(&[], 30)), [0; 0]);
        assert_eq!(since(book.settle(&stuck, 40)), [40]);
    }
}
