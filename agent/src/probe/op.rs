//! The driver calls by name, and the black box: where the child writes which one it is about to make, so that the
//! parent can name a hang or a crash.
//!
//! The box is a small memory file that the child inherits as its standard error: one `pwrite` per call and no wake-up
//! of the parent. What the library prints lands behind the record and is kept for the report of a crash.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// Bytes of the record at the start of the box.
const RECORD: usize = 64;
/// Size of the box; sealed, so a library that prints for ever costs nothing.
const SIZE: u64 = 4096;

/// A call into NVML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the calls of nvml.h by their names")]
pub enum Op {
    Init,
    DriverVersion,
    DeviceCount,
    Handle,
    Uuid,
    PciInfo,
    Name,
    MemoryInfo,
    UtilizationRates,
    Temperature,
    PowerUsage,
    PowerLimit,
    SmClock,
    MemoryClock,
    ThrottleReasons,
    ViolationStatus,
    ComputeProcesses,
    GraphicsProcesses,
    MpsProcesses,
    Shutdown,
    /// None: waits for a request.
    Idle,
}

impl Op {
    /// Its name in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::DriverVersion => "driver_version",
            Self::DeviceCount => "device_count",
            Self::Handle => "handle",
            Self::Uuid => "uuid",
            Self::PciInfo => "pci_info",
            Self::Name => "name",
            Self::MemoryInfo => "memory_info",
            Self::UtilizationRates => "utilization_rates",
            Self::Temperature => "temperature",
            Self::PowerUsage => "power_usage",
            Self::PowerLimit => "power_limit",
            Self::SmClock => "sm_clock",
            Self::MemoryClock => "memory_clock",
            Self::ThrottleReasons => "throttle_reasons",
            Self::ViolationStatus => "violation_status",
            Self::ComputeProcesses => "compute_processes",
            Self::GraphicsProcesses => "graphics_processes",
            Self::MpsProcesses => "mps_processes",
            Self::Shutdown => "shutdown",
            Self::Idle => "idle",
        }
    }
}

/// The function of nvml.h that an operation calls, by the operation's name; a name that is unknown stays.
#[must_use]
pub fn function(op: &str) -> &str {
    FUNCTIONS
        .iter()
        .find(|(known, _)| known.as_str() == op)
        .map_or(op, |(_, function)| function)
}

/// What people and the driver's own documents call them.
const FUNCTIONS: [(Op, &str); 20] = [
    (Op::Init, "nvmlInit_v2"),
    (Op::DriverVersion, "nvmlSystemGetDriverVersion"),
    (Op::DeviceCount, "nvmlDeviceGetCount_v2"),
    (Op::Handle, "nvmlDeviceGetHandleByIndex_v2"),
    (Op::Uuid, "nvmlDeviceGetUUID"),
    (Op::PciInfo, "nvmlDeviceGetPciInfo_v3"),
    (Op::Name, "nvmlDeviceGetName"),
    (Op::MemoryInfo, "nvmlDeviceGetMemoryInfo"),
    (Op::UtilizationRates, "nvmlDeviceGetUtilizationRates"),
    (Op::Temperature, "nvmlDeviceGetTemperature"),
    (Op::PowerUsage, "nvmlDeviceGetPowerUsage"),
    (Op::PowerLimit, "nvmlDeviceGetEnforcedPowerLimit"),
    (Op::SmClock, "nvmlDeviceGetClockInfo"),
    (Op::MemoryClock, "nvmlDeviceGetClockInfo"),
    (
        Op::ThrottleReasons,
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ),
    (Op::ViolationStatus, "nvmlDeviceGetViolationStatus"),
    (Op::ComputeProcesses, "nvmlDeviceGetComputeRunningProcesses"),
    (
        Op::GraphicsProcesses,
        "nvmlDeviceGetGraphicsRunningProcesses",
    ),
    (Op::MpsProcesses, "nvmlDeviceGetMPSComputeRunningProcesses"),
    (Op::Shutdown, "nvmlShutdown"),
];

/// The child's end.
#[derive(Debug)]
pub struct BlackBox {
    file: Option<File>,
    calls: u64,
}

