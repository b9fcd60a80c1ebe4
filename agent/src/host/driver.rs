//! Versions of the NVIDIA driver without NVML: of the loaded module, and of the library on disk.

use std::path::{Path, PathBuf};

use super::files::word;

const LIBRARY: &str = "libnvidia-ml.so.1";
/// Where distributions put it; the loader's cache is binary and not worth reading for this.
const FOLDERS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
];

/// Version of the loaded kernel module; `None` when none is loaded.
#[must_use]
pub fn module_version(sys: &Path) -> Option<String> {
    word(&sys.join("module/nvidia/version"))
}

/// Version in the name that the library's link points to; `None` when there is no such link.
#[must_use]
pub fn library_version(library: Option<&Path>) -> Option<String> {
    let link = match library {
        Some(path) => path.to_owned(),
        None => FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(LIBRARY))
            .find(|path| path.symlink_metadata().is_ok())?,
    };
    match std::fs::read_link(&link) {
        Ok(target) => version_of(&target),
        Err(error) => {
            tracing::debug!(link = %link.display(), %error, "cannot tell the version of the NVML library");
            None
        }
    }
}

fn version_of(target: &Path) -> Option<String> {
    let name = PathBuf::from(target.file_name()?);
    let version = name.to_str()?.strip_prefix("libnvidia-ml.so.")?;
    // "1" is a link to the next link, not a driver.
    version.contains('.').then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_name_of_the_target() {
        let version = |name: &str| version_of(Path::new(name));
        assert_eq!(
            version("libnvidia-ml.so.550.90.07").as_deref(),
            Some("550.90.07")
        );
        assert_eq!(
            version("/usr/lib64/libnvidia-ml.so.470.256.02").as_deref(),
            Some("470.256.02")
        );
        assert_eq!(version("libnvidia-ml.so.1"), None);
        assert_eq!(version("libdrover_nvml_stub.so"), None);
    }
}
