//! How results are written: tables like kubectl's, JSON, YAML; colour only on a terminal. Every noun implements
//! [`Tabled`] and [`Sheet`] for its views and calls [`Out`]. Data goes to stdout, talk to stderr.

use super::exit::CliError;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

/// Form of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// As table, with more columns.
    Wide,
    /// JSON with stable names: a list is an array, one thing an object.
    Json,
    /// The same structure as YAML.
    Yaml,
}

/// How a cell is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// On its way.
    Busy,
    /// Trouble.
    Bad,
}

impl Tone {
    const fn paint(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Good => Some("\u{1b}[32m"),
            Self::Busy => Some("\u{1b}[33m"),
            Self::Bad => Some("\u{1b}[31m"),
        }
    }
}

/// Text of one cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// With a colour.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            tone,
        }
    }
    /// Without the colour.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::toned(text, Tone::Plain)
    }
}
impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
impl From<u32> for Cell {
    fn from(n: u32) -> Self {
        n.to_string().into()
    }
}
impl From<u64> for Cell {
    fn from(n: u64) -> Self {
        n.to_string().into()
    }
}
impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::default, Into::into)
    }
}
impl From<&Option<String>> for Cell {
    fn from(value: &Option<String>) -> Self {
        value.as_deref().into()
    }
}
impl From<&String> for Cell {
    fn from(value: &String) -> Self {
        value.as_str().into()
    }
}

/// One column of a table of `T`.
pub struct Column<T> {
    header: &'static str,
    wide: bool,
    cell: fn(&T, u64) -> Cell,
}

impl<T> Column<T> {
    /// Always shown. `cell` gets the thing and the present moment (milliseconds since 1970).
    pub const fn new(header: &'static str, cell: fn(&T, u64) -> Cell) -> Self {
        Self {
            header,
            wide: false,
            cell,
        }
    }
    /// Shown with `-o wide`.
    pub const fn wide(header: &'static str, cell: fn(&T, u64) -> Cell) -> Self {
        Self {
            header,
            wide: true,
            cell,
        }
    }
}

/// What can be a row.
pub trait Tabled: Sized {
    /// Columns in order.
    fn columns() -> Vec<Column<Self>>;
}

/// What can be shown alone, for people.
pub trait Sheet {
    /// Fills the page.
    fn sheet(&self, page: &mut Page, now_unix_ms: u64);
}

/// A page of names with values, and tables below headings.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    pending: Vec<(String, String)>,
    colour: bool,
}

impl Page {
    /// "Name:  value"; nothing is written when the value is missing.
    pub fn line<V: ToString>(&mut self, name: &str, value: Option<V>) {
        if let Some(value) = value {
            self.pending.push((name.to_owned(), value.to_string()));
        }
    }
    /// A line as it is.
    pub fn text(&mut self, line: &str) {
        self.flush();
        let _ = writeln!(self.text, "{line}");
    }
    /// A table below a heading; nothing is written when it is empty.
    pub fn table<T: Tabled>(&mut self, heading: &str, items: &[T], now_unix_ms: u64) {
        if items.is_empty() {
            return;
        }
        self.flush();
        let _ = write!(self.text, "\n{heading}:\n");
        for line in table(items, true, self.colour, now_unix_ms).lines() {
            let _ = writeln!(self.text, "  {line}");
        }
    }
    /// Lines below a heading; nothing is written when there are none.
    pub fn lines(&mut self, heading: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.flush();
        let _ = write!(self.text, "\n{heading}:\n");
        for line in lines {
            let _ = writeln!(self.text, "  {line}");
        }
    }
    fn flush(&mut self) {
        let width = self
            .pending
            .iter()
            .map(|(name, _)| name.len())
            .max()
            .unwrap_or(0)
            + 2;
        for (name, value) in self.pending.drain(..) {
            let _ = writeln!(self.text, "{:width$}{value}", format!("{name}:"));
        }
    }
    fn finish(mut self) -> String {
        self.flush();
        self.text
    }
}

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// Form.
    pub format: Format,
    /// Colour on stdout.
    pub colour: bool,
    /// Bars on stderr.
    pub progress: bool,
}

impl Out {
    /// As asked; colour and progress only on a terminal and without NO_COLOR.
    #[must_use]
    pub fn new(format: Format, no_color: bool) -> Self {
        let plain = no_color
            || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self {
            format,
            colour: !plain && std::io::stdout().is_terminal(),
            progress: !plain && std::io::stderr().is_terminal(),
        }
    }

    /// A list of things.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn list<T: Tabled + Serialize>(&self, items: &[T]) -> Result<(), CliError> {
        let now = super::duration::now_unix_ms();
        let text = match self.format {
            Format::Table | Format::Wide if items.is_empty() => {
                say("nothing to show");
                return Ok(());
            }
            Format::Table => table(items, false, self.colour, now),
            Format::Wide => table(items, true, self.colour, now),
            Format::Json => json(&items)?,
            Format::Yaml => yaml(&items)?,
        };
        write_out(text.as_bytes())
    }

    /// One thing: a page for people, an object otherwise.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn one<T: Sheet + Serialize>(&self, item: &T) -> Result<(), CliError> {
        let text = match self.format {
            Format::Table | Format::Wide => page(item, self.colour, super::duration::now_unix_ms()),
            Format::Json => json(item)?,
            Format::Yaml => yaml(item)?,
        };
        write_out(text.as_bytes())
    }

    /// One thing that was changed: its row for people, an object otherwise.
    ///
    /// # Errors
    /// stdout cannot be written.
    pub fn changed<T: Tabled + Serialize>(&self, item: &T) -> Result<(), CliError> {
        let text = match self.format {
            Format::Json => json(item)?,
            Format::Yaml => yaml(item)?,
            wide => table(
                std::slice::from_ref(item),
                wide == Format::Wide,
                self.colour,
                super::duration::now_unix_ms(),
            ),
        };
        write_out(text.as_bytes())
    }
}

