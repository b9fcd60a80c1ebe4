//! The agent's config file: TOML, unknown keys refused, every problem told in one run with line and fix.
//!
//! Called by the CLI. Reads the file (and the token file it names) and decides nothing else; the rest of the
//! agent gets the plain structs of here.

pub mod duration;
mod reader;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use reader::Problem;
use reader::{At, Reader, Section};

use crate::identity::token::JoinToken;

/// Everything that `drover-agent run` needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// The name that its certificate must carry.
    pub server_name: String,
    /// Needed until the node is enrolled.
    pub join_token: Option<JoinToken>,
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
    /// How drains are carried out.
    pub drain: Drain,
    /// Executables that are told of drains.
    pub hooks: Hooks,
    /// What is logged, and how.
    pub log: Log,
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

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", render(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All of it, by line.
        problems: Vec<Problem>,
    },
}

fn render(path: &Path, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let key = if problem.key.is_empty() {
                String::new()
            } else {
                format!("{} ", problem.key)
            };
            format!(
                "{}:{}: {key}{}; {}",
                path.display(),
                problem.line,
                problem.message,
                problem.fix
            )
        })
        .collect();
    lines.join("\n")
}

/// Reads and checks a config file.
///
/// # Errors
/// The file cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problems| ConfigError::Wrong {
        path: path.to_owned(),
        problems,
    })
}

/// Checks a config's text.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    let reader = Reader::new(text);
    let (table, broken) = toml::de::DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        for error in broken {
            let at = error.span().map_or(0, |span| span.start);
            let fix = "write TOML: key = \"value\"";
            reader.report(at, "", error.message().to_owned(), fix);
        }
        return Err(reader.into_problems());
    }
    let config = build(&reader, &table);
    let problems = reader.into_problems();
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems),
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;
const DAY: Duration = Duration::from_secs(86_400);

fn build(reader: &Reader<'_>, table: &toml::Spanned<toml::de::DeTable<'_>>) -> Option<Config> {
    let root = Section::root(reader, table.get_ref());
    let coordinator = coordinator(&root);
    let server_name = root
        .text("server_name", "leave it out")
        .map_or(drover_proto::limits::COORDINATOR_NAME.to_owned(), |at| {
            at.value
        });
    let join_token = join_token(&root);
    let state_dir = path_or(&root, "state_dir", "/var/lib/drover-agent");
    let hostname = root.text("hostname", "write a host name or leave it out");
    let machine_id = root.text("machine_id", "write 32 hex digits or leave it out");

    let section = root.section("intervals");
    let report_interval = section
        .duration("report", MS(100)..=DAY, "5s")
        .unwrap_or(MS(5_000));
    section.finish();

    let section = root.section("gpu");
    let gpu = Gpu {
        library: absolute(&section, "library"),
        deadline: section
            .duration("deadline", MS(100)..=MS(60_000), "2s")
            .unwrap_or(MS(2_000)),
    };
    section.finish();

    let section = root.section("metadata");
    let metadata = metadata(&section);
    section.finish();

    let section = root.section("drain");
    let drain = drain(&section);
    section.finish();

    let section = root.section("hooks");
    let hooks = Hooks {
        dir: path_or(&section, "dir", "/etc/drover-agent/hooks.d"),
        deadline: section
            .duration("deadline", MS(100)..=DAY, "60s")
            .unwrap_or(MS(60_000)),
        grace: section
            .duration("grace", MS(0)..=MS(600_000), "10s")
            .unwrap_or(MS(10_000)),
        fail_open: choice(
            &section,
            "on_failure",
            &[("block", false), ("ignore", true)],
            false,
        ),
    };
    section.finish();

    let section = root.section("log");
    let log = Log {
        level: section
            .text("level", "write a level, as in level = \"info\"")
            .map_or("info".to_owned(), |at| {
                if at
                    .value
                    .parse::<tracing_subscriber::filter::Targets>()
                    .is_err()
                {
                    let fix = "write error, warn, info, debug or trace";
                    section.report(at.offset, "level", "is no level", fix);
                }
                at.value
            }),
        format: choice(
            &section,
            "format",
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            LogFormat::Text,
        ),
    };
    section.finish();
    root.finish();

    Some(Config {
        coordinator: coordinator?,
        server_name,
        join_token,
        state_dir,
        hostname: hostname.map(|at| at.value),
        machine_id: machine_id.map(|at| at.value),
        report_interval,
        gpu,
        metadata,
        drain,
        hooks,
        log,
    })
}

fn coordinator(root: &Section<'_>) -> Option<Address> {
    let fix = "write coordinator = \"https://HOST:7443\"";
    let before = root.offset();
    let Some(at) = root.text("coordinator", fix) else {
        root.report(before, "coordinator", "is required", fix);
        return None;
    };
    let found = address(&at.value);
    if found.is_none() {
        root.report(
            at.offset,
            "coordinator",
            "is no https:// address with a port",
            fix,
        );
    }
    found
}

