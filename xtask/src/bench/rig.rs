//! A coordinator and agents on the loopback, to be measured.
//!
//! Called by the benches. Everything lies in one directory that goes when the
//! rig goes; nothing of the person's own configuration is read or written.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::{
    exporter::free_address,
    process::{Running, wait_for},
};
use crate::command;

/// A directory that is removed when this is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("drover-bench-{}", std::process::id()));
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A running coordinator with a state directory of its own.
pub(crate) struct Coordinator {
    pub(crate) process: Running,
    pub(crate) address: SocketAddr,
    program: PathBuf,
    dir: PathBuf,
}

impl Coordinator {
    /// Starts it and waits until it serves. `report` is the interval it asks agents to report at.
    ///
    /// # Errors
    /// When it does not serve within 30 s.
    pub(crate) fn start(program: &Path, dir: &Path, report: &str) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let address = free_address()?;
        let config = dir.join("drover.toml");
        let text = format!(
            "[server]\nlisten = \"{address}\"\nnames = [\"localhost\", \"127.0.0.1\"]\nstate_dir = \"{0}/state\"\n\
             context_dir = \"{0}/config\"\n[control]\nreport_interval = \"{report}\"\n",
            dir.display()
        );
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let process = launch(program, dir)?;
        let mut coordinator = Self {
            process,
            address,
            program: program.to_owned(),
            dir: dir.to_owned(),
        };
        coordinator.serves()?;
        Ok(coordinator)
    }

    /// Starts it again on the same state, after it was ended; returns before it serves.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.process = launch(&self.program, &self.dir)?;
        Ok(())
    }

    fn serves(&mut self) -> Result<()> {
        let log = self.dir.join("serve.log");
        wait_for("the coordinator's port", Duration::from_secs(30), || {
            self.process.alive().with_context(|| tail(&log))?;
            Ok(TcpStream::connect(self.address).ok())
        })?;
        // The port opens before the first admin context is used; the CLI says when both work.
        wait_for("the coordinator's answer", Duration::from_secs(30), || {
            Ok(self.cli(&["status", "-o", "json"]).ok())
        })?;
        Ok(())
    }

    /// Runs the admin CLI against it; gives stdout.
    ///
    /// # Errors
    /// When it exits with another code than 0.
    pub(crate) fn cli(&self, args: &[&str]) -> Result<String> {
        command::stdout(
            Command::new(&self.program)
                .args(args)
                .env("HOME", &self.dir)
                .env_remove("DROVER_CONTEXT")
                .env("DROVER_CONFIG_DIR", self.dir.join("config")),
        )
    }

    /// A join token for so many nodes.
    ///
    /// # Errors
    /// When the CLI refuses, or prints no token.
    pub(crate) fn token(&self, uses: u32) -> Result<String> {
        let text = self.cli(&[
            "tokens",
            "create",
            "--uses",
            &uses.to_string(),
            "--ttl",
            "1h",
            "-o",
            "json",
        ])?;
        let reply: serde_json::Value =
            serde_json::from_str(&text).context("tokens create printed no JSON")?;
        let token = reply.get("text").and_then(serde_json::Value::as_str);
        token
            .map(str::to_owned)
            .with_context(|| format!("tokens create printed no token text: {text}"))
    }

    /// How many nodes it knows.
    ///
    /// # Errors
    /// When the CLI refuses, or prints no list.
    pub(crate) fn nodes(&self) -> Result<usize> {
        let text = self.cli(&["nodes", "list", "-o", "json"])?;
        let nodes: Vec<serde_json::Value> =
            serde_json::from_str(&text).context("nodes list printed no list")?;
        Ok(nodes.len())
    }

    /// What it says of the fleet.
    ///
    /// # Errors
    /// When the CLI refuses, or prints something else.
    pub(crate) fn status(&self) -> Result<Status> {
        let text = self.cli(&["status", "-o", "json"])?;
        serde_json::from_str(&text).with_context(|| format!("status printed {text}"))
    }
}

/// The part of `drover status` that benches look at.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
pub(crate) struct Status {
    /// Nodes that take work and are heard.
    pub(crate) nodes_ready: u32,
    /// GPUs of all nodes, and those that work holds.
    pub(crate) gpus: u32,
    pub(crate) gpus_busy: u32,
    /// Control cycles since the start, and what the last one took.
    pub(crate) cycles: u64,
    pub(crate) last_cycle_us: u64,
}

fn launch(program: &Path, dir: &Path) -> Result<Running> {
    Running::start(
        "drover serve",
        Command::new(program)
            .args(["serve", "--config"])
            .arg(dir.join("drover.toml"))
            .env("HOME", dir)
            .env("DROVER_CONFIG_DIR", dir.join("config")),
        &dir.join("serve.log"),
    )
}

/// The end of a log, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
