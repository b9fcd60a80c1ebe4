//! Installs the real software that the tests run against, outside the clone.
//!
//! Called by `test`. Each peer is installed once per version and then only
//! looked at. Starting and stopping peers is the tests' own work.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{command, workspace};

const MOTO_VERSION: &str = "5.2.5";
/// What moto was tested with; a later release of a dependency must not change a test's outcome.
const MOTO_CONSTRAINTS: &str = include_str!("peers/moto-constraints.txt");
const STAMP: &str = "drover-complete";

/// The installed peers, as the tests are told of them.
pub(crate) struct Peers {
    /// moto's server program (`DROVER_MOTO_SERVER`).
    pub(crate) moto_server: PathBuf,
    /// Terraform (`DROVER_TERRAFORM`).
    pub(crate) terraform: PathBuf,
}

/// Installs what is missing and gives the paths.
///
/// # Errors
/// When a peer cannot be installed; the message says which and how to try by hand.
pub(crate) fn install() -> Result<Peers> {
    let dir = dir()?;
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let lock_path = dir.join("lock");
    let lock = File::create(&lock_path)
        .with_context(|| format!("cannot create {}", lock_path.display()))?;
    lock.lock()
        .with_context(|| format!("cannot lock {}", lock_path.display()))?;
    let moto_server = moto(&dir)?;
    Ok(Peers {
        moto_server,
        terraform: terraform()?,
    })
}

/// `DROVER_PEERS`, or `peers` in the cache.
fn dir() -> Result<PathBuf> {
    match env::var_os("DROVER_PEERS").filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok(workspace::root().join(dir)),
        None => Ok(workspace::cache_dir()?.join("peers")),
    }
}

fn moto(dir: &Path) -> Result<PathBuf> {
    let venv = dir.join(format!("moto-{MOTO_VERSION}"));
    let server = venv.join("bin/moto_server");
    let stamp = venv.join(STAMP);
    let complete = fs::read_to_string(&stamp).is_ok_and(|text| text == MOTO_CONSTRAINTS);
    if complete && moto_version(&venv).is_some_and(|found| found == MOTO_VERSION) {
        return Ok(server);
    }
    eprintln!(
        "xtask: installing moto {MOTO_VERSION} into {}",
        venv.display()
    );
    if venv.exists() {
        fs::remove_dir_all(&venv).with_context(|| format!("cannot clear {}", venv.display()))?;
    }
    let made = command::passes(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    if !made {
        bail!("python3 -m venv failed; get it: apt-get install python3-venv");
    }
    let constraints = venv.join("constraints.txt");
    fs::write(&constraints, MOTO_CONSTRAINTS)
        .with_context(|| format!("cannot write {}", constraints.display()))?;
    let installed = command::passes(
        Command::new(venv.join("bin/pip"))
            .args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .arg("--constraint")
            .arg(&constraints)
            .arg(format!("moto[server,ec2,autoscaling]=={MOTO_VERSION}")),
    )?;
    if !installed {
        bail!(
            "pip could not install moto {MOTO_VERSION}; it needs Python's package index once, \
             later runs use {}",
            venv.display()
        );
    }
    fs::write(&stamp, MOTO_CONSTRAINTS)
        .with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(server)
}

/// Terraform comes as its maker's own program, from no package index: it is looked for and not installed.
fn terraform() -> Result<PathBuf> {
    let named = env::var_os("DROVER_TERRAFORM").filter(|program| !program.is_empty());
    let program = named.map_or_else(|| PathBuf::from("terraform"), PathBuf::from);
    match command::stdout(Command::new(&program).args(["version", "-json"])) {
        Ok(_) => Ok(program),
        Err(error) => bail!(
            "{} does not run ({error:#}); the tests of packer/terraform need Terraform 1.11 or newer: \
             https://developer.hashicorp.com/terraform/install, on PATH or named in DROVER_TERRAFORM",
            program.display()
        ),
    }
}

/// The version that is really importable there; none when the environment is broken.
fn moto_version(venv: &Path) -> Option<String> {
    let text = command::stdout(Command::new(venv.join("bin/python")).args([
        "-c",
        "import importlib.metadata as m; print(m.version('moto'))",
    ]))
    .ok()?;
    Some(text.trim().to_owned())
}
