//! One round over all GPUs: a result per GPU, so that a bad one hides no other. Used by `child`.
//!
//! What a GPU does not support is asked once per child, that is per (UUID, driver): a new child probes again.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper::enum_wrappers::device::{Clock, PerformancePolicy, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::fault::{self, Fault};
use crate::observation::GpuState;
use crate::probe::op::{BlackBox, Op};
use crate::probe::protocol::{
    GpuReading, Identity, MAX_PROCESSES, ProcessEntry, Reading, Request, Values,
};

/// What this child has learnt of the GPUs.
#[derive(Debug, Default)]
pub struct Devices {
    slots: BTreeMap<u32, Slot>,
    /// By UUID.
    unsupported: BTreeMap<String, BTreeSet<(Op, u8)>>,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    identity: Option<Identity>,
    state: GpuState,
}

impl Devices {
    /// Fills `reading`. A call that hangs is named by the black box.
    pub fn read(
        &mut self,
        nvml: &Nvml,
        black_box: &mut BlackBox,
        request: &Request,
        reading: &mut Reading,
    ) {
        black_box.mark(Op::DeviceCount, None);
        let seen = self.slots.keys().next_back().map_or(0, |last| last + 1);
        // A GPU that was seen is asked for even when the driver does not count it any more.
        let count = nvml.device_count().unwrap_or(0).max(seen);
        for index in 0..count {
            let slot = self.slots.entry(index).or_default().clone();
            if slot.state != GpuState::Ok && !request.lost {
                reading.gpus.push(bad(index, &slot));
                continue;
            }
            match self.one(nvml, black_box, index, request.processes) {
                Ok(gpu) => {
                    self.slots.insert(
                        index,
                        Slot {
                            identity: gpu.identity.clone(),
                            state: GpuState::Ok,
                        },
                    );
                    reading.gpus.push(gpu);
                }
                Err(Fault::Denied) => reading.denied.push(index),
                Err(Fault::Nothing) if slot.identity.is_none() => {
                    self.slots.remove(&index);
                }
                Err(fault) => {
                    let state = match fault {
                        Fault::Device(state) => state,
                        Fault::Nothing => GpuState::Lost,
                        _ => GpuState::Faulty,
                    };
                    let slot = Slot { state, ..slot };
                    reading.gpus.push(bad(index, &slot));
                    self.slots.insert(index, slot);
                }
            }
        }
    }

    fn one(
        &mut self,
        nvml: &Nvml,
        black_box: &mut BlackBox,
        index: u32,
        processes: bool,
    ) -> Result<GpuReading, Fault> {
        black_box.mark(Op::Handle, Some(index));
        let device = nvml
            .device_by_index(index)
            .map_err(|error| fault::of_call(&error))?;
        black_box.mark(Op::Uuid, Some(index));
        let uuid = device.uuid().map_err(|error| fault::of_call(&error))?;
        let known = self
            .slots
            .get(&index)
            .and_then(|slot| slot.identity.clone());
        let unsupported = self.unsupported.entry(uuid.clone()).or_default();
        let mut asker = Asker {
            black_box,
            index,
            unsupported,
        };
        let identity = match known {
            Some(known) if known.uuid == uuid => known,
            _ => asker.identity(&device, uuid)?,
        };
        let values = asker.values(&device)?;
        let processes = if processes {
            asker.processes(&device)?
        } else {
            None
        };
        Ok(GpuReading {
            index,
            identity: Some(identity),
            state: GpuState::Ok,
            values,
            processes,
        })
    }
}

fn bad(index: u32, slot: &Slot) -> GpuReading {
    GpuReading {
        index,
        identity: slot.identity.clone(),
        state: slot.state,
        ..GpuReading::default()
    }
}

/// Asks one GPU, remembers what it does not support, gives up as a whole on a device fault.
struct Asker<'a> {
    black_box: &'a mut BlackBox,
    index: u32,
    unsupported: &'a mut BTreeSet<(Op, u8)>,
}

