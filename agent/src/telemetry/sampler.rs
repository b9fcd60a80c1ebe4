//! One sample of the host: eight small files of /proc, kept open. About 0.1 ms; called by the collector every tick.

use std::time::{SystemTime, UNIX_EPOCH};

use super::parse;
use super::window::Window;
use crate::collector::HostPaths;
use crate::host::files::KeptFile;
use crate::observation::Telemetry;

/// The open files, and the sample before.
#[derive(Debug)]
pub struct Sampler {
    stat: KeptFile,
    loadavg: KeptFile,
    meminfo: KeptFile,
    uptime: KeptFile,
    net: KeptFile,
    pressure: [KeptFile; 3],
    window: Window,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(paths: &HostPaths) -> Self {
        let file = |name: &str| KeptFile::new(paths.proc.join(name));
        Self {
            stat: file("stat"),
            loadavg: file("loadavg"),
            meminfo: file("meminfo"),
            uptime: file("uptime"),
            net: file("net/dev"),
            pressure: [
                file("pressure/cpu"),
                file("pressure/memory"),
                file("pressure/io"),
            ],
            window: Window::default(),
            buffer: Vec::new(),
        }
    }

    /// Values of now, without disks and GPUs.
    pub fn sample(&mut self) -> Telemetry {
        let buffer = &mut self.buffer;
        let cpu = self.stat.head(buffer, 512).and_then(parse::cpu);
        let memory = self
            .meminfo
            .head(buffer, 4096)
            .map(parse::memory)
            .unwrap_or_default();
        Telemetry {
            at_unix_ms: now_unix_ms(),
            cpu_permille: self.window.cpu_permille(cpu),
            load_milli: self.loadavg.head(buffer, 128).and_then(parse::load),
            memory_used_bytes: memory.used,
            swap_used_bytes: memory.swap_used,
            psi: self
                .pressure
                .each_mut()
                .map(|file| file.head(buffer, 256).and_then(parse::pressure)),
            nics: self.net.all(buffer).map(parse::nics).unwrap_or_default(),
            uptime_s: self.uptime.head(buffer, 128).and_then(parse::uptime),
            ..Telemetry::default()
        }
    }
}

/// Wall clock, milliseconds since 1970.
#[must_use]
pub fn now_unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_measured() {
        let mut sampler = Sampler::new(&HostPaths::default());
        let first = sampler.sample();
        assert_eq!(first.cpu_permille, None);
        assert!(first.memory_used_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(first.load_milli.is_some());
        assert!(first.uptime_s.is_some());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            // Ticks of 10 ms have to pass.
            if let Some(permille) = sampler.sample().cpu_permille {
                assert!(permille <= 1000);
                break;
            }
            assert!(std::time::Instant::now() < deadline);
        }
    }

    #[test]
    fn a_host_without_these_files_has_no_values() {
        let empty = tempfile::tempdir().unwrap();
        let paths = HostPaths {
            proc: empty.path().to_owned(),
            ..HostPaths::default()
        };
        let telemetry = Sampler::new(&paths).sample();
        let nothing = Telemetry {
            at_unix_ms: telemetry.at_unix_ms,
            ..Telemetry::default()
        };
        assert_eq!(telemetry, nothing);
    }
}
