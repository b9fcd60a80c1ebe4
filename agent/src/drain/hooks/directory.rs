//! The directory of the hooks: which are run, in which order, and what is refused because others could write to it.
//!
//! Called by `hooks` at each phase and by the check of the config.

use super::name_of;
use crate::drain::status::{Blocker, BlockerKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Whether the hooks of this directory would be run.
///
/// # Errors
/// Which path is wrong, and why.
pub fn check_dir(dir: &Path) -> Result<(), String> {
    list(dir).map(drop).map_err(|blocker| blocker.message)
}

/// The executables of the directory by name. A missing directory holds none; one that others may write to is
/// refused, and so is such a file: they could make the agent run anything.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>, Blocker> {
    let refuse = |path: &Path, why: &str| Blocker {
        kind: BlockerKind::Hook,
        subject: name_of(path),
        message: format!("hook path {} {why}", path.display()),
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refuse(dir, &format!("cannot be read: {error}"))),
    };
    check(dir).map_err(|why| refuse(dir, &why))?;
    let mut hooks = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| refuse(dir, &format!("cannot be read: {error}")))?
            .path();
        let Ok(meta) = std::fs::metadata(&path) else {
            continue;
        };
        if meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            check(&path).map_err(|why| refuse(&path, &why))?;
            hooks.push(path);
        }
    }
    hooks.sort();
    Ok(hooks)
}

fn check(path: &Path) -> Result<(), String> {
    let meta = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if meta.uid() != 0 && meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err("belongs neither to root nor to the agent's user".into());
    }
    if meta.permissions().mode() & 0o022 != 0 {
        return Err("is writable by group or others".into());
    }
    Ok(())
}
