//! A newcomer's own CSV: a header whose columns are recognised by name, one job per row.
//!
//! Called by `read`. `docs/simulate.md` lists the columns; an unknown one is refused, since a misspelt one would be lost.

use super::cells::{Faults, Row, Table, thousandths};
use super::{Job, MOST, Trace};
use drover_core::model::{Bytes, MilliCpu, Millis, Resources};

/// What a column holds, by the names that it may have.
const COLUMNS: [(&str, &[&str]); 10] = [
    ("id", &["id", "job", "name"]),
    ("submit_s", &["submit_s"]),
    ("submit", &["submit"]),
    ("duration_s", &["duration_s"]),
    ("duration", &["duration"]),
    ("gpus", &["gpus", "num_gpus"]),
    ("cpus", &["cpus"]),
    ("memory_gib", &["memory_gib"]),
    ("units", &["units"]),
    ("min_units", &["min_units"]),
];
/// Further ones, without synonyms.
const MORE: [&str; 2] = ["priority", "team"];

/// The header tells a submission and a duration.
pub(super) fn is_header(names: &[String]) -> bool {
    let has = |all: &[&str]| names.iter().any(|name| all.contains(&name.as_str()));
    has(&["submit", "submit_s"]) && has(&["duration", "duration_s"])
}

/// How many of these columns are known.
pub(super) fn knows(names: &[String]) -> usize {
    names.iter().filter(|name| is_known(name)).count()
}

fn is_known(name: &str) -> bool {
    COLUMNS.iter().any(|(_, names)| names.contains(&name)) || MORE.contains(&name)
}

/// Columns by what they hold.
struct Layout {
    id: Option<usize>,
    submit: Time,
    duration: Time,
    gpus: Option<usize>,
    cpus: Option<usize>,
    memory: Option<usize>,
    units: Option<usize>,
    min_units: Option<usize>,
    priority: Option<usize>,
    team: Option<usize>,
}

/// Seconds, or with a unit.
#[derive(Clone, Copy)]
enum Time {
    Seconds(usize),
    Unit(usize),
}

impl Time {
    fn of(self, row: &Row<'_>, faults: &mut Faults) -> Millis {
        match self {
            Self::Seconds(column) => row.seconds(column, faults),
            Self::Unit(column) => row.duration(column, faults),
        }
    }
}

fn layout(table: &Table, faults: &mut Faults) -> Option<Layout> {
    for (n, name) in table.header.iter().enumerate() {
        let at = format!("column {} ({name})", n + 1);
        if !is_known(name) {
            let all: Vec<&str> = COLUMNS
                .iter()
                .flat_map(|(_, names)| *names)
                .copied()
                .chain(MORE)
                .collect();
            faults.tell(
                1,
                at,
                "is not known",
                format!("known columns: {}", all.join(", ")),
            );
        } else if table.column(name) != Some(n) {
            faults.tell(1, at, "stands twice in the header", "keep one of the two");
        }
    }
    let named = |what: &str| {
        let (_, names) = COLUMNS.iter().find(|(key, _)| *key == what)?;
        names.iter().find_map(|name| table.column(name))
    };
    let time = |what: &str, faults: &mut Faults| {
        let seconds = format!("{what}_s");
        match (named(&seconds), named(what)) {
            (Some(column), None) => Some(Time::Seconds(column)),
            (None, Some(column)) => Some(Time::Unit(column)),
            (found, _) => {
                let (message, fix) = if found.is_some() {
                    (
                        format!("the header has both {seconds} and {what}"),
                        "keep one of the two".to_owned(),
                    )
                } else {
                    (
                        format!("the header has no column {seconds}"),
                        format!("name it {seconds} (seconds) or {what} (with a unit, as in 90s)"),
                    )
                };
                faults.tell(1, "", message, fix);
                None
            }
        }
    };
    Some(Layout {
        id: named("id"),
        submit: time("submit", faults)?,
        duration: time("duration", faults)?,
        gpus: named("gpus"),
        cpus: named("cpus"),
        memory: named("memory_gib"),
        units: named("units"),
        min_units: named("min_units"),
        priority: table.column("priority"),
        team: table.column("team"),
    })
}

