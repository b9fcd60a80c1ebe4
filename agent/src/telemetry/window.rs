//! Counters to rates. Pure: the state between two samples.

/// Counters of all CPUs since boot, ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All modes.
    pub total: u64,
    /// Idle or waiting for a disk.
    pub idle: u64,
}

/// The sample before.
#[derive(Debug, Clone, Default)]
pub struct Window {
    cpu: Option<CpuTicks>,
}

impl Window {
    /// The part of CPU time that was not idle since the last sample, thousandths. Absent for the first sample, when no
    /// time has passed, and when a counter went back (idle does on some kernels, and after a CPU is unplugged).
    pub fn cpu_permille(&mut self, now: Option<CpuTicks>) -> Option<u32> {
        let before = std::mem::replace(&mut self.cpu, now);
        let (before, now) = before.zip(now)?;
        let total = now
            .total
            .checked_sub(before.total)
            .filter(|total| *total > 0)?;
        let idle = now.idle.checked_sub(before.idle)?;
        let busy = total.checked_sub(idle)?;
        u32::try_from(busy.checked_mul(1000)? / total).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_becomes_a_part() {
        let at = |total, idle| Some(CpuTicks { total, idle });
        // Each row: sample, expected.
        let table = [
            (at(1000, 800), None),
            (at(2000, 1050), Some(750)),
            (at(2000, 1050), None),
            (at(3000, 2050), Some(0)),
            (at(4000, 2050), Some(1000)),
            (at(5000, 2000), None),
            (at(100, 50), None),
            (at(200, 100), Some(500)),
            (None, None),
            (at(300, 100), None),
            (at(400, 150), Some(500)),
            // More idle than time: a counter of another CPU set.
            (at(500, 900), None),
        ];
        let mut window = Window::default();
        for (row, (sample, want)) in table.into_iter().enumerate() {
            assert_eq!(window.cpu_permille(sample), want, "row {row}");
        }
    }
}
