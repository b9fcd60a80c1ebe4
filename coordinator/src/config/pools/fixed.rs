//! The keys of a `[[pool]]` of kind `static`.
//!
//! Called by `config::pools`.

use super::{PowerCommands, Seen, StaticPool};
use crate::config::{DAY, SECOND, millis, values};
use drover_config::Section;
use drover_core::model::{Bytes, InstanceId, MilliCpu, Millis, Resources};
use std::collections::BTreeMap;

/// Letters, digits, dots, dashes (and underscores, which some give); at most 253.
fn host_name(name: &str) -> bool {
    name.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

pub(super) fn fixed(section: &Section<'_>, owner: &str, seen: &mut Seen) -> StaticPool {
    let fix = "write hosts = [\"titan-01\", \"titan-02\"]";
    section.require("hosts", fix);
    let hosts = section.texts("hosts", fix);
    let mut ids = Vec::new();
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        section.report(section.offset(), "hosts", "is an empty list", fix);
    }
    for at in hosts.into_iter().flatten() {
        if !host_name(&at.value) {
            let message = format!("{:?} is no host name", at.value);
            let fix = "write the name as `hostname` says it on the host: letters, digits, dots and dashes";
            section.report(at.offset, "hosts", &message, fix);
        }
        if let Some(other) = seen.hosts.insert(at.value.clone(), owner.to_owned()) {
            let message = format!("names {} again (it is in pool {other})", at.value);
            section.report(at.offset, "hosts", &message, "name each host once");
        } else {
            ids.push(InstanceId(at.value));
        }
    }
    let gpus = section.count("gpus", 0..=64).map_or(0, |at| at.value);
    let model = section.text("gpu_model", "write gpu_model = \"titan-x\" or leave it out");
    let cpus = section.count("cpus", 0..=4_096).map_or(0, |at| at.value);
    let memory = section
        .parsed("memory", "64GiB", values::size)
        .unwrap_or(Bytes::ZERO);
    let command = |key: &'static str| {
        let fix = format!("write {key} = [\"/path/of/program\", \"argument\"]");
        let texts = section.texts(key, &fix)?;
        if texts.is_empty() {
            section.report(section.offset(), key, "is an empty list", &fix);
        }
        Some(texts.into_iter().map(|at| at.value).collect())
    };
    StaticPool {
        hosts: ids,
        allocatable: Resources {
            gpu_milli: 0,
            cpu: MilliCpu(u64::from(cpus) * 1_000),
            memory,
            gpus,
            extended: BTreeMap::new(),
        },
        gpu_model: model.map(|at| at.value).unwrap_or_default(),
        power: PowerCommands {
            on: command("power_on"),
            off: command("power_off"),
            timeout: section
                .duration("power_timeout", SECOND..=DAY, "5m")
                .map_or(Millis::minutes(5), millis),
        },
    }
}
