//! NVIDIA GPUs on the PCI bus, with or without a driver.

use std::fs;
use std::path::Path;

use super::files::word;

/// How many there are: vendor 10de, class 0300 (VGA) or 0302 (3D). `None` when the bus cannot be read. A host without
/// PCI (some virtual machines) has none.
#[must_use]
pub fn gpus(sys: &Path) -> Option<u32> {
    let bus = sys.join("bus/pci");
    if !bus.exists() && sys.join("bus").exists() {
        return Some(0);
    }
    let mut count = 0;
    for device in fs::read_dir(bus.join("devices")).ok()?.flatten() {
        let path = device.path();
        if word(&path.join("vendor")).as_deref() != Some("0x10de") {
            continue;
        }
        let class = word(&path.join("class")).unwrap_or_default();
        if class.starts_with("0x0300") || class.starts_with("0x0302") {
            count += 1;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_display_and_3d_controllers_of_nvidia_only() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(gpus(sys.path()), None);
        fs::create_dir(sys.path().join("bus")).unwrap();
        assert_eq!(gpus(sys.path()), Some(0));
        let devices = [
            ("0000:3b:00.0", "0x10de", "0x030000"),
            ("0000:3b:00.1", "0x10de", "0x040300"),
            ("0000:86:00.0", "0x10de", "0x030200"),
            ("0000:00:02.0", "0x8086", "0x030000"),
        ];
        for (address, vendor, class) in devices {
            let path = sys.path().join("bus/pci/devices").join(address);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(path.join("class"), format!("{class}\n")).unwrap();
        }
        assert_eq!(gpus(sys.path()), Some(2));
    }
}
