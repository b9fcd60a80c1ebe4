//! Calls about one GPU.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};
use std::sync::Arc;

use crate::abi::{
    Device, INSUFFICIENT_SIZE, INVALID_ARGUMENT, MemoryV1, MemoryV2, NOT_AVAILABLE, PciInfo,
    ProcessInfo, SUCCESS, Utilization, ViolationTime, put, put_text,
};
use crate::calls::{self, Scripted};
use crate::script::{Card, Loaded, ProcessKind};
use crate::world::{self, Process};

const MIB: u64 = 1 << 20;

fn processes_of(script: &Arc<Loaded>, card: &Card) -> Vec<Process> {
    world::with(|world| world.processes(script))
        .iter()
        .filter(|process| process.gpu == card.index)
        .copied()
        .collect()
}

fn busy(script: &Arc<Loaded>, card: &Card) -> bool {
    match card.spec.utilisation {
        Some(percent) => percent > 0,
        None => !processes_of(script, card).is_empty(),
    }
}

/// (total, used without reserved, reserved)
fn memory(script: &Arc<Loaded>, card: &Card, scripted: &Scripted) -> (u64, u64, u64) {
    let figures = card.spec.profile.figures();
    let total = scripted
        .total
        .or(card.spec.memory)
        .unwrap_or(figures.memory_mib * MIB);
    let reserved = scripted
        .reserved
        .or(card.spec.reserved)
        .unwrap_or(figures.reserved_mib * MIB);
    let held = || {
        processes_of(script, card)
            .iter()
            .filter_map(|process| process.memory)
            .filter(|bytes| *bytes <= total)
            .sum::<u64>()
            .min(total - reserved.min(total))
    };
    let used = scripted.used.or(card.spec.used).unwrap_or_else(held);
    (total, used, reserved)
}

macro_rules! number {
    ($symbol:ident, $call:literal, |$script:ident, $card:ident| $value:expr) => {
        /// See nvml.h.
        ///
        /// # Safety
        /// As the header says of the pointer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol(device: Device, to: *mut c_uint) -> u32 {
            match calls::device($call, device) {
                Ok(($script, $card, scripted)) => {
                    let value: u64 = scripted.value.unwrap_or_else(|| $value);
                    // SAFETY: the caller's pointer.
                    unsafe { put(to, value as c_uint) }
                }
                Err(code) => code,
            }
        }
    };
}

number!(nvmlDeviceGetPowerUsage, "PowerUsage", |script, card| {
    let figures = card.spec.profile.figures();
    if busy(&script, &card) {
        figures.power_limit_mw * 9 / 10
    } else {
        figures.idle_power_mw
    }
});
number!(
    nvmlDeviceGetEnforcedPowerLimit,
    "EnforcedPowerLimit",
    |_script, card| { card.spec.profile.figures().power_limit_mw }
);
number!(nvmlDeviceGetMinorNumber, "MinorNumber", |_script, card| {
    u64::from(card.index)
});

macro_rules! number_of {
    ($symbol:ident, $call:literal, |$script:ident, $card:ident, $which:ident| $value:expr) => {
        /// See nvml.h.
        ///
        /// # Safety
        /// As the header says of the pointer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol(device: Device, $which: c_uint, to: *mut c_uint) -> u32 {
            match calls::device($call, device) {
                Ok(($script, $card, scripted)) => {
                    let value: u64 = scripted.value.unwrap_or_else(|| $value);
                    // SAFETY: the caller's pointer.
                    unsafe { put(to, value as c_uint) }
                }
                Err(code) => code,
            }
        }
    };
}

number_of!(
    nvmlDeviceGetTemperature,
    "Temperature",
    |script, card, _sensor| { if busy(&script, &card) { 78 } else { 31 } }
);
number_of!(nvmlDeviceGetClockInfo, "ClockInfo", |script, card, kind| {
    let figures = card.spec.profile.figures();
    // NVML_CLOCK_MEM is 2.
    match (kind, busy(&script, &card)) {
        (2, _) => figures.memory_clock_mhz,
        (_, true) => figures.busy_clock_mhz,
        (_, false) => figures.idle_clock_mhz,
    }
});

macro_rules! text {
    ($symbol:ident, $call:literal, |$card:ident| $value:expr) => {
        /// See nvml.h.
        ///
        /// # Safety
        /// As the header says of the buffer.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol(device: Device, to: *mut c_char, length: c_uint) -> u32 {
            match calls::device($call, device) {
                Ok((_, $card, scripted)) => {
                    let text: String = scripted.text.clone().unwrap_or_else(|| $value);
                    // SAFETY: the caller's buffer.
                    unsafe { put_text(to, length as usize, &text) }
                }
                Err(code) => code,
            }
        }
    };
}

