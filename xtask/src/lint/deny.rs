//! The lint step that runs `cargo deny` over licences, bans and sources.
//!
//! Called by `lint`. Installs the pinned cargo-deny outside the clone when it is
//! missing. Advisories are left out: their database cannot be reached everywhere.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use crate::{command, lint::Verdict, workspace};

const VERSION: &str = "0.20.2";

pub(super) fn run() -> Result<Verdict> {
    let program = installed()?;
    let passed = command::passes(
        Command::new(program)
            .current_dir(workspace::root())
            .args(["--workspace", "--features", workspace::FEATURES])
            .args([
                "check",
                "--hide-inclusion-graph",
                "licenses",
                "bans",
                "sources",
            ]),
    )?;
    Ok(if passed {
        Verdict::Passed
    } else {
        Verdict::Failed
    })
}

/// The pinned cargo-deny, installed now if it is not there.
fn installed() -> Result<PathBuf> {
    let tools = workspace::cache_dir()?.join("tools");
    let program = tools.join("bin/cargo-deny");
    if version(&program).is_some_and(|found| found == VERSION) {
        return Ok(program);
    }
    eprintln!(
        "xtask: installing cargo-deny {VERSION} into {}; minutes, once",
        tools.display()
    );
    let made = command::passes(
        command::cargo()
            // Not from the clone: its configuration must not shape the tool's build.
            .current_dir(std::env::temp_dir())
            .env_remove("RUSTFLAGS")
            .args([
                "install",
                "cargo-deny",
                "--locked",
                "--version",
                VERSION,
                "--root",
            ])
            .arg(&tools)
            .arg("--target-dir")
            .arg(tools.join("build")),
    )?;
    if !made {
        bail!("cargo could not install cargo-deny {VERSION}");
    }
    // Its build directory is big and of no further use.
    drop(std::fs::remove_dir_all(tools.join("build")));
    Ok(program)
}

/// The version that the program itself gives: `cargo-deny 0.20.2`.
fn version(program: &Path) -> Option<String> {
    let text = command::stdout(Command::new(program).arg("--version")).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}