/// A page as text.
#[must_use]
pub fn page<T: Sheet>(item: &T, colour: bool, now_unix_ms: u64) -> String {
    let mut page = Page {
        colour,
        ..Page::default()
    };
    item.sheet(&mut page, now_unix_ms);
    page.finish()
}

/// A table as text: upper-case headers, two blanks between, "-" for missing, no blanks at line ends.
#[must_use]
pub fn table<T: Tabled>(items: &[T], wide: bool, colour: bool, now_unix_ms: u64) -> String {
    let columns: Vec<_> = T::columns()
        .into_iter()
        .filter(|c| wide || !c.wide)
        .collect();
    let rows: Vec<Vec<Cell>> = items
        .iter()
        .map(|item| {
            columns
                .iter()
                .map(|c| (c.cell)(item, now_unix_ms))
                .collect()
        })
        .collect();
    let shown = |cell: &Cell| {
        let text = super::exit::one_line(&cell.text);
        if text.is_empty() {
            "-".to_owned()
        } else {
            text
        }
    };
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let cells = rows.iter().map(|r| shown(&r[i]).chars().count());
            cells.chain([c.header.len()]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let last = columns.len().saturating_sub(1);
    for (i, column) in columns.iter().enumerate() {
        pad(&mut text, column.header, None, widths[i], i == last);
    }
    for row in &rows {
        for (i, cell) in row.iter().enumerate() {
            let paint = cell.tone.paint().filter(|_| colour);
            pad(&mut text, &shown(cell), paint, widths[i], i == last);
        }
    }
    text
}

fn pad(text: &mut String, cell: &str, paint: Option<&str>, width: usize, last: bool) {
    match paint {
        Some(paint) => {
            let _ = write!(text, "{paint}{cell}\u{1b}[0m");
        }
        None => text.push_str(cell),
    }
    if last {
        while text.ends_with(' ') {
            text.pop();
        }
        text.push('\n');
    } else {
        let blanks = width.saturating_sub(cell.chars().count()) + 2;
        text.extend(std::iter::repeat_n(' ', blanks));
    }
}

/// Pretty JSON with a line end.
///
/// # Errors
/// A value that JSON cannot say.
pub fn json<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Failed(format!("cannot write JSON: {error}")))
}

/// JSON on one line with a line end, for streams.
///
/// # Errors
/// A value that JSON cannot say.
pub fn json_line<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_json::to_string(value)
        .map(|text| text + "\n")
        .map_err(|error| CliError::Failed(format!("cannot write JSON: {error}")))
}

/// YAML with a line end.
///
/// # Errors
/// A value that YAML cannot say.
pub fn yaml<T: Serialize>(value: &T) -> Result<String, CliError> {
    serde_yaml_ng::to_string(value)
        .map_err(|error| CliError::Failed(format!("cannot write YAML: {error}")))
}

/// Bytes to stdout. A reader that has gone (`| head`) is no failure.
///
/// # Errors
/// stdout cannot be written.
pub fn write_out(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::Failed(format!("cannot write to stdout: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// A line of talk to stderr. That nobody listens is no failure.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// An absent wire text (empty) as a missing value.
#[must_use]
pub fn text(value: String) -> Option<String> {
    Some(value).filter(|v| !v.is_empty())
}

/// An absent wire number (0) as a missing value.
#[must_use]
pub fn number(value: u64) -> Option<u64> {
    Some(value).filter(|v| *v != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sheep(&'static str, Option<u32>);
    impl Tabled for Sheep {
        fn columns() -> Vec<Column<Self>> {
            vec![
                Column::new("NAME", |s, _| s.0.into()),
                Column::wide("LEGS", |s, _| s.1.into()),
                Column::new("STATE", |_, _| Cell::toned("ready", Tone::Good)),
                Column::new("AGE", |_, now| {
                    super::super::duration::age(now, Some(0)).into()
                }),
            ]
        }
    }
    impl Sheet for Sheep {
        fn sheet(&self, page: &mut Page, now: u64) {
            page.line("Name", Some(self.0));
            page.line("Legs", self.1);
            page.lines("Says", &["baa".to_owned()]);
            page.table("Flock", &[Self("x", Some(3))], now);
        }
    }

    #[test]
    fn tables_align_and_missing_is_a_dash() {
        let flock = [Sheep("dolly", Some(4)), Sheep("é", None)];
        assert_eq!(
            table(&flock, true, false, 3_000),
            "NAME   LEGS  STATE  AGE\ndolly  4     ready  3s\né      -     ready  3s\n"
        );
        assert_eq!(
            table(&flock[..1], false, false, 0),
            "NAME   STATE  AGE\ndolly  ready  0s\n"
        );
    }

    #[test]
    fn colour_does_not_move_columns() {
        let plain = table(&[Sheep("a", None)], false, false, 0);
        let painted = table(&[Sheep("a", None)], false, true, 0);
        assert!(painted.contains("\u{1b}[32mready\u{1b}[0m"));
        let bare = painted.replace("\u{1b}[32m", "").replace("\u{1b}[0m", "");
        assert_eq!(bare, plain);
    }

    #[test]
    fn pages_leave_missing_values_out() {
        assert_eq!(
            page(&Sheep("a", None), false, 0),
            "Name: a\n\nSays:\n  baa\n\nFlock:\n  NAME  LEGS  STATE  AGE\n  x     3     ready  0s\n"
        );
    }
}
