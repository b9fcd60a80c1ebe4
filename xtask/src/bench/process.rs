//! Measured processes: started, looked at, ended.
//!
//! Called by the benches. CPU comes from the process's own clock (nanoseconds, all
//! its threads, also ended ones), memory from /proc. A process of ours never
//! outlives the bench.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    time::clock_getcpuclockid,
    unistd::Pid,
};

/// A process that ends when this is dropped.
pub(crate) struct Running {
    name: String,
    child: Child,
}

impl Running {
    /// Starts it with its output in `log`.
    ///
    /// # Errors
    /// When it cannot be started or the log not be written.
    pub(crate) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone().context("cannot share the log")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("process ids fit")
    }

    /// Fails when it has ended.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn alive(&mut self) -> Result<()> {
        match self
            .child
            .try_wait()
            .with_context(|| format!("cannot look at {}", self.name))?
        {
            Some(status) => bail!("{} ended early: {status}", self.name),
            None => Ok(()),
        }
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child
            .kill()
            .with_context(|| format!("cannot end {}", self.name))?;
        self.child
            .wait()
            .with_context(|| format!("cannot wait for {}", self.name))?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // First the polite way, so that it ends its own children.
        // It may have ended already.
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// CPU time used so far, all threads.
///
/// # Errors
/// When the process is gone.
pub(crate) fn cpu(pid: i32) -> Result<Duration> {
    let gone = || format!("process {pid} is gone");
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).with_context(gone)?;
    Ok(Duration::from(clock.now().with_context(gone)?))
}

/// Peak resident set, bytes.
///
/// # Errors
/// When the process is gone.
pub(crate) fn peak_rss(pid: i32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    kib_of(&text, "VmHWM:").with_context(|| format!("{path} has no VmHWM"))
}

/// Resident bytes of the mappings whose file name contains `library`.
///
/// # Errors
/// When the process is gone or may not be looked at.
pub(crate) fn library_rss(pid: i32, library: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(mapped(&text, library))
}

fn mapped(smaps: &str, library: &str) -> u64 {
    let mut inside = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        let head = line.split_whitespace().next().unwrap_or_default();
        if head.contains('-') && !head.ends_with(':') {
            inside = line.contains(library);
        } else if inside && head == "Rss:" {
            bytes += kib_of(line, "Rss:").unwrap_or(0);
        }
    }
    bytes
}

fn kib_of(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The children of a process whose command line contains `word`.
///
/// # Errors
/// When /proc cannot be read.
pub(crate) fn children(pid: i32, word: &str) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot read /proc")? {
        let entry = entry.context("cannot read /proc")?;
        let Some(child) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if parent(&stat) == Some(pid) && String::from_utf8_lossy(&command).contains(word) {
            found.push(child);
        }
    }
    Ok(found)
}

/// The parent in a /proc/PID/stat line; the name before it may hold spaces and brackets.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Looks every 50 ms until `ready` gives something.
///
/// # Errors
/// When it gives an error, or nothing within `limit`.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if Instant::now() > deadline {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cpu_and_memory_are_seen() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let before = cpu(pid).unwrap();
        let mut sum = 0_u64;
        while cpu(pid).unwrap() < before + Duration::from_millis(20) {
            sum = sum.wrapping_add(1);
        }
        assert!(sum > 0);
        assert!(peak_rss(pid).unwrap() > 100_000);
    }

    #[test]
    fn the_parent_is_read_behind_any_name() {
        assert_eq!(parent("12 (a) b) S 7 12 12 0"), Some(7));
    }

    #[test]
    fn only_the_librarys_pages_are_summed() {
        let smaps = "7f00-7f10 r-xp 00000000 08:01 12 /x/libdrover_nvml_stub.so\nSize: 64 kB\nRss:  40 kB\n\
                     7f20-7f30 r-xp 00000000 08:01 13 /x/libc.so.6\nRss:  100 kB\n\
                     7f40-7f50 rw-p 00000000 08:01 12 /x/libdrover_nvml_stub.so\nRss:  8 kB\n";
        assert_eq!(mapped(smaps, "nvml_stub"), 48 * 1024);
    }

    #[test]
    fn an_ended_process_is_an_error() {
        let log = std::env::temp_dir().join(format!("xtask-{}.log", std::process::id()));
        let mut running = Running::start("true", &mut Command::new("true"), &log).unwrap();
        let ended = wait_for("the end", Duration::from_secs(10), || {
            Ok(running.alive().err())
        })
        .unwrap();
        assert!(ended.to_string().contains("true ended early"), "{ended}");
        fs::remove_file(log).unwrap();
    }
}