pub(super) fn read(text: &str, faults: &mut Faults) -> Trace {
    let table = Table::read(text, faults);
    let mut trace = Trace::default();
    let Some(layout) = layout(&table, faults) else {
        return trace;
    };
    if !faults.is_empty() {
        return trace;
    }
    if let Some(column) = layout.id {
        faults.ids_in(&table, column);
    }
    for (n, row) in table.rows(faults).iter().enumerate() {
        if faults.is_full() {
            break;
        }
        faults.job_at(row.line);
        trace.jobs.push(job(&layout, n, row, faults));
    }
    trace
}

fn job(layout: &Layout, n: usize, row: &Row<'_>, faults: &mut Faults) -> Job {
    // An empty cell is as good as no column. Only one fault is told of a cell.
    let given = |column: Option<usize>| column.filter(|column| !row.text(*column).is_empty());
    let wrong = std::cell::Cell::new(false);
    let count = |column: Option<usize>, or: u32, faults: &mut Faults| {
        let Some(column) = given(column) else {
            return or;
        };
        let found = row.count(column, faults, "a whole number");
        wrong.set(wrong.get() || found.is_none());
        found.unwrap_or(or)
    };
    let part = |column: Option<usize>, faults: &mut Faults| {
        let Some(column) = given(column) else {
            return 0;
        };
        let found = thousandths(row.text(column));
        let fits = found.filter(|found| *found <= u64::from(MOST) * 1_000);
        if fits.is_none() {
            let limit = found.map_or_else(String::new, |_| format!(", at most {MOST}"));
            let expected = format!("a number, not negative, as in 4 or 0.5{limit}");
            row.wrong(column, faults, &expected);
            wrong.set(true);
        }
        fits.unwrap_or(0)
    };
    let unit = Resources {
        cpu: MilliCpu(part(layout.cpus, faults)),
        // At most a million GiB, so that the product fits.
        memory: Bytes((part(layout.memory, faults) << 30) / 1_000),
        gpus: count(layout.gpus, 0, faults),
        ..Resources::default()
    };
    let units = count(layout.units, 1, faults);
    if let Some(column) = layout.units.filter(|_| units == 0) {
        row.wrong(column, faults, "at least 1");
        wrong.set(true);
    }
    let min_units = count(layout.min_units, units, faults);
    if let Some(column) = layout
        .min_units
        .filter(|_| (min_units == 0 || min_units > units) && !wrong.get())
    {
        row.wrong(column, faults, "a number from 1 to units");
    }
    if unit.is_zero() && !wrong.get() {
        let fix = "give the job GPUs, CPUs or memory in the columns gpus, cpus, memory_gib";
        faults.tell(row.line, "", "the job asks for nothing", fix);
    }
    Job {
        units,
        min_units,
        priority: given(layout.priority)
            .and_then(|column| row.number(column, faults, "a whole number"))
            .unwrap_or(0),
        team: layout
            .team
            .map_or_else(String::new, |column| row.text(column).to_owned()),
        ..Job::new(
            layout
                .id
                .map_or_else(|| format!("job-{}", n + 1), |column| row.id(column, faults)),
            layout.submit.of(row, faults),
            layout.duration.of(row, faults),
            unit,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::{Options, parse};
    use super::*;

    #[test]
    fn columns_are_known_by_name_in_any_order() {
        let text = "duration,cpus,ID,submit_s,memory_gib,gpus,units,min_units,priority,team\n90m,0.5,a,10,1.5,8,4,2,-3,vision\n";
        let trace = parse("t", text, &Options::default()).expect("sound");
        let job = &trace.jobs[0];
        assert_eq!(
            (job.id.as_str(), job.submit, job.duration),
            ("a", Millis(10_000), Millis(5_400_000))
        );
        assert_eq!(
            (job.unit.cpu.0, job.unit.memory.0, job.unit.gpus),
            (500, 3 << 29, 8)
        );
        assert_eq!(
            (job.units, job.min_units, job.priority, job.team.as_str()),
            (4, 2, -3, "vision")
        );
        let bare = parse(
            "t",
            "submit_s,duration_s,gpus\n0,1,1\n0,1,1\n",
            &Options::default(),
        )
        .expect("sound");
        let ids: Vec<&str> = bare.jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids, ["job-1", "job-2"]);
        let gaps = "submit_s,duration_s,gpus,cpus,units,min_units,priority,team\n0,1,1,,,,,\n";
        let trace = parse("t", gaps, &Options::default()).expect("empty cells are none");
        let job = &trace.jobs[0];
        assert_eq!(
            (job.unit.cpu.0, job.units, job.min_units, job.priority),
            (0, 1, 1, 0)
        );
    }

    #[test]
    fn what_is_refused() {
        for (text, line, at, says) in [
            (
                "submit_s,duration_s,gpu\n0,1,1\n",
                1,
                "column 3 (gpu)",
                "not known",
            ),
            ("submit_s,submit,duration_s\n0,1s,1\n", 1, "", "both"),
            (
                "submit_s,duration,gpus\n0,90,1\n",
                2,
                "column 2 (duration)",
                "\"90\"",
            ),
            (
                "submit_s,duration_s,gpus\n0,1,0.5\n",
                2,
                "column 3 (gpus)",
                "\"0.5\"",
            ),
            ("submit_s,duration_s\n0,1\n", 2, "", "asks for nothing"),
            (
                "submit_s,duration_s,gpus\n0,1\n",
                2,
                "column 3 (gpus)",
                "is missing: the row has 2 of 3 columns",
            ),
            (
                "submit_s,duration_s,gpus\n0,1,1,1\n",
                2,
                "column 4",
                "is one too many: the row has 4 columns",
            ),
            (
                "submit_s,job,duration_s,gpus\n0,a,1,1\n0,a,1,1\n",
                3,
                "column 2 (job)",
                "stands in line 2 already",
            ),
            ("submit_s,duration_s,gpus\n", 1, "", "no job follows"),
            (
                "submit_s,duration_s,gpus,units,min_units\n0,1,1,x,3\n",
                2,
                "column 4 (units)",
                "\"x\"",
            ),
            (
                "submit_s,duration_s,gpus,units,min_units\n0,1,1,2,3\n",
                2,
                "column 5 (min_units)",
                "\"3\"",
            ),
            (
                "submit_s,duration_s,gpus,units,min_units\n0,1,1,0,1\n",
                2,
                "column 4 (units)",
                "\"0\"",
            ),
            (
                "submit_s,duration_s,gpus\n0,1,99999999999999\n",
                2,
                "column 3 (gpus)",
                "write a whole number, at most 1000000",
            ),
            (
                "submit_s,duration_s,cpus\n0,1,2000000\n",
                2,
                "column 3 (cpus)",
                "at most 1000000",
            ),
            (
                "submit_s,duration_s,gpus\n0,100000000000,1\n",
                2,
                "column 2 (duration_s)",
                "at most 315360000 s, which is ten years",
            ),
            (
                "submit,duration_s,gpus\n5000d,1,1\n",
                2,
                "column 1 (submit)",
                "ten years",
            ),
            (
                "job,submit_s,duration_s,gpus\na,0,1,1\n\"b,0,1,1\nc,0,1,1\n",
                3,
                "column 1 (job)",
                "a quote that is never closed",
            ),
            (
                "id,submited_s,duration_s,gpus\na,0,1,1\n",
                1,
                "column 2 (submited_s)",
                "not known",
            ),
            (
                "id,duration_s,gpus\na,1,1\n",
                1,
                "",
                "no column submit_s; name it submit_s",
            ),
        ] {
            let problems = parse("t", text, &Options::default()).expect_err(text);
            let found = &problems[0];
            assert_eq!(
                (found.line, found.key.as_str()),
                (line, at),
                "{text}: {problems:#?}"
            );
            let told = format!("{}; {}", found.message, found.fix);
            assert!(told.contains(says), "{text}: {problems:#?}");
            // A name that is misspelt is missing too.
            let faults = 1 + usize::from(at == "column 2 (submited_s)");
            assert_eq!(problems.len(), faults, "{text}: one fault is told once");
        }
    }
}
