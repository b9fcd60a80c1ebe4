//! The users' jobs: real processes that hold GPUs of the stub until they end. Counted by their exits.

use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// One job.
struct Job {
    child: Child,
    folder: PathBuf,
    gpus: Vec<u32>,
}

/// All jobs.
#[derive(Default)]
pub struct Jobs {
    running: Vec<Job>,
    held: BTreeMap<PathBuf, BTreeSet<u32>>,
    /// GPUs of jobs that ran to their end.
    pub gpus_served: u32,
    /// Jobs that ran to their end.
    pub ended: u32,
    /// Jobs that something killed or that failed.
    pub killed: u32,
}

impl Jobs {
    /// Starts a job that holds `gpus` free GPUs of the host with this jobs folder for `seconds`.
    pub fn start(&mut self, folder: &Path, gpus: u32, of: u32, seconds: u32) -> Result<()> {
        let held = self.held.entry(folder.to_owned()).or_default();
        let free: Vec<u32> = (0..of)
            .filter(|g| !held.contains(g))
            .take(gpus as usize)
            .collect();
        anyhow::ensure!(
            free.len() == gpus as usize,
            "{} has no {gpus} free GPUs left",
            folder.display()
        );
        held.extend(&free);
        let lines: String = free.iter().map(|g| format!("{g} 1073741824\\n")).collect();
        // The file is named by the pid that holds the GPUs: the shell's own, which becomes the job.
        let script = format!(
            "printf '{lines}' > \"$0/.$$\" && mv \"$0/.$$\" \"$0/$$\" && exec sleep {seconds}"
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .arg(folder)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start a job")?;
        self.running.push(Job {
            child,
            folder: folder.to_owned(),
            gpus: free,
        });
        Ok(())
    }

    /// Takes note of jobs that have ended. Returns how many still run.
    pub fn look(&mut self) -> Result<usize> {
        let mut still = Vec::new();
        for mut job in std::mem::take(&mut self.running) {
            match job.child.try_wait().context("cannot watch a job")? {
                None => still.push(job),
                Some(status) => {
                    if status.success() {
                        self.ended += 1;
                        self.gpus_served += job.gpus.len() as u32;
                    } else {
                        let how = status
                            .signal()
                            .map_or_else(|| "failed".to_owned(), |s| format!("signal {s}"));
                        eprintln!(
                            "demo: a job on {} did not end by itself ({how})",
                            job.folder.display()
                        );
                        self.killed += 1;
                    }
                    // On a machine that is gone the file is gone as well.
                    let _ = std::fs::remove_file(job.folder.join(job.child.id().to_string()));
                    if let Some(held) = self.held.get_mut(&job.folder) {
                        held.retain(|g| !job.gpus.contains(g));
                    }
                }
            }
        }
        self.running = still;
        Ok(self.running.len())
    }

    /// Kills one running job, as sabotage. True when there was one.
    pub fn kill_one(&mut self) -> bool {
        self.running
            .last_mut()
            .is_some_and(|job| job.child.kill().is_ok())
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in &mut self.running {
            let _ = job.child.kill();
            let _ = job.child.wait();
        }
    }
}
