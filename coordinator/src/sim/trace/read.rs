//! Which format a trace has, and reading it: all that is wrong with a file is told at once.
//!
//! Called by the CLI and the benchmarks. Reads the file and decides nothing about its jobs but what the options say.

use super::cells::Faults;
use super::{Trace, lines, openb, philly, simple};
use drover_config::{FileError, Problem};
use drover_core::model::Millis;
use std::path::Path;

/// Problems told of one file; then reading ends.
pub const MOST_PROBLEMS: usize = 20;

/// Formats that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The pod list of Alibaba's GPU cluster of 2023.
    Openb,
    /// Microsoft's Philly: job, submit_s, num_gpus, duration_s.
    Philly,
    /// Drover's own: one JSON object per line.
    Lines,
    /// Any CSV whose header names what Drover knows.
    Simple,
}

impl Format {
    /// Every format by the name that people give it.
    pub const ALL: [(&'static str, Self); 4] = [
        ("openb", Self::Openb),
        ("philly", Self::Philly),
        ("lines", Self::Lines),
        ("csv", Self::Simple),
    ];

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(known, format)| (known == name).then_some(format))
    }

    /// By a file's first line.
    #[must_use]
    pub fn of(first_line: &str) -> Option<Self> {
        let line = first_line.trim_start_matches('\u{feff}').trim();
        if line.starts_with('{') {
            return Some(Self::Lines);
        }
        let names = names(line);
        let has = |name: &str| names.iter().any(|known| known == name);
        if openb::NEEDED.iter().all(|name| has(name)) {
            Some(Self::Openb)
        } else if names == philly::HEADER {
            Some(Self::Philly)
        } else if simple::is_header(&names) {
            Some(Self::Simple)
        } else {
            None
        }
    }

    /// By a header that is not whole: the format whose columns most of its names are. Its reader tells what is amiss.
    fn meant(first_line: &str) -> Option<Self> {
        let names = names(first_line.trim_start_matches('\u{feff}').trim());
        let has = |name: &&&str| names.iter().any(|known| known == **name);
        let openb = openb::NEEDED.iter().filter(has).count();
        let simple = simple::knows(&names);
        match (openb > simple, simple > 0) {
            (true, _) => Some(Self::Openb),
            (false, true) => Some(Self::Simple),
            (false, false) => None,
        }
    }
}

/// A header's names.
fn names(line: &str) -> Vec<String> {
    line.split(',')
        .map(|name| name.trim().trim_matches('"').to_ascii_lowercase())
        .collect()
}

/// How rows become jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Absent: told by the first line.
    pub format: Option<Format>,
    /// openb: shares of a GPU count as a whole one.
    pub whole_gpus: bool,
    /// openb: CPU is rounded up to whole cores.
    pub whole_cores: bool,
    /// openb: memory is rounded up to whole GiB.
    pub whole_gib: bool,
    /// openb: the GPU model that a pod names is asked for.
    pub gpu_models: bool,
    /// openb: pods that failed are read as well.
    pub failed: bool,
    /// philly: from so many GPUs on a job takes whole nodes.
    pub gpus_per_node: u32,
    /// Jobs submitted before are left out, and time begins here.
    pub from: Millis,
    /// Jobs submitted from then on (in the file's own time) are left out.
    pub until: Option<Millis>,
    /// At most so many jobs.
    pub most: Option<u32>,
    /// For every job that says none of its own.
    pub checkpoint: Option<Millis>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            whole_gpus: true,
            whole_cores: true,
            whole_gib: true,
            gpu_models: false,
            failed: false,
            gpus_per_node: 8,
            from: Millis::ZERO,
            until: None,
            most: None,
            checkpoint: None,
        }
    }
}

/// Reads a trace file.
///
/// # Errors
/// The file cannot be read, or what is wrong with it: at most [`MOST_PROBLEMS`].
pub fn load(path: &Path, options: &Options) -> Result<Trace, FileError> {
    let bytes = std::fs::read(path).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let read = String::from_utf8(bytes)
        .map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()));
    read.and_then(|text| parse(&name.to_string_lossy(), &text, options))
        .map_err(|problems| FileError::Wrong {
            path: path.to_owned(),
            problems,
        })
}

/// Text that is no UTF-8 from a byte on.
fn not_utf8(bytes: &[u8], at: usize) -> Vec<Problem> {
    let before = bytes.get(..at).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |n| n + 1);
    // Cells of CSV, characters of lines.
    let cell = before
        .iter()
        .skip(start)
        .filter(|byte| **byte == b',')
        .count();
    let column = if bytes.starts_with(b"{") {
        at - start
    } else {
        cell
    };
    let mut faults = Faults::default();
    faults.tell(
        line,
        format!("column {}", column + 1),
        "is no UTF-8",
        "save the file as UTF-8",
    );
    faults.into_problems()
}

