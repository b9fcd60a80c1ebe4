//! Drover's own format: one JSON object per line, every field of a job by its name.
//!
//! Called by `read`, and by `drover simulate generate` to write. `docs/simulate.md` lists the fields; unknown ones are
//! refused.

use super::cells::Faults;
use super::{Job, Trace};
use drover_core::model::{Constraints, Locality, Millis, Resources};
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    submit_ms: Millis,
    duration_ms: Millis,
    unit: Resources,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    units: u32,
    /// Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_units: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest: Option<Resources>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    whole_node: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    locality: Locality,
    #[serde(default, skip_serializing_if = "is_default")]
    constraints: Constraints,
    #[serde(default, skip_serializing_if = "is_default")]
    priority: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    team: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    movable: bool,
}

const EXPECTED: &str = "write one JSON object with id, submit_ms, duration_ms and unit, as in \
     {\"id\":\"a\",\"submit_ms\":0,\"duration_ms\":60000,\"unit\":{\"gpus\":1}}";

const fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<Line> for Job {
    fn from(line: Line) -> Self {
        Self {
            id: line.id,
            submit: line.submit_ms,
            duration: line.duration_ms,
            unit: line.unit,
            units: line.units,
            min_units: line.min_units.unwrap_or(line.units),
            rest: line.rest,
            whole_node: line.whole_node,
            locality: line.locality,
            constraints: line.constraints,
            priority: line.priority,
            team: line.team,
            checkpoint: line.checkpoint_ms,
            movable: line.movable,
        }
    }
}

impl From<&Job> for Line {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id.clone(),
            submit_ms: job.submit,
            duration_ms: job.duration,
            unit: job.unit.clone(),
            units: job.units,
            min_units: (job.min_units != job.units).then_some(job.min_units),
            rest: job.rest.clone(),
            whole_node: job.whole_node,
            locality: job.locality,
            constraints: job.constraints.clone(),
            priority: job.priority,
            team: job.team.clone(),
            checkpoint_ms: job.checkpoint,
            movable: job.movable,
        }
    }
}

pub(super) fn read(text: &str, faults: &mut Faults) -> Trace {
    let mut trace = Trace::default();
    for (n, line) in text.lines().enumerate() {
        if faults.is_full() {
            break;
        }
        if line.trim().is_empty() {
            continue;
        }
        let start = line.len() - line.trim_start().len();
        if !line[start..].starts_with('{') {
            let at = format!("column {}", start + 1);
            faults.tell(n + 1, at, "is no JSON object", EXPECTED);
            continue;
        }
        match serde_json::from_str::<Line>(line) {
            Ok(found) => {
                check(n + 1, &found, faults);
                faults.job_at(n + 1);
                trace.jobs.push(found.into());
            }
            Err(error) => {
                let text = error.to_string();
                let message = text.split(" at line ").next().unwrap_or_default();
                faults.tell(
                    n + 1,
                    format!("column {}", error.column()),
                    format!("is no job: {message}"),
                    EXPECTED,
                );
            }
        }
    }
    trace
}

fn check(line: usize, found: &Line, faults: &mut Faults) {
    let mut tell = |key: &str, message: String, fix: &str| faults.tell(line, key, message, fix);
    if found.id.is_empty() {
        tell("id", "is empty".to_owned(), "give the job an id");
    }
    if found.units == 0 {
        tell("units", "is 0".to_owned(), "write at least 1");
    }
    if let Some(min) = found
        .min_units
        .filter(|min| *min == 0 || *min > found.units)
    {
        tell(
            "min_units",
            format!("is {min}"),
            "write a number from 1 to units",
        );
    }
    if found.unit.is_zero() && !found.whole_node {
        tell(
            "unit",
            "asks for nothing".to_owned(),
            "give it gpus, cpu (thousandths) or memory (bytes)",
        );
    }
}

/// The trace as text of this format.
///
/// # Errors
/// A job that JSON cannot say.
pub fn write(trace: &Trace) -> Result<String, serde_json::Error> {
    let mut text = String::new();
    for job in &trace.jobs {
        text.push_str(&serde_json::to_string(&Line::from(job))?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::read::{Options, parse};
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let mut job = Job::new(
            "a".into(),
            Millis(5),
            Millis(60_000),
            Resources {
                gpus: 8,
                ..Resources::default()
            },
        );
        job.units = 4;
        job.min_units = 2;
        job.rest = Some(Resources {
            gpus: 3,
            ..Resources::default()
        });
        job.whole_node = true;
        job.locality = Locality::Zone;
        job.constraints.gpu_model = "a100".into();
        job.priority = -1;
        job.team = "vision".into();
        job.checkpoint = Some(Millis(1_000));
        job.movable = true;
        let plain = Job::new("b".into(), Millis(9), Millis(1), job.unit.clone());
        let trace = Trace {
            name: "t".into(),
            jobs: vec![job, plain],
            skipped: Vec::new(),
        };
        let text = write(&trace).expect("JSON");
        assert_eq!(parse("t", &text, &Options::default()), Ok(trace));
        let second = text.lines().nth(1).expect("two lines");
        assert_eq!(
            second,
            "{\"id\":\"b\",\"submit_ms\":9,\"duration_ms\":1,\"unit\":{\"gpus\":8}}"
        );
    }

    #[test]
    fn line_and_column_of_what_is_wrong() {
        let text = "{\"id\":\"a\",\"submit_ms\":0,\"duration_ms\":1,\"unit\":{\"gpus\":1}}\n\n{\"id\":\"b\",\"sumbit_ms\":0}\n{\"id\":\"c\",\"submit_ms\":0,\"duration_ms\":1,\"unit\":{\"gpus\":1},\"units\":2,\"min_units\":3}\n[1]\n";
        let problems = parse("t", text, &Options::default()).expect_err("wrong");
        let found: Vec<(usize, &str)> = problems.iter().map(|p| (p.line, p.key.as_str())).collect();
        assert_eq!(
            found,
            [(3, "column 21"), (4, "min_units"), (5, "column 1")],
            "{problems:#?}"
        );
        assert!(problems[0].message.contains("sumbit_ms"), "{problems:#?}");
    }
}
