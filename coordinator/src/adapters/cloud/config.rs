//! Configuration of `drover sim-cloud`, and of the world that a coordinator embeds: what the files hold, and how they are
//! loaded. `read` reads them key by key; `docs/sim-cloud.md` is the contract for the keys.
//!
//! Called by `app`. Starts nothing.

use super::read;
use crate::world::WorldSpec;
use drover_config::FileError;
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

impl CloudConfig {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// Unreadable, or all that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        drover_config::load(path, read::cloud)
    }
}

/// Reads and checks the file of an embedded world: only groups.
///
/// # Errors
/// Unreadable, or all that is wrong with it.
pub fn load_world(path: &Path) -> Result<WorldSpec, FileError> {
    drover_config::load(path, read::world)
}
