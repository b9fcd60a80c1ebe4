//! One running child: its pipes, its black box, its death. Used by `parent`.
//!
//! It must never wait for the child without a time limit: a process inside the driver cannot be reaped.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use crate::collector::ProbeConfig;
use crate::probe::op::{BoxReader, Mark, black_box};
use crate::probe::protocol::{Answer, MAX_ANSWER_BYTES, Request};

/// A child that has been started.
#[derive(Debug)]
pub struct Link {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    unread: Vec<u8>,
    black_box: BoxReader,
    /// When it was started.
    pub started: Instant,
}

/// What came from the child.
#[derive(Debug)]
pub enum Heard {
    /// A line.
    Answer(Answer),
    /// Its output ended.
    End,
    /// A line that is none.
    Nonsense(String),
}

/// How an asked child ended.
#[derive(Debug)]
pub enum Parted {
    /// In order: nothing of the GPUs is open any more.
    Left,
    /// By a signal or with an error, in this call.
    Died(Mark, ExitStatus),
    /// Not at all; it has been sent a KILL.
    Stuck(Mark, Child),
}

impl Link {
    /// Starts a child.
    ///
    /// # Errors
    /// When the program cannot be run or the kernel gives no memory file.
    pub fn start(config: &ProbeConfig) -> io::Result<Self> {
        let (black_box, stderr) = black_box()?;
        let mut command = Command::new(named(&config.program));
        command
            .arg("gpu-probe")
            .envs(config.environment.iter().cloned());
        if let Some(library) = &config.library {
            command.arg("--library").arg(library);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(stderr))
            .kill_on_drop(true)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
        Ok(Self {
            child,
            input: Some(input),
            output,
            unread: Vec::new(),
            black_box,
            started: Instant::now(),
        })
    }

    /// Sends a request. The pipe holds it, since only one is on its way at a time.
    ///
    /// # Errors
    /// When the child is gone.
    pub async fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&line).await
    }

    /// Waits for the next line. May be dropped and called again.
    pub async fn hear(&mut self) -> Heard {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(answer) => Heard::Answer(answer),
                    Err(error) => Heard::Nonsense(error.to_string()),
                };
            }
            if self.unread.len() > MAX_ANSWER_BYTES {
                return Heard::Nonsense("answer too long".to_owned());
            }
            match self.output.read_buf(&mut self.unread).await {
                Ok(0) | Err(_) => return Heard::End,
                Ok(_) => {}
            }
        }
    }

    /// The call that it is making.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.black_box.mark()
    }

    /// What the library printed.
    #[must_use]
    pub fn printed(&self) -> String {
        self.black_box.printed()
    }

    /// Sends a KILL and gives up the pipes; the child may take for ever to die.
    #[must_use]
    pub fn kill(mut self) -> Child {
        // It may have died by itself.
        let _gone = self.child.start_kill();
        self.child
    }

    /// Asks it to leave the driver and end, and waits so long.
    pub async fn part(mut self, limit: Duration) -> Parted {
        self.input = None;
        let until = Instant::now() + limit;
        let ended = tokio::time::timeout_at(until, async {
            // Its last answer may be longer than the pipe.
            while !matches!(self.hear().await, Heard::End) {}
            self.child.wait().await
        })
        .await;
        match ended {
            Ok(Ok(status)) if status.success() => Parted::Left,
            Ok(Ok(status)) => Parted::Died(self.mark(), status),
            Ok(Err(_)) | Err(_) => {
                let mark = self.mark();
                Parted::Stuck(mark, self.kill())
            }
        }
    }

    /// After its output ended: its exit status, or the child when it is not dead yet.
    ///
    /// # Errors
    /// The child, killed, when it does not end.
    pub async fn bury(mut self) -> Result<ExitStatus, Child> {
        match tokio::time::timeout(Duration::from_millis(500), self.child.wait()).await {
            Ok(Ok(status)) => Ok(status),
            _ => Err(self.kill()),
        }
    }
}

/// The path that /proc/self/exe stands for, so that the child has the program's name in process lists; the link itself
/// when another file is there now (an upgrade), since both ends must be the same build.
fn named(program: &Path) -> PathBuf {
    let same = |path: &PathBuf| {
        let here = std::fs::metadata(path).ok()?;
        let us = std::fs::metadata(program).ok()?;
        ((here.dev(), here.ino()) == (us.dev(), us.ino())).then_some(())
    };
    std::fs::read_link(program)
        .ok()
        .filter(|path| program.starts_with("/proc") && same(path).is_some())
        .unwrap_or_else(|| program.to_owned())
}

/// "signal 6", "exit status 1".
#[must_use]
pub fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "unknown end".to_owned(),
    }
}