impl BlackBox {
    /// The box behind standard error; writes nowhere when that is no memory file (started by hand).
    #[must_use]
    pub fn inherited() -> Self {
        let file = io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .ok()
            .filter(|fd| fcntl(fd, FcntlArg::F_GET_SEALS).is_ok_and(|seals| seals != 0))
            .map(File::from);
        Self { file, calls: 0 }
    }

    /// The call is about to be made.
    pub fn mark(&mut self, op: Op, gpu: Option<u32>) {
        self.calls += 1;
        if let Some(file) = &self.file {
            let mut record = [b' '; RECORD];
            let text = match gpu {
                Some(gpu) => format!("{} {} {gpu}", self.calls, op.as_str()),
                None => format!("{} {}", self.calls, op.as_str()),
            };
            let length = text.len().min(RECORD - 1);
            record[..length].copy_from_slice(&text.as_bytes()[..length]);
            record[RECORD - 1] = b'\n';
            // A box that cannot be written costs only the name of a hang.
            let _lost = file.write_at(&record, 0);
        }
    }
}

/// What the box says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    /// Number of the call.
    pub calls: u64,
    /// Its name; empty before the first.
    pub op: String,
    /// Index of the GPU it is about.
    pub gpu: Option<u32>,
}

/// The parent's end.
#[derive(Debug)]
pub struct BoxReader(File);

/// Makes a box: the parent's end, and the file to give to the child as standard error.
///
/// # Errors
/// When the kernel gives no memory file or descriptor.
pub fn black_box() -> io::Result<(BoxReader, File)> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(c"drover-gpu-probe", flags)?);
    file.set_len(SIZE)?;
    let seals = SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    let mut child = file.try_clone()?;
    // Shared offset: what the library prints goes behind the record.
    io::Seek::seek(&mut child, io::SeekFrom::Start(RECORD as u64))?;
    Ok((BoxReader(file), child))
}

impl BoxReader {
    /// The call that is being made, or was at the end.
    #[must_use]
    pub fn mark(&self) -> Mark {
        let mut record = [0; RECORD];
        let length = self.0.read_at(&mut record, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&record[..length]);
        let mut words = text
            .split(|c: char| c.is_whitespace() || c == '\0')
            .filter(|word| !word.is_empty());
        let Some(calls) = words.next().and_then(|word| word.parse().ok()) else {
            return Mark::default();
        };
        Mark {
            calls,
            op: words.next().unwrap_or_default().to_owned(),
            gpu: words.next().and_then(|word| word.parse().ok()),
        }
    }

    /// The first words that the library printed, one line, at most 200 bytes.
    #[must_use]
    pub fn printed(&self) -> String {
        let mut text = [0; 200];
        let length = self.0.read_at(&mut text, RECORD as u64).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        text.trim_matches(['\0', '\u{fffd}'])
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_reads_the_last_mark_and_what_was_printed() {
        let (reader, child) = black_box().unwrap();
        assert_eq!(reader.mark(), Mark::default());
        let mut writer = BlackBox {
            file: Some(child.try_clone().unwrap()),
            calls: 0,
        };
        writer.mark(Op::Init, None);
        assert_eq!(reader.mark().op, "init");
        writer.mark(Op::PowerUsage, Some(11));
        io::Write::write_all(&mut &child, b"NVRM: sorry\n").unwrap();
        let mark = reader.mark();
        assert_eq!(
            (mark.calls, mark.op.as_str(), mark.gpu),
            (2, "power_usage", Some(11))
        );
        assert_eq!(reader.printed(), "NVRM: sorry");
    }

    #[test]
    fn a_library_that_prints_for_ever_does_not_grow_the_box() {
        let (reader, child) = black_box().unwrap();
        let mut child = &child;
        let mut failed = false;
        for _ in 0..100 {
            failed |= io::Write::write_all(&mut child, &[b'x'; 1000]).is_err();
        }
        assert!(failed);
        assert_eq!(reader.0.metadata().unwrap().len(), SIZE);
    }
}