/// "https://HOST:PORT", nothing behind it but one slash.
fn address(text: &str) -> Option<Address> {
    let rest = text.strip_prefix("https://")?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    (!host.is_empty() && host.chars().all(plain)).then(|| Address {
        host: host.to_owned(),
        port,
    })
}

fn join_token(root: &Section<'_>) -> Option<JoinToken> {
    let fix = "paste the text that `drover tokens create` printed";
    let inline = root.text("join_token", fix);
    let file = root.text(
        "join_token_file",
        "write the path of the file with the token",
    );
    let (key, at, text) = match (inline, file) {
        (Some(_), Some(file)) => {
            let message = "stands beside join_token";
            root.report(
                file.offset,
                "join_token_file",
                message,
                "keep one of the two",
            );
            return None;
        }
        (Some(inline), None) => ("join_token", inline.offset, inline.value),
        (None, Some(At { value, offset })) => match std::fs::read_to_string(&value) {
            Ok(text) => ("join_token_file", offset, text),
            Err(error) => {
                // An enrolled node lives on without it: the file may have been taken away.
                if error.kind() != std::io::ErrorKind::NotFound {
                    let message = format!("cannot be read ({error})");
                    root.report(offset, "join_token_file", &message, "make it readable");
                }
                return None;
            }
        },
        (None, None) => return None,
    };
    match text.parse() {
        Ok(token) => Some(token),
        Err(error) => {
            root.report(at, key, &error.to_string(), fix);
            None
        }
    }
}

fn metadata(section: &Section<'_>) -> Metadata {
    let fix = "write \"auto\", \"off\" or \"http://HOST:PORT\"";
    let Some(at) = section.text("endpoint", fix) else {
        return Metadata::Auto;
    };
    match at.value.as_str() {
        "auto" => Metadata::Auto,
        "off" => Metadata::Off,
        url if url.starts_with("http://") && url.len() > 7 => Metadata::Endpoint(at.value),
        _ => {
            section.report(at.offset, "endpoint", "is no endpoint", fix);
            Metadata::Off
        }
    }
}

fn drain(section: &Section<'_>) -> Drain {
    let fix = "write executors = [\"processes\", \"hooks\"]";
    let mut executors = Vec::new();
    let named = section.texts("executors", fix);
    for at in named.iter().flatten() {
        let kind = match at.value.as_str() {
            "processes" => ExecutorKind::Processes,
            "hooks" => ExecutorKind::Hooks,
            other => {
                let message = format!("names an unknown executor {other:?}");
                section.report(at.offset, "executors", &message, "known: processes, hooks");
                continue;
            }
        };
        if executors.contains(&kind) {
            let message = format!("names {} twice", at.value);
            section.report(at.offset, "executors", &message, "name it once");
        } else {
            executors.push(kind);
        }
    }
    if named.is_none() {
        executors.push(ExecutorKind::Processes);
    }
    let processes = section
        .sections("process")
        .into_iter()
        .map(|matcher| {
            let fix = "write a text to match";
            let found = ProcessMatcher {
                name: matcher.text("name", fix).map(|at| at.value),
                command: matcher.text("command", fix).map(|at| at.value),
                user: matcher.text("user", fix).map(|at| at.value),
            };
            if found == ProcessMatcher::default() {
                let fix = "set name, command or user";
                matcher.report(
                    matcher.offset(),
                    "name",
                    "is missing: it would match nothing",
                    fix,
                );
            }
            matcher.finish();
            found
        })
        .collect();
    Drain {
        executors,
        processes,
        word_limit: section
            .duration("word_limit", MS(100)..=MS(60_000), "60s")
            .unwrap_or(MS(60_000)),
    }
}

fn choice<T: Copy>(
    section: &Section<'_>,
    key: &'static str,
    choices: &[(&str, T)],
    default: T,
) -> T {
    let names: Vec<String> = choices
        .iter()
        .map(|(name, _)| format!("{name:?}"))
        .collect();
    let fix = format!("write {}", names.join(" or "));
    let Some(at) = section.text(key, &fix) else {
        return default;
    };
    match choices.iter().find(|(name, _)| *name == at.value) {
        Some((_, value)) => *value,
        None => {
            section.report(
                at.offset,
                key,
                &format!("{:?} is none of the choices", at.value),
                &fix,
            );
            default
        }
    }
}

fn absolute(section: &Section<'_>, key: &'static str) -> Option<PathBuf> {
    let fix = "write an absolute path";
    let at = section.text(key, fix)?;
    let path = PathBuf::from(&at.value);
    if !path.is_absolute() {
        section.report(at.offset, key, "is a relative path", fix);
    }
    Some(path)
}

fn path_or(section: &Section<'_>, key: &'static str, default: &str) -> PathBuf {
    absolute(section, key).unwrap_or_else(|| PathBuf::from(default))
}

#[cfg(test)]
mod tests;