text!(nvmlDeviceGetUUID, "UUID", |card| card.uuid.clone());
text!(nvmlDeviceGetName, "Name", |card| card
    .spec
    .name
    .clone()
    .unwrap_or_else(|| card
        .spec
        .profile
        .figures()
        .name
        .to_owned()));

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: Device, to: *mut PciInfo) -> u32 {
    let card = match calls::device("PciInfo_v3", device) {
        Ok((_, card, _)) => card,
        Err(code) => return code,
    };
    let pci = card.pci;
    let mut info = PciInfo {
        bus_id_legacy: [0; 16],
        domain: pci.domain,
        bus: pci.bus,
        device: pci.device,
        pci_device_id: 0x1B00_10DE,
        pci_subsystem_id: 0x119A_10DE,
        bus_id: [0; 32],
    };
    let legacy = format!("{:04X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device);
    let long = format!("{:08X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device);
    // SAFETY: both buffers are ours and longer than the texts.
    unsafe {
        put_text(info.bus_id_legacy.as_mut_ptr(), 16, &legacy);
        put_text(info.bus_id.as_mut_ptr(), 32, &long);
        put(to, info)
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: Device,
    to: *mut Utilization,
) -> u32 {
    match calls::device("UtilizationRates", device) {
        Ok((script, card, scripted)) => {
            let usual = card
                .spec
                .utilisation
                .map_or_else(|| if busy(&script, &card) { 97 } else { 0 }, u64::from);
            let gpu = scripted.gpu.or(scripted.value).unwrap_or(usual);
            let memory = scripted.memory.unwrap_or(gpu / 2);
            // SAFETY: the caller's pointer.
            unsafe {
                put(
                    to,
                    Utilization {
                        gpu: gpu as c_uint,
                        memory: memory as c_uint,
                    },
                )
            }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: Device, to: *mut MemoryV1) -> u32 {
    match calls::device("MemoryInfo", device) {
        Ok((script, card, scripted)) => {
            let (total, used, reserved) = memory(&script, &card, &scripted);
            // Version 1 counts the reserved part as used.
            let used = if scripted.used.is_some() {
                used
            } else {
                used + reserved
            };
            let free = scripted.free.unwrap_or(total.saturating_sub(used));
            // SAFETY: the caller's pointer.
            unsafe { put(to, MemoryV1 { total, free, used }) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, to: *mut MemoryV2) -> u32 {
    match calls::device("MemoryInfo_v2", device) {
        Ok((script, card, scripted)) => {
            let (total, used, reserved) = memory(&script, &card, &scripted);
            let free = scripted
                .free
                .unwrap_or(total.saturating_sub(used + reserved));
            if to.is_null() {
                return INVALID_ARGUMENT;
            }
            // SAFETY: the caller's pointer, with its version set.
            unsafe {
                let version = (*to).version;
                put(
                    to,
                    MemoryV2 {
                        version,
                        total,
                        reserved,
                        free,
                        used,
                    },
                )
            }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: Device,
    to: *mut c_ulonglong,
) -> u32 {
    match calls::device("CurrentClocksThrottleReasons", device) {
        Ok((script, card, scripted)) => {
            let value = scripted
                .value
                .unwrap_or_else(|| u64::from(!busy(&script, &card)));
            // SAFETY: the caller's pointer.
            unsafe { put(to, value) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetViolationStatus(
    device: Device,
    _policy: c_int,
    to: *mut ViolationTime,
) -> u32 {
    match calls::device("ViolationStatus", device) {
        Ok((_, _, scripted)) => {
            let time = ViolationTime {
                reference_time: 1_000_000,
                violation_time: scripted.value.unwrap_or(0),
            };
            // SAFETY: the caller's pointer.
            unsafe { put(to, time) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(
    device: Device,
    to: *mut c_ulonglong,
) -> u32 {
    match calls::device("TotalEnergyConsumption", device) {
        // SAFETY: the caller's pointer.
        Ok((_, _, scripted)) => unsafe { put(to, scripted.value.unwrap_or(1_000)) },
        Err(code) => code,
    }
}

unsafe fn list(
    call: &str,
    kind: ProcessKind,
    device: Device,
    count: *mut c_uint,
    to: *mut ProcessInfo,
) -> u32 {
    let (script, card) = match calls::device(call, device) {
        Ok((script, card, _)) => (script, card),
        Err(code) => return code,
    };
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    let mut found = processes_of(&script, &card);
    found.retain(|process| process.kind == kind);
    // SAFETY: not null, readable and writable by the caller's word.
    let room = unsafe { *count } as usize;
    // SAFETY: as above.
    unsafe { *count = found.len() as c_uint };
    if found.is_empty() {
        return SUCCESS;
    }
    if room < found.len() || to.is_null() {
        return INSUFFICIENT_SIZE;
    }
    for (at, process) in found.iter().enumerate() {
        let info = ProcessInfo {
            pid: process.pid,
            used_gpu_memory: process.memory.unwrap_or(NOT_AVAILABLE),
            gpu_instance_id: c_uint::MAX,
            compute_instance_id: c_uint::MAX,
        };
        // SAFETY: the caller gave `room` entries and at < room.
        unsafe { to.add(at).write(info) };
    }
    SUCCESS
}

macro_rules! processes {
    ($symbol:ident, $call:literal, $kind:ident) => {
        /// See nvml.h.
        ///
        /// # Safety
        /// As the header says of the pointers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol(
            device: Device,
            count: *mut c_uint,
            to: *mut ProcessInfo,
        ) -> u32 {
            // SAFETY: the caller's pointers, passed on.
            unsafe { list($call, ProcessKind::$kind, device, count, to) }
        }
    };
}

processes!(
    nvmlDeviceGetComputeRunningProcesses_v3,
    "ComputeRunningProcesses_v3",
    Compute
);
processes!(
    nvmlDeviceGetComputeRunningProcesses_v2,
    "ComputeRunningProcesses_v2",
    Compute
);
processes!(
    nvmlDeviceGetGraphicsRunningProcesses_v3,
    "GraphicsRunningProcesses_v3",
    Graphics
);
processes!(
    nvmlDeviceGetGraphicsRunningProcesses_v2,
    "GraphicsRunningProcesses_v2",
    Graphics
);
processes!(
    nvmlDeviceGetMPSComputeRunningProcesses_v3,
    "MPSComputeRunningProcesses_v3",
    Mps
);
