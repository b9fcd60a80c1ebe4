//! Running other programs: cargo in the clone's root, output captured or passed on.
//!
//! Called by every command. Knows nothing about what it runs.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// The cargo that started us, in the root of the clone.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    // `cargo run` sets these for us; a nested cargo must not see the values of xtask's own package.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs to the end, output passed on; true when it exited with 0.
///
/// # Errors
/// When the program cannot be started.
pub(crate) fn passes(command: &mut Command) -> Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    Ok(status.success())
}

/// Runs to the end and gives what it wrote to stdout.
///
/// # Errors
/// When it cannot be started or exits with another code than 0; the message holds its stderr.
pub(crate) fn stdout(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            name(command),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end and hands on each line of its stdout as it comes; stderr is passed on.
///
/// # Errors
/// When it cannot be started or exits with another code than 0, or `take` fails.
pub(crate) fn lines(command: &mut Command, mut take: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    let mut taken = Ok(());
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            taken = line.map_err(Into::into).and_then(|line| take(&line));
            if taken.is_err() {
                break;
            }
        }
    }
    // When a line was refused, its pipe is closed by now: it ends.
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for {}", name(command)))?;
    taken?;
    if !status.success() {
        bail!("{} failed: {status}", name(command));
    }
    Ok(())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
