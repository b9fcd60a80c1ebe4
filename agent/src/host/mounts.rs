//! The mount table: which file systems are worth a report, and which of them may block.

use std::collections::BTreeMap;
use std::path::Path;

/// How a file system is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// A known local kind: statfs inline.
    Local,
    /// Might block: statfs under a guard.
    Guarded,
    /// A network kind: under a guard, where network mounts are on.
    Network,
}

/// One file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: String,
    /// Kind (ext4).
    pub kind: String,
    /// How to ask it.
    pub treatment: Treatment,
}

const LOCAL: [&str; 15] = [
    "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "msdos", "nilfs2",
    "ntfs3", "reiserfs", "vfat", "xfs", "zfs",
];

const NETWORK: [&str; 12] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
];

/// No storage behind them, or images that are always full.
const PSEUDO: [&str; 34] = [
    "autofs",
    "bdev",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "fuse.snapfuse",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nfsd",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// The file systems of /proc/self/mountinfo, one a device.
#[must_use]
pub fn parse(mountinfo: &str, network: bool) -> Vec<Mount> {
    let mut by_device: BTreeMap<&str, Mount> = BTreeMap::new();
    for line in mountinfo.lines() {
        let Some((device, root, point, kind)) = fields(line) else {
            continue;
        };
        let point = unescape(point);
        let Some(treatment) = treatment(kind, &point) else {
            continue;
        };
        if treatment == Treatment::Network && !network {
            continue;
        }
        // A bind mount of a part shows space that its whole shows as well.
        if root != "/" && kind != "btrfs" && point != "/" {
            continue;
        }
        let mount = Mount {
            point,
            kind: kind.to_owned(),
            treatment,
        };
        by_device
            .entry(device)
            .and_modify(|known| {
                if mount.point.len() < known.point.len() {
                    *known = mount.clone();
                }
            })
            .or_insert(mount);
    }
    let mut mounts: Vec<Mount> = by_device.into_values().collect();
    mounts.sort_by(|a, b| a.point.cmp(&b.point));
    mounts
}

/// The table of this process.
#[must_use]
pub fn read(proc: &Path, network: bool) -> Vec<Mount> {
    let text = std::fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    parse(&text, network)
}

/// (major:minor, root, mount point, kind); layout as in proc_pid_mountinfo(5).
fn fields(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let device = left.next()?;
    let root = left.next()?;
    let point = left.next()?;
    Some((device, root, point, right.split(' ').next()?))
}

fn treatment(kind: &str, point: &str) -> Option<Treatment> {
    if LOCAL.contains(&kind) || (kind == "overlay" && point == "/") {
        Some(Treatment::Local)
    } else if PSEUDO.contains(&kind) {
        None
    } else if NETWORK.contains(&kind) {
        Some(Treatment::Network)
    } else {
        Some(Treatment::Guarded)
    }
}

/// `\040` and its like, as the kernel writes blanks.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
24 22 8:2 / /data rw - xfs /dev/sdb1 rw
25 22 8:2 /sub /srv/sub rw - xfs /dev/sdb1 rw
26 22 0:50 / /home rw - nfs4 filer:/home rw
27 22 0:51 / /scratch rw - fuse.mfs mfs rw
28 22 0:52 / /my\\040disk rw - vfat /dev/sdc1 rw
29 22 0:60 / /var/lib/docker/overlay2/x rw - overlay overlay rw
30 22 8:1 /etc/hosts /etc/hosts rw - ext4 /dev/sda1 rw
nonsense
";

    #[test]
    fn only_known_local_kinds_are_called_inline() {
        let found = |network| -> Vec<(String, Treatment)> {
            parse(TABLE, network)
                .into_iter()
                .map(|mount| (mount.point, mount.treatment))
                .collect()
        };
        let without = [
            ("/".to_owned(), Treatment::Local),
            ("/data".to_owned(), Treatment::Local),
            ("/my disk".to_owned(), Treatment::Local),
            ("/scratch".to_owned(), Treatment::Guarded),
        ];
        assert_eq!(found(false), without);
        let home = ("/home".to_owned(), Treatment::Network);
        assert!(found(true).contains(&home));
    }

    #[test]
    fn the_root_of_a_container_is_a_disk() {
        let mounts = parse("1 0 0:99 / / rw - overlay overlay rw\n", false);
        assert_eq!(mounts[0].point, "/");
    }
}
