//! From the keys of a config file to the agent's structs, with what each key may say.
//!
//! Called by `config`. Reads the token file that is named; everything else it needs is in the text.

use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};

use super::reader::{At, Reader, Section};
use super::{
    Address, Config, Drain, ExecutorKind, Gpu, Hooks, Join, Log, LogFormat, Metadata, Notices,
    OnSpot, ProcessMatcher,
};
use crate::identity::token::{CaHash, JoinToken};

const MS: fn(u64) -> Duration = Duration::from_millis;
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn build(
    reader: &Reader<'_>,
    table: &toml::Spanned<toml::de::DeTable<'_>>,
) -> Option<Config> {
    let root = Section::root(reader, table.get_ref());
    let coordinator = coordinator(&root);
    let server_name = root
        .text("server_name", "leave it out")
        .map_or(drover_proto::limits::COORDINATOR_NAME.to_owned(), |at| {
            at.value
        });
    let token = join_token(&root);
    let section = root.section("join");
    let join = join(&root, &section, token);
    section.finish();
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
    if metadata == Metadata::Off && matches!(join, Join::InstanceIdentity { .. }) {
        let message = "is \"off\", and join.method = \"instance-identity\" needs instance metadata";
        let fix = "write endpoint = \"auto\"";
        section.report(section.offset(), "endpoint", message, fix);
    }
    section.finish();

    let section = root.section("notices");
    let notices = Notices {
        poll: section
            .duration("poll", MS(100)..=MS(60_000), "5s")
            .unwrap_or(MS(5_000)),
        on_spot: choice(
            &section,
            "drain_on_spot",
            &[
                ("alone", OnSpot::Alone),
                ("at_once", OnSpot::AtOnce),
                ("never", OnSpot::Never),
            ],
            OnSpot::Alone,
        ),
        grace: section
            .duration("grace", MS(0)..=MS(90_000), "30s")
            .unwrap_or(MS(30_000)),
    };
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
                if !is_filter(&at.value) {
                    let fix = "write error, warn, info, debug or trace";
                    let message = format!("{:?} is no level", at.value);
                    section.report(at.offset, "level", &message, fix);
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
        join,
        state_dir,
        hostname: hostname.map(|at| at.value),
        machine_id: machine_id.map(|at| at.value),
        report_interval,
        gpu,
        metadata,
        notices,
        drain,
        hooks,
        log,
    })
}

/// A level, or `target=level` parts. A bare word that is no level would be taken for a target, and all else be silent.
fn is_filter(text: &str) -> bool {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    text.split(',').all(|part| match part.split_once('=') {
        Some((target, level)) => !target.trim().is_empty() && is_level(level),
        None => is_level(part),
    }) && text.parse::<Targets>().is_ok()
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
pub(super) fn address(text: &str) -> Option<Address> {
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

/// `[join]`, beside the keys of a token.
fn join(root: &Section<'_>, section: &Section<'_>, token: Option<JoinToken>) -> Join {
    let by_instance = choice(
        section,
        "method",
        &[("token", false), ("instance-identity", true)],
        false,
    );
    let fix = "write the CA's SHA-256 as 64 hex digits: `drover serve` logs it, and every join token ends in it";
    let ca = section.text("ca_sha256", fix);
    let hash = ca.as_ref().map(|at| {
        let mut bytes = [0; 32];
        let read = hex::decode_to_slice(at.value.trim(), &mut bytes);
        if read.is_err() {
            section.report(at.offset, "ca_sha256", "is not 64 hex digits", fix);
        }
        CaHash(bytes)
    });
    match (by_instance, hash) {
        (false, None) => token.map_or(Join::Nothing, Join::Token),
        (false, Some(_)) => {
            let at = ca.map_or(section.offset(), |at| at.offset);
            let message =
                "stands without method = \"instance-identity\": a join token carries its own";
            section.report(at, "ca_sha256", message, "leave it out");
            Join::Nothing
        }
        (true, None) => {
            section.report(section.offset(), "ca_sha256", "is required", fix);
            Join::Nothing
        }
        (true, Some(ca)) => {
            for key in ["join_token", "join_token_file"] {
                if root.has(key) {
                    let message = format!("stands beside {key}");
                    section.report(section.offset(), "method", &message, "keep one of the two");
                }
            }
            Join::InstanceIdentity { ca }
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
