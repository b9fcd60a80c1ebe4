//! One hook as a process: how it is started, waited for, ended, and what is kept of its output.
//!
//! Called by `hooks`, one after another.

use super::{Hooks, Phase, SYSTEMD_RUN, blocker, name_of};
use crate::drain::executor::Job;
use crate::drain::status::Blocker;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// Bytes kept of each of a hook's two outputs; the rest is read and dropped.
pub(super) const OUTPUT_BYTES: usize = 64 * 1024;
/// How long the output of a hook that has ended may still come (a child of it may hold the pipe for ever).
const OUTPUT_WAIT: Duration = Duration::from_millis(500);

impl Hooks {
    pub(super) async fn one(
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

fn said(status: ExitStatus) -> Result<(), String> {
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed with {status}"))
    }
}

/// Reads to the end, keeps the first [`OUTPUT_BYTES`].
pub(super) async fn capped(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
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
