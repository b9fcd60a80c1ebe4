//! A test bed: a script for the NVML stub, a fake /sys, a collector with short intervals, and waiting on what it sees.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use drover_agent::collector::{
    self, Collector, CollectorConfig, HostPaths, ImdsConfig, ProbeConfig,
};
use drover_agent::observation::{Condition, GpuUse, Observation};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

/// Nothing here may take longer, on a busy machine of two cores either.
pub const DEADLINE: Duration = Duration::from_secs(120);
/// What hangs on purpose is given up after this long, where a test waits for that.
pub const SOON: Duration = Duration::from_secs(1);

/// The stub, built once when it is nowhere.
pub fn stub() -> &'static Path {
    static STUB: OnceLock<PathBuf> = OnceLock::new();
    STUB.get_or_init(|| {
        if let Some(path) = std::env::var_os("DROVER_NVML_STUB_LIB") {
            return PathBuf::from(path);
        }
        // target/debug/deps/gpu-HASH
        let me = std::env::current_exe().unwrap();
        let target = me.ancestors().nth(2).unwrap();
        let path = target.join("libdrover_nvml_stub.so");
        if !path.exists() {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let built = Command::new(cargo)
                .args(["build", "-p", "drover-nvml-stub", "--target-dir"])
                .arg(target.parent().unwrap())
                .status()
                .unwrap();
            assert!(built.success(), "the stub library does not build");
        }
        path
    })
}

/// Everything a test needs.
pub struct Bed {
    pub dir: TempDir,
    pub config: CollectorConfig,
    pub script: Value,
}

impl Bed {
    /// GPUs as in the script's `gpus`; as many on the fake PCI bus as `pci`.
    pub fn new(gpus: Value, pci: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["devices", "processes", "state", "sys/bus/pci/devices"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for nth in 0..pci {
            let device = at(&format!("sys/bus/pci/devices/0000:{nth:02x}:00.0"));
            fs::create_dir(&device).unwrap();
            fs::write(device.join("vendor"), "0x10de\n").unwrap();
            fs::write(device.join("class"), "0x030000\n").unwrap();
        }
        let script = json!({
            "gpus": gpus,
            "devices_dir": at("devices"),
            "processes_dir": at("processes"),
            "counters": at("calls"),
        });
        let config = CollectorConfig {
            interval: Duration::from_millis(40),
            process_interval: Duration::from_millis(40),
            inventory_interval: Duration::from_millis(300),
            version_interval: Duration::from_millis(100),
            probe: ProbeConfig {
                program: env!("CARGO_BIN_EXE_drover-agent").into(),
                environment: vec![("DROVER_NVML_STUB".into(), at("script.json").into())],
                library: Some(stub().to_owned()),
                // A child that merely gets no time on a busy machine does not hang.
                op_deadline: Duration::from_secs(20),
                init_deadline: Duration::from_secs(20),
                // Beyond every test: a hanging call must be found by its own deadline.
                round_deadline: DEADLINE * 2,
                retry_min: Duration::from_millis(50),
                retry_max: Duration::from_millis(400),
                ..ProbeConfig::default()
            },
            imds: ImdsConfig {
                disabled: true,
                ..ImdsConfig::default()
            },
            state_dir: Some(at("state")),
            paths: HostPaths {
                sys: at("sys"),
                ..HostPaths::default()
            },
            ..CollectorConfig::default()
        };
        let bed = Self {
            dir,
            config,
            script,
        };
        bed.write();
        bed
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Changes the script while it runs.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.script);
        self.write();
    }

    fn write(&self) {
        let fresh = self.path("script.json.new");
        fs::write(&fresh, self.script.to_string()).unwrap();
        fs::rename(fresh, self.path("script.json")).unwrap();
    }

    /// Makes this call hang for every GPU, and returns once it hangs for GPU 0. Calls are counted anew from here: one
    /// that began before the change returns, and counts for the file of before.
    pub async fn hang(&mut self, call: &str) {
        let counters = self.path("calls-since-hang");
        self.edit(|script| {
            script["counters"] = json!(counters);
            script["calls"] = json!({call: "hang"});
        });
        let line = format!("{call} 0");
        until("the hanging call", || self.calls(&line) > 0).await;
    }

