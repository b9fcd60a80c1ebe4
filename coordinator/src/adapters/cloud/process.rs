//! One real process per instance: started when it runs, ended with all its jobs when it is terminated.
//!
//! Called by the engine only. A job is a pid named by a file in the instance's jobs folder.

use super::config::InstanceCommand;
use crate::world::{GroupSpec, InstanceRecord, OfferingSpec};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Where and how instances are started.
#[derive(Debug, Clone)]
pub struct Spawner {
    command: InstanceCommand,
    work_dir: PathBuf,
    metadata: SocketAddr,
}

/// Why an instance has no process.
#[derive(Debug, thiserror::Error)]
#[error("instance {id}: cannot {what}")]
pub struct SpawnError {
    id: String,
    what: String,
    source: std::io::Error,
}

impl Spawner {
    /// For a config with `[instance]`.
    #[must_use]
    pub const fn new(command: InstanceCommand, work_dir: PathBuf, metadata: SocketAddr) -> Self {
        Self {
            command,
            work_dir,
            metadata,
        }
    }

    /// Folder of an instance.
    #[must_use]
    pub fn dir(&self, id: &str) -> PathBuf {
        self.work_dir.join(id)
    }

    /// Writes the instance's files and starts its process, in a process group of its own.
    ///
    /// # Errors
    /// A file cannot be written or the program not started.
    pub fn start(
        &self,
        instance: &InstanceRecord,
        group: &GroupSpec,
        offering: &OfferingSpec,
    ) -> Result<Child, SpawnError> {
        let id = &instance.id;
        let dir = self.dir(id);
        let fail = |what: String| {
            move |source| SpawnError {
                id: id.clone(),
                what,
                source,
            }
        };
        let fill = |text: &str| self.fill(text, instance, group, offering, &dir);
        let jobs = dir.join(&self.command.jobs_dir);
        std::fs::create_dir_all(&jobs).map_err(fail(format!("make {}", jobs.display())))?;
        for (name, text) in &self.command.files {
            let path = dir.join(name);
            std::fs::write(&path, fill(text)).map_err(fail(format!("write {}", path.display())))?;
        }
        let log = dir.join("output.log");
        let output =
            std::fs::File::create(&log).map_err(fail(format!("write {}", log.display())))?;
        let errors = output
            .try_clone()
            .map_err(fail(format!("write {}", log.display())))?;
        let program = fill(&self.command.command[0]);
        Command::new(&program)
            .args(self.command.command[1..].iter().map(|a| fill(a)))
            .envs(self.command.env.iter().map(|(k, v)| (k.clone(), fill(v))))
            .current_dir(&dir)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(fail(format!("start {program}")))
    }

    /// Ends every job of the instance, as the end of a machine does. Returns how many were alive.
    #[must_use]
    pub fn end_jobs(&self, id: &str) -> u32 {
        let Ok(entries) = std::fs::read_dir(self.dir(id).join(&self.command.jobs_dir)) else {
            return 0;
        };
        let pids = entries
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let alive = pids.filter(|pid| {
            *pid > 1 && is_alive(*pid) && kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok()
        });
        u32::try_from(alive.count()).unwrap_or(u32::MAX)
    }

    fn fill(
        &self,
        text: &str,
        instance: &InstanceRecord,
        group: &GroupSpec,
        offering: &OfferingSpec,
        dir: &Path,
    ) -> String {
        let mut filled = text.to_owned();
        let gpus = offering.gpus.to_string();
        let metadata = format!("http://{}/{}", self.metadata, instance.id);
        let dir = dir.display().to_string();
        let known: [(&str, &str); 9] = [
            ("id", &instance.id),
            ("dir", &dir),
            ("group", &group.name),
            ("region", &group.region),
            ("zone", &offering.zone),
            ("type", &offering.instance_type),
            ("gpus", &gpus),
            ("gpu_model", &offering.gpu_model),
            ("metadata", &metadata),
        ];
        for (name, value) in known {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        for (name, value) in &group.vars {
            filled = filled.replace(&format!("{{var.{name}}}"), value);
        }
        filled
    }
}

/// Ends an instance's process group at once: a terminated instance is not asked.
pub fn end(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // It may have ended by itself: then there is nothing to end.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// A process that exists and is no zombie.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with('Z'))
    })
}
