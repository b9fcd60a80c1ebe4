//! The agent's config file: TOML, unknown keys refused, every problem told in one run with line and fix.
//!
//! Called by the CLI. Reads the file (and the token file it names) and decides nothing else; the rest of the
//! agent gets the plain structs of here.

mod build;
pub mod host;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drover_config::{FileError, Problem, read};

use crate::identity::token::{CaHash, JoinToken};

/// Everything that `drover-agent run` needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// The name that its certificate must carry.
    pub server_name: String,
    /// What the node proves itself with until it is enrolled.
    pub join: Join,
    /// Where identity, order and drain state live.
    pub state_dir: PathBuf,
    /// Reported instead of the kernel's host name (several agents on one machine).
    pub hostname: Option<String>,
    /// Reported instead of /etc/machine-id.
    pub machine_id: Option<String>,
    /// How often the host is measured before the coordinator says otherwise.
    pub report_interval: Duration,
    /// The GPU probe.
    pub gpu: Gpu,
    /// The cloud's metadata service.
    pub metadata: Metadata,
    /// What the cloud tells of the instance.
    pub notices: Notices,
    /// How drains are carried out.
    pub drain: Drain,
    /// Executables that are told of drains.
    pub hooks: Hooks,
    /// What is logged, and how.
    pub log: Log,
}

/// What a node that is not enrolled proves itself with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Join {
    /// Nothing: an enrolled node lives on without.
    #[default]
    Nothing,
    /// A join token.
    Token(JoinToken),
    /// What the metadata of its EC2 instance says of it.
    InstanceIdentity {
        /// The CA that the coordinator must prove.
        ca: CaHash,
    },
}

/// Host and port, never resolved before it is dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address, an IPv6 one without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The GPU probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Path of libnvidia-ml; `None`: found by the loader.
    pub library: Option<PathBuf>,
    /// How long one round of the probe may take.
    pub deadline: Duration,
}

/// The cloud's metadata service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metadata {
    /// Asked at its well-known address.
    Auto,
    /// Never asked.
    Off,
    /// Asked here.
    Endpoint(String),
}

/// What the cloud tells of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notices {
    /// How often it is asked.
    pub poll: Duration,
    /// Whether a spot notice begins a drain without an order.
    pub on_spot: OnSpot,
    /// Between TERM and KILL in such a drain.
    pub grace: Duration,
}

/// Whether a spot notice begins a drain without an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSpot {
    /// When the coordinator cannot be heard.
    Alone,
    /// Whatever the coordinator says.
    AtOnce,
    /// It is only told.
    Never,
}

/// One thing that carries out a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorKind {
    /// What holds a GPU or matches a matcher.
    Processes,
    /// Executables in a directory.
    Hooks,
}

/// How drains are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// In the order in which they cordon; undone in reverse.
    pub executors: Vec<ExecutorKind>,
    /// Processes that count as work although they hold no GPU.
    pub processes: Vec<ProcessMatcher>,
    /// How old the coordinator's word may be for a destructive step.
    pub word_limit: Duration,
}

/// Names processes; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessMatcher {
    /// The process name (comm), exactly.
    pub name: Option<String>,
    /// A part of the command line.
    pub command: Option<String>,
    /// User name or number, exactly.
    pub user: Option<String>,
}

/// Executables that are told of drains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// Where they lie.
    pub dir: PathBuf,
    /// How long one may run.
    pub deadline: Duration,
    /// Between TERM and KILL once it is over.
    pub grace: Duration,
    /// A failed hook does not stop the drain.
    pub fail_open: bool,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// A level ("info") or tracing's filter ("drover_agent=debug").
    pub level: String,
    /// Shape of the lines.
    pub format: LogFormat,
}

/// Reads and checks a config file.
///
/// # Errors
/// The file cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<Config, FileError> {
    drover_config::load(path, parse)
}

/// Reads and checks a config file, and what it names on this host; gives what the agent will change at its start.
///
/// # Errors
/// As [`load`], and what is wrong on this host.
pub fn check(path: &Path) -> Result<Vec<String>, FileError> {
    drover_config::load(path, |text| {
        let host::Look { problems, notes } = host::look(&parse(text)?, text);
        if problems.is_empty() {
            Ok(notes)
        } else {
            Err(problems)
        }
    })
}

/// Checks a config's text.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    read(text, build::build)
}

#[cfg(test)]
mod tests;
