//! Where the built programs are. `cargo xtask test` says it in the environment; beside the test's own binary they are
//! found as well.

use std::path::PathBuf;

/// The coordinator and CLI, built with fail points.
pub fn drover() -> PathBuf {
    find("DROVER_BIN", "drover")
}

/// The agent.
pub fn agent() -> PathBuf {
    find("DROVER_AGENT_BIN", "drover-agent")
}

/// The scripted NVML library.
pub fn nvml_stub() -> PathBuf {
    find("DROVER_NVML_STUB_LIB", "libdrover_nvml_stub.so")
}

/// The library that shifts a process's wall clock.
pub fn clock_shift() -> PathBuf {
    find("DROVER_CLOCK_SHIFT_LIB", "libdrover_clock_shift.so")
}

fn find(variable: &str, name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return PathBuf::from(path);
    }
    // target/debug/deps/TEST-HASH: two up is target/debug.
    let own = std::env::current_exe().expect("the test knows its own path");
    let path = own
        .ancestors()
        .nth(2)
        .expect("tests lie in deps")
        .join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo xtask test`, or set {variable}",
        path.display()
    );
    path
}
