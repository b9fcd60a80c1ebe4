//! The state behind the calls: the current script, open device files, live processes. Used by `calls`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::script::{Loaded, ProcessKind, Source};

/// Environment variable that names the script.
pub const SCRIPT_ENV: &str = "DROVER_NVML_STUB";

/// Listing a directory of processes for every getter would cost more than the agent: one listing serves this long.
const PROCESSES_FRESH: Duration = Duration::from_millis(50);

/// Ticks per second of /proc/PID/stat on every Linux that runs Rust.
const TICKS: u64 = 100;

/// One process on one GPU.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    pub gpu: u32,
    pub pid: u32,
    pub memory: Option<u64>,
    pub kind: ProcessKind,
}

/// Everything that lasts between calls.
#[derive(Debug, Default)]
pub struct World {
    source: Source,
    pub inits: u32,
    devices: BTreeMap<String, File>,
    listed: Option<(Instant, Arc<Vec<Process>>)>,
}

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// Runs `act` on the one world.
pub fn with<R>(act: impl FnOnce(&mut World) -> R) -> R {
    let mut world: MutexGuard<'_, Option<World>> =
        WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    act(world.get_or_insert_with(World::default))
}

impl World {
    /// The script as it is now, `None` without one.
    pub fn script(&mut self) -> Option<Arc<Loaded>> {
        let path = std::env::var_os(SCRIPT_ENV)?;
        self.source.current(Path::new(&path))
    }

    /// Opens a file of the devices folder, as the driver's library opens /dev/nvidia*.
    pub fn open_device(&mut self, script: &Loaded, name: String) {
        if let Some(dir) = &script.script.devices_dir
            && !self.devices.contains_key(&name)
        {
            match File::options()
                .create(true)
                .append(true)
                .open(dir.join(&name))
            {
                Ok(file) => {
                    self.devices.insert(name, file);
                }
                Err(error) => eprintln!("drover-nvml-stub: {name}: {error}"),
            }
        }
    }

    /// Closes all device files.
    pub fn close_devices(&mut self) {
        self.devices.clear();
    }

    /// All processes now: those of the script, and the live ones of the folder.
    pub fn processes(&mut self, script: &Loaded) -> Arc<Vec<Process>> {
        if let Some((at, list)) = &self.listed
            && at.elapsed() < PROCESSES_FRESH
        {
            return Arc::clone(list);
        }
        let mut list: Vec<Process> = script
            .script
            .processes
            .iter()
            .map(|p| Process {
                gpu: p.gpu,
                pid: p.pid,
                memory: p.memory,
                kind: p.kind,
            })
            .collect();
        if let Some(dir) = &script.script.processes_dir {
            from_dir(dir, &mut list);
        }
        let list = Arc::new(list);
        self.listed = Some((Instant::now(), Arc::clone(&list)));
        list
    }
}

/// Appends the name of a call to the log of calls, when one is asked for.
pub fn count(script: &Loaded, line: &str) {
    if let Some(path) = &script.script.counters {
        let done = File::options()
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = done {
            eprintln!("drover-nvml-stub: {}: {error}", path.display());
        }
    }
}

fn from_dir(dir: &Path, list: &mut Vec<Process>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let boot = boot_time();
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(text) = fs::read_to_string(entry.path()) else {
            continue;
        };
        let written = entry.metadata().and_then(|meta| meta.modified()).ok();
        if !alive_since(pid, written, boot) {
            continue;
        }
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(gpu) = words.next().and_then(|word| word.parse().ok()) else {
                continue;
            };
            list.push(Process {
                gpu,
                pid,
                memory: words.next().and_then(|word| word.parse().ok()),
                kind: ProcessKind::Compute,
            });
        }
    }
}

/// The process runs (a zombie does not), and is not a later one that got the pid of the one which wrote the file.
fn alive_since(pid: u32, written: Option<SystemTime>, boot: Option<u64>) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let mut fields = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split_whitespace();
    let state = fields.next();
    if matches!(state, None | Some("Z" | "X")) {
        return false;
    }
    let start: Option<u64> = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    let written = written
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .map(|at| at.as_secs());
    match (start, boot, written) {
        (Some(start), Some(boot), Some(written)) => written + 3 >= boot + start / TICKS,
        _ => true,
    }
}

fn boot_time() -> Option<u64> {
    fs::read_to_string("/proc/stat")
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("btime "))
        .and_then(|text| text.trim().parse().ok())
}
