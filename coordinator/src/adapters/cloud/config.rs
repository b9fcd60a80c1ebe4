//! Configuration of `drover sim-cloud`.

use crate::world::WorldSpec;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudConfig {
    /// Address of the cloud's gRPC service: loopback, since it has no TLS.
    #[serde(default = "listen")]
    pub listen: SocketAddr,
    /// Address of the metadata service (one path per instance); loopback.
    #[serde(default = "metadata")]
    pub metadata: SocketAddr,
    /// Fixes boot delays and instance ids.
    #[serde(default)]
    pub seed: u64,
    /// Folder with one subfolder per instance.
    pub work_dir: PathBuf,
    /// What an instance is started as; absent: instances are only records.
    #[serde(default)]
    pub instance: Option<InstanceCommand>,
    /// Groups.
    #[serde(flatten)]
    pub world: WorldSpec,
}

fn listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7900))
}

fn metadata() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7901))
}

/// A process per instance. In every text `{id} {dir} {group} {region} {zone} {type} {gpus} {gpu_model} {metadata}` and
/// `{var.NAME}` (the group's `vars`) are replaced.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceCommand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment added.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written into the instance's folder before the start: name to text.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Folder, within the instance's, whose file names are the pids of its jobs: they end with the instance.
    #[serde(default = "jobs")]
    pub jobs_dir: String,
}

fn jobs() -> String {
    "jobs".to_owned()
}

/// Why the file cannot be used; all problems at once.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", path.display(), problems.join("; "))]
pub struct CloudConfigError {
    /// File.
    pub path: PathBuf,
    /// Each names the field and the fix.
    pub problems: Vec<String>,
}

impl CloudConfig {
    /// Reads and checks the file.
    ///
    /// # Errors
    /// Unreadable, not TOML, an unknown key, or a value that cannot be.
    pub fn load(path: &Path) -> Result<Self, CloudConfigError> {
        let fail = |problems| CloudConfigError {
            path: path.to_owned(),
            problems,
        };
        let text = std::fs::read_to_string(path)
            .map_err(|e| fail(vec![format!("cannot be read: {e}")]))?;
        let config: Self = toml::from_str(&text).map_err(|e| fail(vec![e.to_string()]))?;
        let mut problems: Vec<String> = config
            .world
            .errors()
            .iter()
            .map(ToString::to_string)
            .collect();
        for (key, address) in [("listen", config.listen), ("metadata", config.metadata)] {
            if !address.ip().is_loopback() {
                problems.push(format!(
                    "{key}: {address} is not a loopback address, and the cloud has no TLS"
                ));
            }
        }
        if config
            .instance
            .as_ref()
            .is_some_and(|i| i.command.is_empty())
        {
            problems.push("instance.command: is empty: name the program".to_owned());
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(fail(problems))
        }
    }
}
