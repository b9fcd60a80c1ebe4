//! The host's facts without GPUs and metadata. A few milliseconds; called rarely.

use std::fs;

use sysinfo::{MemoryRefreshKind, Networks, System};

use crate::collector::HostPaths;
use crate::host::files::word;
use crate::host::mounts::Mount;
use crate::host::{driver, pci};
use crate::observation::{DiskFacts, DiskUse, Facts, NicFacts};

/// Reads them. Disk sizes come with the first use, so that a dead mount cannot block here.
#[must_use]
pub fn read(paths: &HostPaths, mounts: &[Mount]) -> Facts {
    let kernel = |name: &str| word(&paths.proc.join("sys/kernel").join(name));
    Facts {
        machine_id: word(&paths.etc.join("machine-id")).unwrap_or_default(),
        boot_id: kernel("random/boot_id").unwrap_or_default(),
        hostname: kernel("hostname")
            .or_else(|| System::host_name().ok())
            .unwrap_or_default(),
        // Not what this service may use: its unit has a quota.
        cpus: word(&paths.sys.join("devices/system/cpu/online")).and_then(|list| count(&list)),
        memory_bytes: memory(),
        os: os(paths),
        kernel: kernel("osrelease").unwrap_or_default(),
        arch: std::env::consts::ARCH.to_owned(),
        driver_version: driver::module_version(&paths.sys),
        pci_gpus: pci::gpus(&paths.sys),
        disks: mounts
            .iter()
            .map(|mount| DiskFacts {
                mount: mount.point.clone(),
                kind: mount.kind.clone(),
                total_bytes: None,
            })
            .collect(),
        nics: nics(),
        ..Facts::default()
    }
}

/// Sizes of the disks as just measured; a stuck one keeps the size that is known.
pub fn set_sizes(disks: &mut [DiskFacts], uses: &[DiskUse]) {
    for disk in disks {
        if let Some(used) = uses.iter().find(|used| used.mount == disk.mount) {
            disk.total_bytes = used.total_bytes.or(disk.total_bytes);
        }
    }
}

fn os(paths: &HostPaths) -> String {
    let text = fs::read_to_string(paths.etc.join("os-release")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .unwrap_or_default()
}

fn memory() -> Option<u64> {
    let mut system = System::new().ok()?;
    system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
    Some(system.total_memory()).filter(|bytes| *bytes > 0)
}

fn nics() -> Vec<NicFacts> {
    let Ok(networks) = Networks::new_with_refreshed_list() else {
        return Vec::new();
    };
    let mut nics: Vec<NicFacts> = networks
        .iter()
        .filter(|(name, _)| *name != "lo")
        .map(|(name, data)| {
            let mut addresses: Vec<String> = data
                .ip_networks()
                .iter()
                .map(|net| net.addr.to_string())
                .collect();
            addresses.sort();
            NicFacts {
                name: name.to_string_lossy().into_owned(),
                mac: data.mac_address().to_string(),
                addresses,
            }
        })
        .collect();
    nics.sort_by(|a, b| a.name.cmp(&b.name));
    nics
}

/// "0-3,8" is 5.
fn count(list: &str) -> Option<u32> {
    let mut sum = 0;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum += last.checked_sub(first)? + 1;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        let table = [
            ("0", Some(1)),
            ("0-63", Some(64)),
            ("0-3,8", Some(5)),
            ("3-0", None),
            ("", None),
        ];
        for (list, want) in table {
            assert_eq!(count(list), want, "{list}");
        }
    }

    #[test]
    fn this_host_has_facts() {
        let facts = read(&HostPaths::default(), &[]);
        assert!(facts.cpus.is_some_and(|cpus| cpus > 0));
        assert!(facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(facts.boot_id.len(), 36);
        assert!(!facts.hostname.is_empty() && !facts.kernel.is_empty() && !facts.os.is_empty());
        assert!(facts.nics.iter().all(|nic| nic.name != "lo"));
    }

    #[test]
    fn a_stuck_disk_keeps_its_size() {
        let disk = |total_bytes| DiskFacts {
            mount: "/home".to_owned(),
            kind: "nfs4".to_owned(),
            total_bytes,
        };
        let used = |total_bytes| DiskUse {
            mount: "/home".to_owned(),
            total_bytes,
            ..DiskUse::default()
        };
        let mut disks = [disk(None)];
        set_sizes(&mut disks, &[used(Some(7))]);
        set_sizes(&mut disks, &[used(None)]);
        assert_eq!(disks[0].total_bytes, Some(7));
    }
}
