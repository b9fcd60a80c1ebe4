//! `[[simulate.job]]`: jobs that stand in the config itself, so that a small scenario is one file.
//!
//! Read by `config`, written by `scenario`.

use super::trace::Job;
use crate::config;
use drover_config::Section;
use drover_core::model::{Locality, MilliCpu, Millis, Resources};
use std::time::Duration;

const YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);
const LOCALITIES: [(&str, Locality); 5] = [
    ("node", Locality::Node),
    ("pool", Locality::Pool),
    ("zone", Locality::Zone),
    ("site", Locality::Site),
    ("any", Locality::Any),
];

/// Reads one job.
pub(super) fn read(section: &Section<'_>) -> Option<Job> {
    let id = section.text("id", "write id = \"job-1\"");
    let span = |key: &'static str, example: &str| {
        let found = section.duration(key, Duration::ZERO..=YEARS, example);
        found.map(config::millis)
    };
    let submit = span("submit", "10m");
    let duration = span("duration", "2h");
    let number = |key: &'static str| section.count(key, 0..=1_000_000).map(|at| at.value);
    let mut unit = Resources {
        gpus: number("gpus").unwrap_or(0),
        gpu_milli: section.count("gpu_milli", 0..=999).map_or(0, |at| at.value),
        ..Resources::default()
    };
    unit.cpu = MilliCpu(u64::from(number("cpus").unwrap_or(0)) * 1_000);
    let units = section.count("units", 1..=1_000_000);
    let sound = !section.blames(&section.key("units"));
    let units = units.map_or(1, |at| at.value);
    let min_units = number("min_units").unwrap_or(units);
    let locality = section.choice("locality", &LOCALITIES);
    let checkpoint = span("checkpoint", "30m");
    let movable = section.flag("movable").unwrap_or(false);
    for (key, there, fix) in [
        ("id", id.is_some(), "write id = \"job-1\""),
        ("submit", submit.is_some(), "write submit = \"10m\""),
        ("duration", duration.is_some(), "write duration = \"2h\""),
    ] {
        if !there && !section.blames(&section.key(key)) {
            section.report(section.offset(), key, "is missing", fix);
        }
    }
    if unit.gpus > 0 && unit.gpu_milli > 0 {
        let fix = "keep gpus, or gpu_milli for a share of one GPU";
        section.report(
            section.offset(),
            "gpu_milli",
            "stands beside whole GPUs",
            fix,
        );
    }
    if sound && (min_units == 0 || min_units > units) {
        let fix = "write at least 1 and at most units";
        section.report(section.offset(), "min_units", "is out of range", fix);
    }
    section.finish();
    let mut job = Job::new(id?.value, submit?, duration?, unit);
    job.units = units;
    job.min_units = min_units;
    job.locality = locality.map_or(Locality::Any, |at| at.value);
    job.checkpoint = checkpoint;
    job.movable = movable;
    Some(job)
}

/// The same as text.
pub(super) fn write(job: &Job) -> String {
    let mut text = format!(
        "[[simulate.job]]\nid = {:?}\nsubmit = {}\nduration = {}\n",
        job.id,
        quoted(job.submit),
        quoted(job.duration)
    );
    let mut number = |key: &str, value: u64, usual: u64| {
        if value != usual {
            text.push_str(&format!("{key} = {value}\n"));
        }
    };
    number("gpus", job.unit.gpus.into(), 0);
    number("gpu_milli", job.unit.gpu_milli.into(), 0);
    number("cpus", job.unit.cpu.0 / 1_000, 0);
    number("units", job.units.into(), 1);
    number("min_units", job.min_units.into(), job.units.into());
    if let Some((name, _)) = LOCALITIES.iter().find(|(_, l)| *l == job.locality)
        && job.locality != Locality::Any
    {
        text.push_str(&format!("locality = {name:?}\n"));
    }
    if let Some(every) = job.checkpoint {
        text.push_str(&format!("checkpoint = {}\n", quoted(every)));
    }
    if job.movable {
        text.push_str("movable = true\n");
    }
    text
}

/// A duration as configs write it.
pub(super) fn quoted(span: Millis) -> String {
    if span.0.is_multiple_of(1_000) {
        format!("\"{}s\"", span.0 / 1_000)
    } else {
        format!("\"{}ms\"", span.0)
    }
}
