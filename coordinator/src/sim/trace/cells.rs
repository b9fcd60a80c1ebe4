//! A CSV file cell by cell: each value with its line, column and what was expected there.
//!
//! Used by the readers of CSV formats. Knows no format.

use super::read::MOST_PROBLEMS;
use super::{LONGEST, MOST, Trace};
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
        let open = open_quote(text);
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = match reader.headers() {
            Ok(header) => header.iter().map(str::to_ascii_lowercase).collect(),
            Err(_) => Vec::new(),
        };
        if let Some((line, column)) = open {
            // What follows would all be one cell.
            let table = Self {
                header,
                rows: Vec::new(),
            };
            let message = "opens a quote that is never closed";
            let fix = "close it with a second \", or write the cell without";
            faults.tell(line, table.named(column), message, fix);
            return table;
        }
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

    /// A whole number that is not larger than any can be; a mistake is told.
    pub(super) fn count(&self, column: usize, faults: &mut Faults, expected: &str) -> Option<u32> {
        let text = self.text(column);
        let found = text.parse().ok().filter(|found| *found <= MOST);
        if found.is_none() {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let limit = if digits {
                format!("{expected}, at most {MOST}")
            } else {
                expected.to_owned()
            };
            self.wrong(column, faults, &limit);
        }
        found
    }

    /// Seconds, with at most three decimals that count.
    pub(super) fn seconds(&self, column: usize, faults: &mut Faults) -> Millis {
        match thousandths(self.text(column)) {
            Some(ms) => self.within_years(column, Millis(ms), faults),
            None => {
                self.wrong(column, faults, "seconds, not negative, as in 3600");
                Millis::ZERO
            }
        }
    }

    /// Nobody waits for centuries to be played.
    fn within_years(&self, column: usize, span: Millis, faults: &mut Faults) -> Millis {
        if span <= LONGEST {
            return span;
        }
        let most = LONGEST.0 / 1_000;
        let expected = format!("at most {most} s, which is ten years; times count from the start");
        self.wrong(column, faults, &expected);
        LONGEST
    }

    /// A duration with its unit.
    pub(super) fn duration(&self, column: usize, faults: &mut Faults) -> Millis {
        match drover_config::duration(self.text(column)) {
            Ok(span) => {
                let span = Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
                self.within_years(column, span, faults)
            }
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

/// Line and column (from 0) of a cell whose quote is never closed. A quote opens at the begin of a cell; two of them in it
/// are one.
fn open_quote(text: &str) -> Option<(usize, usize)> {
    let (mut line, mut column) = (1, 0);
    let mut begins = true;
    let mut open = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        line += usize::from(letter == '\n');
        match (letter, open) {
            ('"', Some(_)) if letters.peek() == Some(&'"') => {
                letters.next();
            }
            ('"', Some(_)) => open = None,
            (_, Some(_)) => {}
            ('"', None) if begins => open = Some((line, column)),
            (',', None) => column += 1,
            ('\n', None) => column = 0,
            _ => {}
        }
        begins = open.is_none() && matches!(letter, ',' | '\n');
    }
    open
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
    fn a_quote_that_is_never_closed_has_its_place() {
        for (text, place) in [
            ("a,b\n\"x, \"\"y\"\"\nz\",2\n", None),
            ("a,b\n1,5\" disk\n", None),
            ("a,b\n1,\"x\n2,y\n", Some((2, 1))),
            ("a,b\n1,\"x\"\"\n2,y\n", Some((2, 1))),
            ("\"a,b\n1,2\n", Some((1, 0))),
        ] {
            assert_eq!(open_quote(text), place, "{text}");
        }
    }

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
