//! Tables like kubectl's: columns declared once per thing, aligned, coloured only when told. Pure; used through `output`.

use std::fmt::Write as _;

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
        let text = crate::cli::exit::one_line(&cell.text);
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
