//! The C types of nvml.h that the stub fills. Layouts as in NVML API 12 and 13.

use std::ffi::{c_char, c_uint, c_ulonglong, c_void};

/// `nvmlDevice_t`: index + 1 as a pointer that is never followed.
pub type Device = *mut c_void;

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    pub bus_id_legacy: [c_char; 16],
    pub domain: c_uint,
    pub bus: c_uint,
    pub device: c_uint,
    pub pci_device_id: c_uint,
    pub pci_subsystem_id: c_uint,
    pub bus_id: [c_char; 32],
}

/// `nvmlUtilization_t`.
#[repr(C)]
pub struct Utilization {
    pub gpu: c_uint,
    pub memory: c_uint,
}

/// `nvmlMemory_t`.
#[repr(C)]
pub struct MemoryV1 {
    pub total: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct MemoryV2 {
    pub version: c_uint,
    pub total: c_ulonglong,
    pub reserved: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

/// `nvmlProcessInfo_t` (versions 2 and 3 of the calls).
#[repr(C)]
pub struct ProcessInfo {
    pub pid: c_uint,
    pub used_gpu_memory: c_ulonglong,
    pub gpu_instance_id: c_uint,
    pub compute_instance_id: c_uint,
}

/// `nvmlViolationTime_t`.
#[repr(C)]
pub struct ViolationTime {
    pub reference_time: c_ulonglong,
    pub violation_time: c_ulonglong,
}

/// Success.
pub const SUCCESS: u32 = 0;
/// NVML_ERROR_UNINITIALIZED.
pub const UNINITIALIZED: u32 = 1;
/// NVML_ERROR_INVALID_ARGUMENT.
pub const INVALID_ARGUMENT: u32 = 2;
/// NVML_ERROR_NOT_FOUND.
pub const NOT_FOUND: u32 = 6;
/// NVML_ERROR_INSUFFICIENT_SIZE.
pub const INSUFFICIENT_SIZE: u32 = 7;
/// NVML_ERROR_DRIVER_NOT_LOADED.
pub const DRIVER_NOT_LOADED: u32 = 9;
/// NVML_VALUE_NOT_AVAILABLE as an unsigned number.
pub const NOT_AVAILABLE: u64 = u64::MAX;

/// Copies text into a C buffer of `length` bytes, with its end mark.
///
/// # Safety
/// `to` must be null or point to `length` writable bytes.
pub unsafe fn put_text(to: *mut c_char, length: usize, text: &str) -> u32 {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() >= length {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the caller gives `length` writable bytes, and text.len() + 1 <= length.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        *to.add(text.len()) = 0;
    }
    SUCCESS
}

/// Writes `value` through `to`.
///
/// # Safety
/// `to` must be null or writable.
pub unsafe fn put<T>(to: *mut T, value: T) -> u32 {
    if to.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, writable by the caller's word.
    unsafe { to.write(value) };
    SUCCESS
}
