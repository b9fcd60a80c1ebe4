//! Drover's own format: one JSON object per line, every field of a job by its name.
//!
//! Called by `read`, and by `drover simulate generate` to write. `docs/simulate.md` lists the fields; unknown ones are
//! refused.

use super::cells::Faults;
use super::{Job, LONGEST, MOST, MOST_MEMORY, Trace};
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
                check(n + 1, line, &found, faults);
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

/// What the types do not forbid.
fn check(number: usize, line: &str, found: &Line, faults: &mut Faults) {
    let mut tell = |key: &str, message: String, fix: &str| {
        faults.tell(number, place(line, key), message, fix);
    };
    if found.id.is_empty() {
        tell("id", "is empty".to_owned(), "give the job an id");
    }
    let years = format!(
        "write at most {}, which is ten years; times count from the start",
        LONGEST.0
    );
    for (key, span) in [
        ("submit_ms", found.submit_ms),
        ("duration_ms", found.duration_ms),
    ] {
        if span > LONGEST {
            tell(key, format!("is {}", span.0), &years);
        }
    }
    if found.units == 0 || found.units > MOST {
        let fix = format!("write a number from 1 to {MOST}");
        tell("units", format!("is {}", found.units), &fix);
    } else if let Some(min) = found
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
    for (of, unit) in [("unit", Some(&found.unit)), ("rest", found.rest.as_ref())] {
        for (key, message, fix) in unit.into_iter().flat_map(amounts) {
            tell(&format!("{of}.{key}"), message, &fix);
        }
    }
}

/// Amounts that no node could ever give: key, what is wrong, the fix.
fn amounts(unit: &Resources) -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    for (key, amount, most) in [
        ("gpus", u64::from(unit.gpus), u64::from(MOST)),
        ("cpu", unit.cpu.0, u64::from(MOST) * 1_000),
        ("memory", unit.memory.0, MOST_MEMORY.0),
    ] {
        if amount > most {
            let fix = format!("write at most {most}");
            found.push((key, format!("is {amount}"), fix));
        }
    }
    if unit.gpu_milli > 999 {
        let fix = "write a share of one GPU from 1 to 999, or whole GPUs in gpus".to_owned();
        found.push(("gpu_milli", format!("is {}", unit.gpu_milli), fix));
    } else if unit.gpu_milli > 0 && unit.gpus > 0 {
        let fix = "keep gpus, or gpu_milli for a share of one GPU".to_owned();
        found.push(("gpu_milli", "stands beside whole GPUs".to_owned(), fix));
    }
    found
}

/// Where a key stands in a line: its column, if it is written there.
fn place(line: &str, path: &str) -> String {
    let mut at = 0;
    for key in path.split('.') {
        let quoted = format!("\"{key}\"");
        match line.get(at..).and_then(|rest| rest.find(&quoted)) {
            Some(found) => at += found,
            None => return path.to_owned(),
        }
    }
    let column = line.get(..at).map_or(0, |before| before.chars().count());
    format!("column {} ({path})", column + 1)
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
            [
                (3, "column 21"),
                (4, "column 69 (min_units)"),
                (5, "column 1")
            ],
            "{problems:#?}"
        );
        assert!(problems[0].message.contains("sumbit_ms"), "{problems:#?}");
    }

    #[test]
    fn what_no_node_could_ever_give_is_refused() {
        for (rest, at, says) in [
            (
                "\"unit\":{\"gpu_milli\":1000}",
                "column 49 (unit.gpu_milli)",
                "1 to 999",
            ),
            (
                "\"unit\":{\"gpu_milli\":1500}",
                "column 49 (unit.gpu_milli)",
                "1 to 999",
            ),
            (
                "\"unit\":{\"gpus\":1,\"gpu_milli\":500}",
                "column 58 (unit.gpu_milli)",
                "beside whole GPUs",
            ),
            (
                "\"unit\":{\"gpus\":1},\"rest\":{\"gpu_milli\":1000}",
                "column 67 (rest.gpu_milli)",
                "1 to 999",
            ),
            (
                "\"unit\":{\"gpus\":1000001}",
                "column 49 (unit.gpus)",
                "at most 1000000",
            ),
            (
                "\"unit\":{\"memory\":18446744073709551615}",
                "column 49 (unit.memory)",
                "at most",
            ),
            (
                "\"unit\":{\"gpus\":1},\"units\":4000000000",
                "column 59 (units)",
                "from 1 to 1000000",
            ),
            (
                "\"unit\":{\"gpus\":1},\"units\":0,\"min_units\":1",
                "column 59 (units)",
                "from 1",
            ),
        ] {
            let text = format!("{{\"id\":\"a\",\"submit_ms\":0,\"duration_ms\":1,{rest}}}\n");
            let problems = parse("t", &text, &Options::default()).expect_err(&text);
            assert_eq!(problems.len(), 1, "{text}: {problems:#?}");
            assert_eq!(
                (problems[0].line, problems[0].key.as_str()),
                (1, at),
                "{text}"
            );
            let told = format!("{} {}", problems[0].message, problems[0].fix);
            assert!(told.contains(says), "{text}: {told}");
        }
        let long = "{\"id\":\"a\",\"submit_ms\":0,\"duration_ms\":100000000000000,\"unit\":{\"gpu_milli\":999}}";
        let problems = parse("t", long, &Options::default()).expect_err("too long");
        assert!(problems[0].fix.contains("ten years"), "{problems:#?}");
    }
}
