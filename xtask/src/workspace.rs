//! Where things lie: the clone, cargo's target directory, the cache outside the clone.
//!
//! Called by every command. Reads the environment; writes nothing.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The features that tests and lints build with; one set, so that nothing is built twice.
pub(crate) const FEATURES: &str = "drover/failpoints";

/// The root of the clone.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies one level below the root")
        .to_path_buf()
}

/// Cargo's target directory, as cargo itself resolves it.
pub(crate) fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Where a built binary or library of the given profile directory lies.
pub(crate) fn built(profile_dir: &str, file: &str) -> PathBuf {
    target_dir().join(profile_dir).join(file)
}

/// The cache outside the clone that peers and tools are installed in.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` is set.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    if let Some(dir) = env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        return Ok(PathBuf::from(dir).join("drover"));
    }
    let home = env::var_os("HOME").context("HOME is not set, so there is no cache directory")?;
    Ok(PathBuf::from(home).join(".cache/drover"))
}
