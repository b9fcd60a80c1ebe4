//! Parsers of the files of /proc that are sampled. Pure; layouts as in proc(5) and the kernel's psi documentation.

use super::window::CpuTicks;
use crate::observation::NicUse;

/// The line of all CPUs in /proc/stat.
#[must_use]
pub fn cpu(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .take(8)
        .map_while(|text| text.parse().ok())
        .collect();
    let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    let total: u64 = ticks.iter().sum();
    Some(CpuTicks { total, idle })
}

/// Load averages in thousandths.
#[must_use]
pub fn load(loadavg: &str) -> Option<[u32; 3]> {
    let mut words = loadavg.split_ascii_whitespace();
    let mut next = || milli(words.next()?);
    Some([next()?, next()?, next()?])
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// total - available.
    pub used: Option<u64>,
    /// Swap total - swap free.
    pub swap_used: Option<u64>,
}

/// /proc/meminfo.
#[must_use]
pub fn memory(meminfo: &str) -> Memory {
    let field = |name: &str| -> Option<u64> {
        let line = meminfo
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let minus = |total: &str, free: &str| field(total)?.checked_sub(field(free)?);
    Memory {
        used: minus("MemTotal", "MemAvailable"),
        swap_used: minus("SwapTotal", "SwapFree"),
    }
}

/// "some" avg10 of a pressure file, hundredths of a percent.
#[must_use]
pub fn pressure(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let value = line
        .split(' ')
        .find_map(|word| word.strip_prefix("avg10="))?;
    milli(value).map(|milli| milli / 10)
}

/// Whole seconds since boot.
#[must_use]
pub fn uptime(text: &str) -> Option<u64> {
    text.split(['.', ' ']).next()?.parse().ok()
}

/// /proc/net/dev without the loopback.
#[must_use]
pub fn nics(dev: &str) -> Vec<NicUse> {
    dev.lines()
        .skip(2)
        .filter_map(|line| {
            let (name, counters) = line.split_once(':')?;
            let name = name.trim();
            let mut counters = counters.split_ascii_whitespace();
            (name != "lo").then(|| NicUse {
                name: name.to_owned(),
                rx_bytes: counters.next().and_then(|text| text.parse().ok()),
                tx_bytes: counters.nth(7).and_then(|text| text.parse().ok()),
            })
        })
        .collect()
}

/// "1.25" to 1250, without going through a float.
fn milli(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let mut digits: String = part.chars().take(3).collect();
    while digits.len() < 3 {
        digits.push('0');
    }
    let whole: u32 = whole.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(digits.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "cpu  100 10 50 800 40 0 5 5 30 0\ncpu0 1 1 1 1\n";
        assert_eq!(
            cpu(stat),
            Some(CpuTicks {
                total: 1010,
                idle: 840
            })
        );
        assert_eq!(cpu("intr 5"), None);
        assert_eq!(cpu("cpu  1 2"), None);
        assert_eq!(
            load("0.08 1.50 12.007 1/123 4567\n"),
            Some([80, 1500, 12_007])
        );
        assert_eq!(load("0.08"), None);
        assert_eq!(uptime("12345.67 99.0\n"), Some(12345));
        assert_eq!(
            pressure("some avg10=1.25 avg60=0.00 avg300=0.00 total=1\nfull avg10=9.00\n"),
            Some(125)
        );
        assert_eq!(pressure(""), None);
    }

    #[test]
    fn missing_memory_fields_are_absent_and_not_zero() {
        let whole =
            memory("MemTotal: 1000 kB\nMemAvailable:  400 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
        assert_eq!(whole.used, Some(600 * 1024));
        assert_eq!(whole.swap_used, Some(0));
        let old_kernel = memory("MemTotal: 1000 kB\nMemFree: 400 kB\n");
        assert_eq!(old_kernel, Memory::default());
    }

    #[test]
    fn the_loopback_is_no_interface() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 5 0 0 0 0 0 0 0 5 0 0 0 0 0 0 0\n  eth0:1234 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n";
        let want = NicUse {
            name: "eth0".to_owned(),
            rx_bytes: Some(1234),
            tx_bytes: Some(99),
        };
        assert_eq!(nics(text), [want]);
    }
}
