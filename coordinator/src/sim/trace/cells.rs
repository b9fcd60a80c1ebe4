//! A CSV file cell by cell: each value with its line, column and what was expected there.
//!
//! Used by the readers of CSV formats. Knows no format.

use super::Trace;
use super::read::MOST_PROBLEMS;
use drover_config::Problem;
use drover_core::model::Millis;
use std::collections::BTreeMap;

/// What is wrong with a file, at most [`MOST_PROBLEMS`].
#[derive(Default)]
pub(super) struct Faults {
    problems: Vec<Problem>,
    /// Line of a job, by its position in the trace.
    lines: Vec<usize>,
    /// Where ids stand.
    id_at: String,
}

impl Faults {
    pub(super) fn tell(
        &mut self,
        line: usize,
        at: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        if !self.is_full() {
            self.problems.push(Problem {
                line,
                key: at.into(),
                message: message.into(),
                fix: fix.into(),
            });
        }
    }

    /// Enough was told.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The next job of the trace stood there.
    pub(super) fn job_at(&mut self, line: usize) {
        self.lines.push(line);
    }

    /// Ids stand in this column.
    pub(super) fn ids_in(&mut self, table: &Table, column: usize) {
        self.id_at = table.named(column);
    }

    /// Two jobs of one id.
    pub(super) fn ids(&mut self, trace: &Trace) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (n, job) in trace.jobs.iter().enumerate() {
            let line = self.lines.get(n).copied().unwrap_or(1);
            if let Some(before) = first.insert(&job.id, line) {
                let message = format!(
                    "names job {:?}, which stands in line {before} already",
                    job.id
                );
                let at = self.id_at.clone();
                self.tell(line, at, message, "give each job an id of its own");
            }
        }
    }

    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }
}

/// A CSV file with a header.
pub(super) struct Table {
    /// Names of the columns, lower-case.
    pub(super) header: Vec<String>,
    rows: Vec<(usize, csv::StringRecord)>,
}

impl Table {
    /// Reads the text; rows that are no CSV are told.
    pub(super) fn read(text: &str, faults: &mut Faults) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = match reader.headers() {
            Ok(header) => header.iter().map(str::to_ascii_lowercase).collect(),
            Err(_) => Vec::new(),
        };
        let mut rows = Vec::new();
        for record in reader.into_records() {
            match record {
                Ok(record) => {
                    let line = record.position().map_or(0, csv::Position::line);
                    let line = usize::try_from(line).unwrap_or(usize::MAX);
                    rows.push((line, record));
                }
                Err(error) => {
                    let line = error.position().map_or(1, csv::Position::line);
                    let line = usize::try_from(line).unwrap_or(usize::MAX);
                    faults.tell(
                        line,
                        "",
                        format!("is no CSV: {error}"),
                        "write a row of the header's columns",
                    );
                }
            }
        }
        Self { header, rows }
    }

    /// Where a column stands.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|known| known == name)
    }

    /// As people find a column.
    fn named(&self, column: usize) -> String {
        match self.header.get(column) {
            Some(name) => format!("column {} ({name})", column + 1),
            None => format!("column {}", column + 1),
        }
    }

    /// A column that must be there.
    pub(super) fn needed(&self, name: &str, faults: &mut Faults) -> Option<usize> {
        let found = self.column(name);
        if found.is_none() {
            faults.tell(
                1,
                "",
                format!("the header has no column {name}"),
                format!("name it; the header is {}", self.header.join(",")),
            );
        }
        found
    }

    /// Every row with as many cells as the header has; others are told.
    pub(super) fn rows<'t>(&'t self, faults: &mut Faults) -> Vec<Row<'t>> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (line, record) in &self.rows {
            if record.len() == self.header.len() {
                rows.push(Row {
                    table: self,
                    line: *line,
                    record,
                });
            } else {
                let (has, wanted) = (record.len(), self.header.len());
                let message = if has < wanted {
                    format!("is missing: the row has {has} of {wanted} columns")
                } else {
                    format!("is one too many: the row has {has} columns")
                };
                let fix = format!("write {wanted}: {}", self.header.join(","));
                faults.tell(*line, self.named(has.min(wanted)), message, fix);
            }
        }
        rows
    }
}

/// One row.
pub(super) struct Row<'t> {
    table: &'t Table,
    pub(super) line: usize,
    record: &'t csv::StringRecord,
}

impl Row<'_> {
    /// A cell's text.
    pub(super) fn text(&self, column: usize) -> &str {
        self.record.get(column).unwrap_or_default()
    }

    pub(super) fn wrong(&self, column: usize, faults: &mut Faults, expected: &str) {
        let message = format!("is {:?}", self.text(column));
        faults.tell(
            self.line,
            self.table.named(column),
            message,
            format!("write {expected}"),
        );
    }

    /// A text that is not empty.
    pub(super) fn id(&self, column: usize, faults: &mut Faults) -> String {
        if self.text(column).is_empty() {
            self.wrong(column, faults, "the job's id");
        }
        self.text(column).to_owned()
    }

    /// A whole number; a mistake is told.
    pub(super) fn number<T: std::str::FromStr>(
        &self,
        column: usize,
        faults: &mut Faults,
        expected: &str,
    ) -> Option<T> {
        let found = self.text(column).parse().ok();
        if found.is_none() {
            self.wrong(column, faults, expected);
        }
        found
    }

    /// Seconds, with at most three decimals that count.
    pub(super) fn seconds(&self, column: usize, faults: &mut Faults) -> Millis {
        match thousandths(self.text(column)) {
            Some(ms) => Millis(ms),
            None => {
                self.wrong(column, faults, "seconds, not negative, as in 3600");
                Millis::ZERO
            }
        }
    }

    /// A duration with its unit.
    pub(super) fn duration(&self, column: usize, faults: &mut Faults) -> Millis {
        match drover_config::duration(self.text(column)) {
            Ok(span) => Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            Err(_) => {
                self.wrong(
                    column,
                    faults,
                    "a duration with its unit, as in 90s, 15m or 8h (a column of seconds has a name in _s)",
                );
                Millis::ZERO
            }
        }
    }
}

/// A decimal number that is not negative, times a thousand; further decimals are cut off.
pub(super) fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1.5", Some(1_500)),
            ("2.0019", Some(2_001)),
            ("-1", None),
            (".5", None),
            ("1e3", None),
            ("", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }
}
