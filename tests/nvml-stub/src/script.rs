//! The script file: its shape, and loading it again when it changes. Read by `world` on every call.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::profile::Profile;

/// One scripted outcome of one call.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// A plain number: the value that the call gives.
    Value(u64),
    /// `"hang"`, `"crash"`, or for a call that gives text, the text.
    Word(String),
    /// Anything else.
    Full(FullOutcome),
}

/// `{"code": 15}`, `{"value": 3}`, `{"delay_ms": 100}`, `{"gpu": 50, "memory": 10}`, `{"total": .., "used": ..}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FullOutcome {
    pub code: Option<u32>,
    pub value: Option<u64>,
    pub text: Option<String>,
    pub delay_ms: Option<u64>,
    pub gpu: Option<u64>,
    pub memory: Option<u64>,
    pub total: Option<u64>,
    pub used: Option<u64>,
    pub free: Option<u64>,
    pub reserved: Option<u64>,
}

/// Outcomes by the name of the call (see README.md).
pub type Outcomes = BTreeMap<String, Outcome>;

/// One entry of `gpus`; stands for `count` GPUs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub profile: Profile,
    #[serde(default = "one")]
    pub count: u32,
    pub uuid: Option<String>,
    pub pci: Option<String>,
    pub name: Option<String>,
    /// Total memory, bytes.
    pub memory: Option<u64>,
    /// Used memory, bytes, instead of the sum over its processes.
    pub used: Option<u64>,
    /// Reserved memory, bytes.
    pub reserved: Option<u64>,
    /// Percent, instead of 97 with and 0 without a live process.
    pub utilisation: Option<u32>,
    #[serde(default)]
    pub calls: Outcomes,
}

fn one() -> u32 {
    1
}

/// One entry of `processes`: given as it is, alive or not.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedProcess {
    pub gpu: u32,
    pub pid: u32,
    /// Bytes; absent is NVML's "not available".
    pub memory: Option<u64>,
    #[serde(rename = "type", default)]
    pub kind: ProcessKind,
}

/// Which list of NVML a process is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    #[default]
    Compute,
    Graphics,
    Mps,
}

/// The whole script.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    pub driver_version: Option<String>,
    pub nvml_version: Option<String>,
    pub cuda_version: Option<i32>,
    pub init: Option<Outcome>,
    pub gpus: Vec<Gpu>,
    pub calls: Outcomes,
    pub processes: Vec<ScriptedProcess>,
    pub processes_dir: Option<PathBuf>,
    pub devices_dir: Option<PathBuf>,
    pub counters: Option<PathBuf>,
}

/// One GPU of the script, spelled out.
#[derive(Debug, Clone)]
pub struct Card {
    pub index: u32,
    pub uuid: String,
    pub pci: Pci,
    pub spec: Gpu,
}

/// A PCI address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pci {
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
}

impl Pci {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split([':', '.']);
        let mut next = || u32::from_str_radix(parts.next()?, 16).ok();
        Some(Self {
            domain: next()?,
            bus: next()?,
            device: next()?,
        })
    }
}

/// A script with its GPUs spelled out.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub script: Script,
    pub cards: Vec<Card>,
}

impl Loaded {
    fn new(script: Script) -> Self {
        let mut cards = Vec::new();
        for spec in &script.gpus {
            for nth in 0..spec.count {
                let index = cards.len() as u32;
                let single = spec.count == 1;
                let uuid = match &spec.uuid {
                    Some(uuid) if single => uuid.clone(),
                    Some(uuid) => format!("{uuid}-{nth}"),
                    None => format!("GPU-00000000-0000-0000-0000-{index:012}"),
                };
                let pci = spec.pci.as_deref().and_then(Pci::parse).unwrap_or(Pci {
                    domain: 0,
                    bus: 0x10 + index,
                    device: 0,
                });
                let pci = Pci {
                    bus: pci.bus + if spec.pci.is_some() { nth } else { 0 },
                    ..pci
                };
                cards.push(Card {
                    index,
                    uuid,
                    pci,
                    spec: spec.clone(),
                });
            }
        }
        Self { script, cards }
    }
}

/// What tells one version of a file from the next.
type Stamp = (u64, u64, i64, i64);

/// The file, and the last version of it that could be read.
#[derive(Debug, Default)]
pub struct Source {
    stamp: Option<Stamp>,
    last: Option<Arc<Loaded>>,
}

impl Source {
    /// The script as it is now. A file that is gone or was never readable gives `None`; one that became broken keeps
    /// its last good version.
    pub fn current(&mut self, path: &Path) -> Option<Arc<Loaded>> {
        let Ok(meta) = fs::metadata(path) else {
            *self = Self::default();
            return None;
        };
        let stamp = (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
        if self.stamp != Some(stamp) {
            match fs::read(path).map(|text| serde_json::from_slice::<Script>(&text)) {
                Ok(Ok(script)) => {
                    self.last = Some(Arc::new(Loaded::new(script)));
                    self.stamp = Some(stamp);
                }
                // Perhaps half written: the next call looks again.
                Ok(Err(error)) => eprintln!("drover-nvml-stub: {}: {error}", path.display()),
                Err(error) => eprintln!("drover-nvml-stub: {}: {error}", path.display()),
            }
        }
        self.last.clone()
    }
}