    /// How often the stub was called by this name (and GPU).
    pub fn calls(&self, line: &str) -> usize {
        let counters = self.script["counters"].as_str().unwrap();
        let log = fs::read_to_string(counters).unwrap_or_default();
        log.lines().filter(|called| *called == line).count()
    }

    /// Makes `lib/libnvidia-ml.so.1` a link to a file of this version, which is the stub.
    pub fn install(&mut self, version: &str) -> PathBuf {
        let folder = self.path("lib");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("libnvidia-ml.so.{version}"));
        if !file.exists() {
            symlink(stub(), &file).unwrap();
        }
        let link = folder.join("libnvidia-ml.so.1");
        let fresh = folder.join("fresh");
        symlink(&file, &fresh).unwrap();
        fs::rename(fresh, &link).unwrap();
        link
    }

    /// Loads a kernel module of this version, as /sys shows it.
    pub fn load_module(&self, version: &str) {
        let folder = self.path("sys/module/nvidia");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("version"), format!("{version}\n")).unwrap();
    }

    pub fn start(&self) -> Agent {
        let collector = collector::spawn(self.config.clone());
        let seen = collector.observations();
        Agent { collector, seen }
    }
}

/// A copy of the stub that lacks these functions: their names are spoilt in its symbol table, so looking them up fails
/// as with a library that never had them.
pub fn without(symbols: &[&str], to: &Path) {
    let mut library = fs::read(stub()).unwrap();
    for symbol in symbols {
        let name = format!("\0{symbol}\0").into_bytes();
        let mut found = false;
        for at in 0..library.len() - name.len() {
            if library[at..].starts_with(&name) {
                library[at + 1] = b'x';
                found = true;
            }
        }
        assert!(found, "{symbol} is not in the stub");
    }
    fs::write(to, library).unwrap();
}

/// A running collector.
pub struct Agent {
    pub collector: Collector,
    pub seen: watch::Receiver<Arc<Observation>>,
}

impl Agent {
    /// Waits for an observation of which this is true.
    pub async fn wait(
        &mut self,
        what: &str,
        is: impl Fn(&Observation) -> bool,
    ) -> Arc<Observation> {
        let waited = tokio::time::timeout(DEADLINE, self.seen.wait_for(|seen| is(seen))).await;
        if let Ok(seen) = waited {
            return seen.unwrap().clone();
        }
        panic!(
            "never seen: {what}; last: {:#?}",
            self.collector.observations().borrow()
        )
    }

    /// The next observation.
    pub async fn next(&mut self) -> Arc<Observation> {
        tokio::time::timeout(DEADLINE, self.seen.changed())
            .await
            .expect("no observation")
            .unwrap();
        self.seen.borrow_and_update().clone()
    }

    /// Waits for values of so many GPUs that are ok.
    pub async fn wait_gpus(&mut self, count: usize) -> Arc<Observation> {
        self.wait(&format!("{count} GPUs"), |seen| {
            let fine = |gpu: &&GpuUse| gpu.power_mw.is_some();
            gpus(seen).iter().filter(fine).count() == count && gpus(seen).len() == count
        })
        .await
    }
}

/// The GPUs of an observation.
pub fn gpus(seen: &Observation) -> &[GpuUse] {
    seen.telemetry
        .as_ref()
        .map_or(&[], |telemetry| &telemetry.gpus)
}

/// The condition of a kind.
pub fn condition<'a>(seen: &'a Observation, kind: &str) -> Option<&'a Condition> {
    seen.conditions
        .iter()
        .find(|condition| condition.kind == kind)
}

/// Waits until something outside the collector is so.
pub async fn until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is() {
        assert!(Instant::now() < deadline, "never: {what}");
        // sleeps: what is looked at lies in other processes and files, and has no event
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Processes that have a file open below this folder.
pub fn holders(folder: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(links) = fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        let inside = |link: fs::DirEntry| {
            fs::read_link(link.path()).is_ok_and(|target| target.starts_with(folder))
        };
        if links.flatten().any(inside) {
            pids.push(pid);
        }
    }
    pids
}
