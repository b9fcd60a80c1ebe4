//! The NVML calls that nvml-wrapper lacks: only the first version of the memory call, which old drivers need.
//!
//! Used by the agent's probe child. Nothing else belongs here: a call that nvml-wrapper has is not written by hand.

use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use nvml_wrapper_sys::bindings::nvmlMemory_t;

/// What `nvmlDeviceGetMemoryInfo` gives, in bytes. `used` contains what the driver reserves for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryV1 {
    /// All memory.
    pub total: u64,
    /// Not allocated.
    pub free: u64,
    /// Allocated or reserved.
    pub used: u64,
}

/// `nvmlDeviceGetMemoryInfo`, version 1.
///
/// # Errors
/// As NVML says; `FailedToLoadSymbol` when the library has no such call.
pub fn memory_info_v1(device: &Device<'_>) -> Result<MemoryV1, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut memory = nvmlMemory_t {
        total: 0,
        free: 0,
        used: 0,
    };
    // SAFETY: the function is the library's own with the type of its header; the handle comes from the same library,
    // which `device` keeps loaded; `memory` outlives the call.
    nvml_try(unsafe { call(device.handle(), &mut memory) })?;
    Ok(MemoryV1 {
        total: memory.total,
        free: memory.free,
        used: memory.used,
    })
}