/// Reads a trace's text.
///
/// # Errors
/// What is wrong with it, by line.
pub fn parse(name: &str, text: &str, options: &Options) -> Result<Trace, Vec<Problem>> {
    let first = text.lines().next().unwrap_or_default();
    let mut faults = Faults::default();
    let told = options.format.or_else(|| Format::of(first));
    let Some(format) = told.or_else(|| Format::meant(first)) else {
        faults.tell(
            1,
            "",
            "the first line is of no known format",
            "begin with a header such as job,submit_s,duration_s,gpus (columns parted by commas), with the header of openb \
             or philly, or with a JSON object per line; or say which it is with --format",
        );
        return Err(faults.into_problems());
    };
    let mut trace = match format {
        Format::Openb => openb::read(text, options, &mut faults),
        Format::Philly => philly::read(text, options, &mut faults),
        Format::Lines => lines::read(text, &mut faults),
        Format::Simple => simple::read(text, &mut faults),
    };
    faults.ids(&trace);
    if trace.jobs.is_empty() && trace.skipped.is_empty() && faults.is_empty() {
        let line = text.lines().count().max(1);
        faults.tell(line, "", "no job follows", "write one job per line");
    }
    if !faults.is_empty() {
        return Err(faults.into_problems());
    }
    trace.name = name.to_owned();
    trace.sort();
    narrow(&mut trace, options);
    Ok(trace)
}

/// Leaves out what the options leave out; time begins at `from`.
fn narrow(trace: &mut Trace, options: &Options) {
    let mut kept = Vec::with_capacity(trace.jobs.len());
    for mut job in std::mem::take(&mut trace.jobs) {
        if job.submit < options.from {
            trace.skip("submitted before the time that is looked at");
        } else if options.until.is_some_and(|until| job.submit >= until) {
            trace.skip("submitted after the time that is looked at");
        } else if options
            .most
            .is_some_and(|most| kept.len() as u64 >= u64::from(most))
        {
            trace.skip("beyond the number of jobs that is looked at");
        } else {
            job.submit = Millis(job.submit.0 - options.from.0);
            job.checkpoint = job.checkpoint.or(options.checkpoint);
            kept.push(job);
        }
    }
    trace.jobs = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_the_format() {
        for (line, format) in [
            (
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time",
                Some(Format::Openb),
            ),
            ("job,submit_s,num_gpus,duration_s", Some(Format::Philly)),
            ("{\"id\":\"a\"}", Some(Format::Lines)),
            ("id,gpus,submit,duration", Some(Format::Simple)),
            (
                "\u{feff}\"job\",\"submit_s\",\"duration_s\"",
                Some(Format::Simple),
            ),
            ("a,b,c", None),
            ("", None),
        ] {
            assert_eq!(Format::of(line), format, "{line}");
        }
    }

    #[test]
    fn a_header_that_is_not_whole_is_told_by_its_format() {
        for (header, says) in [
            ("id,submitted,duration_s,gpus", "no column submit_s"),
            (
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,pod_phase,creation_time",
                "no column deletion_time",
            ),
            ("a,b,c", "no known format"),
        ] {
            let text = format!("{header}\n1,2,3\n");
            let problems = parse("t", &text, &Options::default()).expect_err(header);
            let told = problems.iter().any(|found| found.message.contains(says));
            assert!(told, "{header}: {problems:#?}");
        }
    }

    #[test]
    fn a_window_of_a_trace_begins_at_zero() {
        let text = "job,submit_s,num_gpus,duration_s\na,5,1,10\nb,10,1,10\nc,20,1,10\nd,30,1,10\n";
        let options = Options {
            from: Millis::seconds(10),
            until: Some(Millis::seconds(30)),
            most: Some(1),
            ..Options::default()
        };
        let trace = parse("t", text, &options).expect("sound");
        let jobs: Vec<_> = trace
            .jobs
            .iter()
            .map(|j| (j.id.as_str(), j.submit))
            .collect();
        assert_eq!(jobs, [("b", Millis::ZERO)]);
        assert_eq!(trace.skipped.iter().map(|(_, n)| n).sum::<u32>(), 3);
    }

    #[test]
    fn what_is_no_utf8_has_its_place() {
        let place = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect_err("no UTF-8");
            let found = not_utf8(bytes, text.utf8_error().valid_up_to());
            (found[0].line, found[0].key.clone())
        };
        assert_eq!(
            place(b"job,team\na,b\nc,\xe9t\xe9\n"),
            (3, "column 2".into())
        );
        assert_eq!(place(b"{\"id\":\"\xe9\"}"), (1, "column 8".into()));
    }

    #[test]
    fn all_problems_of_a_file_come_at_once_and_at_most_twenty() {
        let mut text = String::from("job,submit_s,num_gpus,duration_s\n");
        for n in 0..30 {
            text.push_str(&format!("{n},x,1,10\n"));
        }
        let problems = parse("t", &text, &Options::default()).expect_err("wrong");
        assert_eq!(problems.len(), MOST_PROBLEMS);
        assert_eq!(problems[0].line, 2);
        assert_eq!(problems[0].key, "column 2 (submit_s)");
        assert!(problems[0].message.contains("\"x\""), "{:?}", problems[0]);
        assert!(problems[0].fix.contains("seconds"), "{:?}", problems[0]);
    }
}
