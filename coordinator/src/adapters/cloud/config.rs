//! Configuration of `drover sim-cloud`, and of the world that a coordinator embeds: what the files hold, and how they are
//! loaded. `read` reads them key by key; `docs/sim-cloud.md` is the contract for the keys.
//!
//! Called by `app`. Starts nothing.

use super::read;
use crate::config::{Problem, render};
use crate::world::WorldSpec;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The file.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudConfig {
    /// Address of the cloud's gRPC service: loopback, since it has no TLS.
    pub listen: SocketAddr,
    /// Address of the metadata service (one path per instance); loopback.
    pub metadata: SocketAddr,
    /// Fixes boot delays and instance ids.
    pub seed: u64,
    /// Folder with one subfolder per instance.
    pub work_dir: PathBuf,
    /// What an instance is started as; absent: instances are only records.
    pub instance: Option<InstanceCommand>,
    /// Groups.
    pub world: WorldSpec,
}

/// A process per instance. In every text `{id} {dir} {group} {region} {zone} {type} {gpus} {gpu_model} {metadata}` and
/// `{var.NAME}` (the group's `vars`) are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceCommand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment added.
    pub env: BTreeMap<String, String>,
    /// Files written into the instance's folder before the start: name to text.
    pub files: BTreeMap<String, String>,
    /// Folder, within the instance's, whose file names are the pids of its jobs: they end with the instance.
    pub jobs_dir: String,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CloudConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", render(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All of it, by line.
        problems: Vec<Problem>,
    },
}

fn load<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<Problem>>,
) -> Result<T, CloudConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| CloudConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problems| CloudConfigError::Wrong {
        path: path.to_owned(),
        problems,
    })
}

impl CloudConfig {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// Unreadable, or all that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, CloudConfigError> {
        load(path, read::cloud)
    }
}

/// Reads and checks the file of an embedded world: only groups.
///
/// # Errors
/// Unreadable, or all that is wrong with it.
pub fn load_world(path: &Path) -> Result<WorldSpec, CloudConfigError> {
    load(path, read::world)
}
