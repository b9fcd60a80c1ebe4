//! Which entries of NVML's process lists make sense (AG-10). Pure.
//!
//! After R535 the structure changed: pids and sizes mixed up. Nonsense is "unknown", never a number.

use std::collections::BTreeMap;

use crate::probe::protocol::ProcessEntry;

/// The entries of one GPU, sorted out.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Processes, with their memory where that makes sense.
    pub by_pid: BTreeMap<u32, Option<u64>>,
    /// Entries that cannot be true.
    pub invalid: u32,
    /// Pids that could be, but are not there (any more).
    pub vanished: Vec<u32>,
}

/// Sorts the entries of all lists of one GPU. One that is in two lists has two uses but holds its memory once.
pub fn judge(
    entries: &[ProcessEntry],
    total_bytes: Option<u64>,
    pid_max: u32,
    mut exists: impl FnMut(u32) -> bool,
) -> Judged {
    let mut judged = Judged::default();
    for entry in entries {
        if entry.pid > pid_max {
            judged.invalid += 1;
            continue;
        }
        if entry.pid == 0 {
            judged.invalid += 1;
            continue;
        }
        if !judged.by_pid.contains_key(&entry.pid) && !exists(entry.pid) {
            if !judged.vanished.contains(&entry.pid) {
                judged.vanished.push(entry.pid);
            }
            continue;
        }
        let memory = entry
            .memory_bytes
            .filter(|bytes| total_bytes.is_some_and(|total| *bytes <= total));
        let known = judged.by_pid.entry(entry.pid).or_default();
        *known = (*known).max(memory);
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn entry(pid: u32, memory: u64) -> ProcessEntry {
        ProcessEntry {
            pid,
            memory_bytes: Some(memory),
        }
    }

    #[test]
    fn ag_10_an_entry_counts_only_if_it_makes_sense() {
        // (entries, processes with memory, invalid)
        type Row = (Vec<ProcessEntry>, Vec<(u32, Option<u64>)>, u32);
        let table: Vec<Row> = vec![
            (vec![entry(4242, GIB)], vec![(4242, Some(GIB))], 0),
            (vec![entry(4300, u64::MAX)], vec![(4300, None)], 0),
            (vec![entry(4300, 40 * GIB)], vec![(4300, None)], 0),
            (vec![entry(1_073_741_824, 4242)], vec![], 1),
            (vec![entry(0, 0)], vec![], 1),
            (
                vec![entry(4242, GIB), entry(4242, 2 * GIB)],
                vec![(4242, Some(2 * GIB))],
                0,
            ),
            (
                vec![entry(4242, u64::MAX), entry(4242, GIB)],
                vec![(4242, Some(GIB))],
                0,
            ),
        ];
        for (row, (entries, processes, invalid)) in table.into_iter().enumerate() {
            let judged = judge(&entries, Some(24 * GIB), 4_194_304, |pid| {
                [4242, 4300].contains(&pid)
            });
            assert_eq!(
                judged.by_pid.into_iter().collect::<Vec<_>>(),
                processes,
                "row {row}"
            );
            assert_eq!(judged.invalid, invalid, "row {row}");
        }
    }

    #[test]
    fn a_process_that_ended_meanwhile_is_not_nonsense() {
        let judged = judge(
            &[entry(4711, GIB), entry(4711, GIB)],
            Some(24 * GIB),
            4_194_304,
            |_| false,
        );
        assert_eq!((judged.invalid, judged.vanished), (0, vec![4711]));
    }

    #[test]
    fn without_a_total_no_size_can_be_believed() {
        let judged = judge(&[entry(4242, GIB)], None, 4_194_304, |_| true);
        assert_eq!(judged.by_pid.get(&4242), Some(&None));
    }
}
