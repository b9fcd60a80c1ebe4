//! `cargo xtask test [FILTER...]`: build once, run every test of the workspace, count.
//!
//! Called by people and by `.ci/run`. It prepares the machine and the build;
//! what the tests start (coordinators, agents, moto) they start and stop themselves.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::{
    command, peers, tools,
    workspace::{self, FEATURES},
};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only tests whose full name contains one of these.
    filter: Vec<String>,
}

/// Runs the tests; true when all passed and at least one ran.
///
/// # Errors
/// When the machine lacks a tool, a peer cannot be installed or cargo cannot be started.
pub(crate) fn run(args: &Args) -> Result<bool> {
    tools::check()?;
    let peers = peers::install()?;

    let built = command::passes(command::cargo().args([
        "build",
        "--workspace",
        "--all-targets",
        "--features",
        FEATURES,
    ]))?;
    if !built {
        eprintln!("xtask: the build failed, so no test ran");
        return Ok(false);
    }

    let mut cargo = command::cargo();
    cargo
        .args([
            "test",
            "--workspace",
            "--features",
            FEATURES,
            "--no-fail-fast",
            "--",
        ])
        .args(&args.filter)
        .env("DROVER_BIN", workspace::built("debug", "drover"))
        .env(
            "DROVER_AGENT_BIN",
            workspace::built("debug", "drover-agent"),
        )
        .env(
            "DROVER_NVML_STUB_LIB",
            workspace::built("debug", "libdrover_nvml_stub.so"),
        )
        .env(
            "DROVER_CLOCK_SHIFT_LIB",
            workspace::built("debug", "libdrover_clock_shift.so"),
        )
        .env("DROVER_MOTO_SERVER", peers.moto_server)
        .env("DROVER_TERRAFORM", peers.terraform);
    let (tally, exited_well) = stream(&mut cargo)?;

    let counted = tally.closed(exited_well);
    if tally.failed == 0 && counted.failed > 0 {
        eprintln!(
            "xtask: cargo test failed although no test did: a test binary died, or did not build"
        );
    }
    if counted.passed + counted.failed == 0 {
        eprintln!("xtask: no test matched {}", args.filter.join(" "));
    }
    println!("{} passed, {} failed", counted.passed, counted.failed);
    Ok(counted.failed == 0 && counted.passed > 0)
}

/// Tests counted over all test binaries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Adds one line of output, if it is a test binary's closing line:
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some((_, rest)) = line.split_once("test result: ") else {
            return;
        };
        for part in rest.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                _ => {}
            }
        }
    }

    /// The final count: a run that cargo calls failed has at least one failure.
    fn closed(self, exited_well: bool) -> Self {
        let failed = if exited_well {
            self.failed
        } else {
            self.failed.max(1)
        };
        Self { failed, ..self }
    }
}

/// Passes stdout on line by line and counts; stderr goes straight through.
fn stream(cargo: &mut Command) -> Result<(Tally, bool)> {
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no stdout")?;
    let mut tally = Tally::default();
    let mut out = std::io::stdout().lock();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read cargo test's output")?;
        tally.add(&String::from_utf8_lossy(&line));
        out.write_all(&line)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush())
            .context("cannot pass output on")?;
    }
    let status = child.wait().context("cannot wait for cargo test")?;
    Ok((tally, status.success()))
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn closing_lines_of_all_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a::passed ... ok",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.02s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s",
        ] {
            tally.add(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 7,
                failed: 2
            }
        );
    }

    #[test]
    fn a_binary_that_died_counts_as_a_failure() {
        let all_passed = Tally {
            passed: 7,
            failed: 0,
        };
        assert_eq!(all_passed.closed(true).failed, 0);
        assert_eq!(all_passed.closed(false).failed, 1);
        assert_eq!(
            Tally {
                passed: 7,
                failed: 3
            }
            .closed(false)
            .failed,
            3
        );
    }
}
