//! `LD_PRELOAD`ed into a coordinator, an agent or the CLI by tests: its wall clock is wrong by what a file says.
//!
//! The file (`DROVER_CLOCK_SHIFT`) holds whole seconds, negative for the past; it is read at each look, so a clock may
//! jump while the process runs. Monotonic and boot clocks are left alone, as nobody can set those. Never shipped.

use std::ffi::{c_int, c_long};
use std::path::PathBuf;
use std::sync::OnceLock;

/// `struct timespec` of the 64-bit Linux targets.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

#[cfg(target_arch = "x86_64")]
const SYS_CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const SYS_CLOCK_GETTIME: c_long = 113;

const CLOCK_REALTIME: c_int = 0;
const CLOCK_REALTIME_COARSE: c_int = 5;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// Stands in for libc's.
///
/// # Safety
/// As of the original: `time` is null or points to a `struct timespec`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // Safety: the kernel checks the pointer, and writes nothing when it fails.
    let done = unsafe { syscall(SYS_CLOCK_GETTIME, clock, time) };
    if done == 0 && matches!(clock, CLOCK_REALTIME | CLOCK_REALTIME_COARSE) && !time.is_null() {
        // Safety: the kernel has just written there.
        unsafe { (*time).seconds += shift() };
    }
    c_int::try_from(done).unwrap_or(-1)
}

/// Seconds; 0 without a file.
fn shift() -> i64 {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| std::env::var_os("DROVER_CLOCK_SHIFT").map(PathBuf::from));
    file.as_ref()
        .and_then(|file| std::fs::read_to_string(file).ok())
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}
