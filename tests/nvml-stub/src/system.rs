//! Calls about the system: init, shutdown, versions, handles.

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::abi::{
    DRIVER_NOT_LOADED, Device, INVALID_ARGUMENT, NOT_FOUND, SUCCESS, UNINITIALIZED, put, put_text,
};
use crate::calls;
use crate::script::Outcome;
use crate::world;

fn init() -> u32 {
    let Some(script) = world::with(world::World::script) else {
        return DRIVER_NOT_LOADED;
    };
    world::count(&script, "Init");
    // A plain number is a return code here: init gives no value.
    let code = match &script.script.init {
        Some(Outcome::Value(code)) => u32::try_from(*code).unwrap_or(u32::MAX),
        other => calls::settle(other.as_ref()).err().unwrap_or(SUCCESS),
    };
    if code == SUCCESS {
        world::with(|world| {
            world.inits += 1;
            world.open_device(&script, "nvidiactl".to_owned());
        });
    }
    code
}

/// See nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> u32 {
    init()
}

/// See nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> u32 {
    init()
}

/// See nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> u32 {
    if let Some(script) = world::with(world::World::script) {
        world::count(&script, "Shutdown");
    }
    world::with(|world| {
        if world.inits == 0 {
            return UNINITIALIZED;
        }
        world.inits -= 1;
        if world.inits == 0 {
            world.close_devices();
        }
        SUCCESS
    })
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) -> u32 {
    match calls::system("DriverVersion") {
        Ok((script, _)) => {
            let version = script
                .script
                .driver_version
                .as_deref()
                .unwrap_or("535.183.01");
            // SAFETY: the caller's buffer.
            unsafe { put_text(to, length as usize, version) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(to: *mut c_char, length: c_uint) -> u32 {
    match calls::system("NVMLVersion") {
        Ok((script, _)) => {
            let version = script
                .script
                .nvml_version
                .as_deref()
                .unwrap_or("12.535.183.01");
            // SAFETY: the caller's buffer.
            unsafe { put_text(to, length as usize, version) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(to: *mut c_int) -> u32 {
    match calls::system("CudaDriverVersion_v2") {
        // SAFETY: the caller's pointer.
        Ok((script, _)) => unsafe { put(to, script.script.cuda_version.unwrap_or(12020)) },
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> u32 {
    match calls::system("Count_v2") {
        Ok((script, scripted)) => {
            let count = scripted.value.unwrap_or(script.cards.len() as u64);
            // SAFETY: the caller's pointer.
            unsafe { put(to, count as c_uint) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Device) -> u32 {
    match calls::device_at("HandleByIndex_v2", index as usize) {
        Ok((script, card, _)) => {
            world::with(|world| world.open_device(&script, format!("nvidia{}", card.index)));
            // SAFETY: the caller's pointer.
            unsafe { put(to, (card.index as usize + 1) as Device) }
        }
        Err(code) => code,
    }
}

/// See nvml.h.
///
/// # Safety
/// As the header says of the text and the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut Device) -> u32 {
    if uuid.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a C string by the caller's word.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    match calls::system("HandleByUUID") {
        Ok((script, _)) => match script.cards.iter().find(|card| card.uuid == uuid) {
            // SAFETY: the caller's pointer.
            Some(card) => unsafe { nvmlDeviceGetHandleByIndex_v2(card.index, to) },
            None => NOT_FOUND,
        },
        Err(code) => code,
    }
}
