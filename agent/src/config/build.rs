//! From the keys of a config file to the agent's structs, with what each key may say.
//!
//! Called by `config`. Reads the token file that is named; everything else it needs is in the text. How the node joins
//! and drains is in files of their own.

mod drain;
pub(super) mod join;

use std::path::PathBuf;
use std::time::Duration;

use drover_config::Section;
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::{Config, Gpu, Hooks, Join, Log, LogFormat, Metadata, Notices, OnSpot};

const MS: fn(u64) -> Duration = Duration::from_millis;
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn build(root: &Section<'_>) -> Config {
    let coordinator = join::coordinator(root);
    let server_name = root
        .text("server_name", "leave it out")
        .map_or(drover_proto::limits::COORDINATOR_NAME.to_owned(), |at| {
            at.value
        });
    let token = join::join_token(root);
    let section = root.section("join");
    let join = join::join(root, &section, token);
    section.finish();
    let state_dir = path_or(root, "state_dir", "/var/lib/drover-agent");
    let hostname = root.text("hostname", "write a host name or leave it out");
    let machine_id = root.text("machine_id", "write 32 hex digits or leave it out");

    let section = root.section("intervals");
    let report_interval = section
        .duration("report", MS(100)..=DAY, "5s")
        .unwrap_or(MS(5_000));
    section.finish();

    let section = root.section("gpu");
    let gpu = Gpu {
        library: section.absolute("library"),
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
    let drain = drain::drain(&section);
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

    Config {
        coordinator,
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
    }
}

/// A level, or `target=level` parts. A bare word that is no level would be taken for a target, and all else be silent.
fn is_filter(text: &str) -> bool {
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    text.split(',').all(|part| match part.split_once('=') {
        Some((target, level)) => !target.trim().is_empty() && is_level(level),
        None => is_level(part),
    }) && text.parse::<Targets>().is_ok()
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

/// One of some words; where it is not said or wrong, the default.
fn choice<T: Copy>(
    section: &Section<'_>,
    key: &'static str,
    choices: &[(&str, T)],
    default: T,
) -> T {
    let found = section.choice(key, choices);
    found.map_or(default, |at| at.value)
}

fn path_or(section: &Section<'_>, key: &'static str, default: &str) -> PathBuf {
    let found = section.absolute(key);
    found.unwrap_or_else(|| PathBuf::from(default))
}