impl Asker<'_> {
    fn ask<T>(
        &mut self,
        op: Op,
        call: impl FnOnce() -> Result<T, NvmlError>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.ask_version(op, 0, call)?.ok())
    }

    /// `Ok(Err(fault))` when the value is absent, `Err` when the GPU is bad.
    fn ask_version<T>(
        &mut self,
        op: Op,
        version: u8,
        call: impl FnOnce() -> Result<T, NvmlError>,
    ) -> Result<Result<T, Fault>, Fault> {
        if self.unsupported.contains(&(op, version)) {
            return Ok(Err(Fault::Unsupported));
        }
        self.black_box.mark(op, Some(self.index));
        match call() {
            Ok(value) => Ok(Ok(value)),
            Err(error) => match fault::of_call(&error) {
                fault @ Fault::Device(_) => Err(fault),
                Fault::Unsupported => {
                    self.unsupported.insert((op, version));
                    Ok(Err(Fault::Unsupported))
                }
                other => Ok(Err(other)),
            },
        }
    }

    fn identity(&mut self, device: &Device<'_>, uuid: String) -> Result<Identity, Fault> {
        let pci = self.ask(Op::PciInfo, || device.pci_info())?;
        let name = self.ask(Op::Name, || device.name())?;
        Ok(Identity {
            uuid,
            pci_address: pci.map_or_else(String::new, |pci| {
                format!("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device)
            }),
            name: name.unwrap_or_default(),
        })
    }

    fn values(&mut self, device: &Device<'_>) -> Result<Values, Fault> {
        let mut values = Values::default();
        if let Some(rates) = self.ask(Op::UtilizationRates, || device.utilization_rates())? {
            values.utilisation_percent = Some(rates.gpu);
            values.memory_utilisation_percent = Some(rates.memory);
        }
        self.memory(device, &mut values)?;
        values.temperature_c = self.ask(Op::Temperature, || {
            device.temperature(TemperatureSensor::Gpu)
        })?;
        values.power_mw = self.ask(Op::PowerUsage, || device.power_usage())?;
        values.power_limit_mw = self.ask(Op::PowerLimit, || device.enforced_power_limit())?;
        values.sm_clock_mhz = self.ask(Op::SmClock, || device.clock_info(Clock::SM))?;
        values.memory_clock_mhz = self.ask(Op::MemoryClock, || device.clock_info(Clock::Memory))?;
        values.throttle_reasons = self
            .ask(Op::ThrottleReasons, || device.current_throttle_reasons())?
            .map(|reasons| reasons.bits());
        values.power_violation_ns = self
            .ask(Op::ViolationStatus, || {
                device.violation_status(PerformancePolicy::Power)
            })?
            .map(|time| time.violation_time);
        Ok(values)
    }

    fn memory(&mut self, device: &Device<'_>, values: &mut Values) -> Result<(), Fault> {
        match self.ask_version(Op::MemoryInfo, 2, || device.memory_info())? {
            Ok(memory) => {
                values.memory_total_bytes = Some(memory.total);
                values.memory_used_bytes = Some(memory.used);
                values.memory_reserved_bytes = Some(memory.reserved);
            }
            Err(Fault::Unsupported) => {
                let first = self.ask_version(Op::MemoryInfo, 1, || {
                    drover_nvml_raw::memory_info_v1(device)
                })?;
                if let Ok(memory) = first {
                    values.memory_total_bytes = Some(memory.total);
                    values.memory_used_bytes = Some(memory.used);
                    values.used_includes_reserved = true;
                }
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// All lists in one; `None` when it is not known what holds the GPU.
    fn processes(&mut self, device: &Device<'_>) -> Result<Option<Vec<ProcessEntry>>, Fault> {
        let compute = self.list(
            Op::ComputeProcesses,
            || device.running_compute_processes(),
            || device.running_compute_processes_v2(),
        )?;
        let graphics = self.list(
            Op::GraphicsProcesses,
            || device.running_graphics_processes(),
            || device.running_graphics_processes_v2(),
        )?;
        let mps = self.list(
            Op::MpsProcesses,
            || device.mps_running_compute_processes(),
            || Err(NvmlError::NotSupported),
        )?;
        // Compute must be readable; the other two may be missing on this card, but not fail.
        let optional = |list| match list {
            Err(Fault::Unsupported) => Ok(Vec::new()),
            other => other,
        };
        let (Ok(mut all), Ok(graphics), Ok(mps)) = (compute, optional(graphics), optional(mps))
        else {
            return Ok(None);
        };
        all.extend(graphics);
        all.extend(mps);
        Ok((all.len() <= MAX_PROCESSES).then_some(all))
    }

    fn list(
        &mut self,
        op: Op,
        newest: impl Fn() -> Result<Vec<ProcessInfo>, NvmlError>,
        older: impl Fn() -> Result<Vec<ProcessInfo>, NvmlError>,
    ) -> Result<Result<Vec<ProcessEntry>, Fault>, Fault> {
        let mut list = self.ask_version(op, 3, &newest)?;
        if list.as_ref().is_err_and(|fault| *fault == Fault::TooSmall) {
            // Processes started between the count and the list.
            list = self.ask_version(op, 3, &newest)?;
        }
        if list
            .as_ref()
            .is_err_and(|fault| *fault == Fault::Unsupported)
        {
            list = self.ask_version(op, 2, &older)?;
        }
        Ok(list.map(|list| list.iter().map(entry).collect()))
    }
}

fn entry(info: &ProcessInfo) -> ProcessEntry {
    ProcessEntry {
        pid: info.pid,
        memory_bytes: match info.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        },
    }
}
