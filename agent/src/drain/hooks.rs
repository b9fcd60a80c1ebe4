//! The executor `hooks`: executables in a directory that are told of each phase.
//!
//! Called by `drain`. One at a time, in the order of their names, no shell, a deadline each, output capped. They
//! run apart from the agent, so that its restart does not end a checkpoint.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::executor::{Executor, Job};
use super::machine::{How, Work};
use super::status::{Blocker, BlockerKind};
use crate::clock::BootMs;
use crate::config;
use crate::observation::Observation;

/// Bytes kept of each of a hook's two outputs; the rest is read and dropped.
const OUTPUT_BYTES: usize = 64 * 1024;
/// How long the output of a hook that has ended may still come (a child of it may hold the pipe for ever).
const OUTPUT_WAIT: Duration = Duration::from_millis(500);
/// Makes transient scopes; used where systemd runs.
const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";

/// When a hook is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Cordon,
    Checkpoint,
    Drained,
    Undo,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Checkpoint => "checkpoint",
            Self::Drained => "drained",
            Self::Undo => "undo",
        }
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Hooks {
    config: config::Hooks,
    in_scopes: bool,
}

impl Hooks {
    /// Hooks of this config; in transient scopes where systemd runs the machine.
    #[must_use]
    pub fn new(config: config::Hooks) -> Self {
        let in_scopes = Path::new("/run/systemd/system").is_dir()
            && Path::new(SYSTEMD_RUN).exists()
            && nix::unistd::geteuid().is_root();
        Self { config, in_scopes }
    }

    async fn run(&self, phase: Phase, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        let result = self.all(phase, job, by).await;
        match result {
            Err(blocker) if self.config.fail_open => {
                tracing::warn!(
                    hook = blocker.subject,
                    problem = blocker.message,
                    "hook failed, ignored"
                );
                Ok(())
            }
            other => other,
        }
    }

    async fn all(&self, phase: Phase, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        for hook in list(&self.config.dir)? {
            if *job.cancel.borrow() {
                return Err(blocker(
                    &hook,
                    phase,
                    "was not run: the drain was taken back",
                ));
            }
            let mut limit = self.config.deadline;
            if let Some(by) = by {
                limit = limit.min(Duration::from_millis(by.since(BootMs::now())));
            }
            self.one(&hook, phase, job, limit).await?;
        }
        Ok(())
    }

    async fn one(
        &self,
        hook: &Path,
        phase: Phase,
        job: &Job,
        limit: Duration,
    ) -> Result<(), Blocker> {
        let mut child = self
            .command(hook, phase, job)
            .spawn()
            .map_err(|error| blocker(hook, phase, &format!("cannot be run: {error}")))?;
        let out = tokio::spawn(capped(child.stdout.take()));
        let err = tokio::spawn(capped(child.stderr.take()));
        let mut cancel = job.cancel.clone();
        let outcome = tokio::select! {
            status = child.wait() => Ok(status),
            () = tokio::time::sleep(limit) => Err(format!("did not end within {limit:?}")),
            _ = cancel.wait_for(|cancel| *cancel) => Err("was ended: the drain was taken back".to_owned()),
        };
        let outcome = match outcome {
            Ok(Ok(status)) => said(status),
            Ok(Err(error)) => Err(format!("cannot be waited for: {error}")),
            Err(why) => {
                self.end(&mut child).await;
                Err(why)
            }
        };
        let texts = tokio::time::timeout(OUTPUT_WAIT, async { (out.await, err.await) }).await;
        let last = match texts {
            Ok((Ok(out), Ok(err))) => last_line(&err).or(last_line(&out)).unwrap_or_default(),
            _ => String::new(),
        };
        let name = name_of(hook);
        tracing::info!(
            hook = name,
            phase = phase.as_str(),
            ok = outcome.is_ok(),
            last,
            "hook ended"
        );
        outcome.map_err(|why| {
            let why = if last.is_empty() {
                why
            } else {
                format!("{why}: {last}")
            };
            blocker(hook, phase, &why)
        })
    }

    fn command(&self, hook: &Path, phase: Phase, job: &Job) -> Command {
        let mut command = if self.in_scopes {
            // With --scope systemd-run moves itself to the scope and becomes the hook: same process id.
            let mut command = Command::new(SYSTEMD_RUN);
            command
                .args(["--scope", "--collect", "--quiet", "--"])
                .arg(hook);
            command
        } else {
            Command::new(hook)
        };
        let deadline_unix_s = job.deadline_unix_ms.map(|ms| (ms / 1_000).to_string());
        command
            .arg(phase.as_str())
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("LANG", "C.UTF-8")
            .env("DROVER_DRAIN_ID", &job.drain_id)
            .env("DROVER_REASON", &job.reason)
            .env("DROVER_DEADLINE_UNIX", deadline_unix_s.unwrap_or_default())
            .env("DROVER_PHASE", phase.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/")
            .process_group(0);
        command
    }

    /// TERM to its whole group, grace, KILL.
    async fn end(&self, child: &mut Child) {
        let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) else {
            return;
        };
        let group = Pid::from_raw(group);
        // A group that is gone already is what we want.
        let _gone_already = killpg(group, Signal::SIGTERM).is_err();
        if tokio::time::timeout(self.config.grace, child.wait())
            .await
            .is_err()
        {
            let _gone_already = killpg(group, Signal::SIGKILL).is_err();
            let _reaped = child.wait().await.is_ok();
        }
    }
}

#[async_trait]
impl Executor for Hooks {
    fn name(&self) -> &'static str {
        "hooks"
    }

    async fn cordon(&self, job: &Job) -> Result<(), Blocker> {
        self.run(Phase::Cordon, job, None).await
    }

    fn workloads(&self, _seen: &Observation) -> Vec<Work> {
        Vec::new()
    }

    async fn checkpoint(&self, job: &Job, by: Option<BootMs>) -> Result<(), Blocker> {
        self.run(Phase::Checkpoint, job, by).await
    }

    async fn evict(&self, _ids: &[String], _how: How) -> Result<(), Blocker> {
        Ok(())
    }

    async fn announce(&self, job: &Job) -> Result<(), Blocker> {
        self.run(Phase::Drained, job, None).await
    }

    async fn undo(&self, job: &Job, _keep_cordon: bool) -> Result<(), Blocker> {
        self.run(Phase::Undo, job, None).await
    }
}

/// Whether the hooks of this directory would be run.
///
/// # Errors
/// Which path is wrong, and why.
pub fn check_dir(dir: &Path) -> Result<(), String> {
    list(dir).map(drop).map_err(|blocker| blocker.message)
}

/// The executables of the directory by name. A missing directory holds none; one that others may write to is
/// refused, and so is such a file: they could make the agent run anything.
fn list(dir: &Path) -> Result<Vec<PathBuf>, Blocker> {
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

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn blocker(hook: &Path, phase: Phase, why: &str) -> Blocker {
    let name = name_of(hook);
    Blocker {
        kind: BlockerKind::Hook,
        message: format!("hook {name} ({}) {why}", phase.as_str()),
        subject: name,
    }
}

fn said(status: ExitStatus) -> Result<(), String> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed with {status}"))
    }
}

/// Reads to the end, keeps the first [`OUTPUT_BYTES`].
async fn capped(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else {
        return kept;
    };
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = OUTPUT_BYTES - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    kept
}

fn last_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(crate::session::convert::cut(line.trim(), 256))
}

#[cfg(test)]
mod tests;
