//! One table of a TOML text while it is read, and the problems found so far.
//!
//! Called by whoever reads a config: [`read`] hands out the root. The files below have what a section is asked.

mod notation;
mod plain;
mod tables;

pub use notation::{any_text, kind};

use std::cell::{Cell, RefCell};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::Problem;
use crate::lines::line_at;

/// Problems found so far, with the text that lines are counted in.
#[derive(Debug)]
struct Reader<'a> {
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            problems: RefCell::new(Vec::new()),
        }
    }

    fn report(
        &self,
        at: usize,
        key: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.problems.borrow_mut().push(Problem {
            line: line_at(self.text, at),
            key: key.into(),
            message: message.into(),
            fix: fix.into(),
        });
    }

    fn blames(&self, key: &str) -> bool {
        let problems = self.problems.borrow();
        problems.iter().any(|problem| problem.key.starts_with(key))
    }

    fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}

/// Reads a TOML text with `read`, which finishes every section below the root.
///
/// # Errors
/// All that is wrong with it, by line.
pub fn read<T>(text: &str, read: impl FnOnce(&Section<'_>) -> T) -> Result<T, Vec<Problem>> {
    let reader = Reader::new(text);
    let (table, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        for error in broken {
            let span = error.span().unwrap_or_default();
            let (message, fix) = match (error.message(), text.get(span.clone())) {
                ("duplicate key", Some(key)) => (
                    format!("{key} stands twice in its table"),
                    "keep one of the two",
                ),
                (other, _) => (other.to_owned(), "write TOML: key = \"value\""),
            };
            reader.report(span.start, "", message, fix);
        }
        return Err(reader.into_problems());
    }
    let root = Section::root(&reader, table.get_ref());
    let found = read(&root);
    root.finish();
    let problems = reader.into_problems();
    if problems.is_empty() {
        Ok(found)
    } else {
        Err(problems)
    }
}

/// A value with where it stands.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// What it says.
    pub value: T,
    /// Its first byte in the text.
    pub offset: usize,
}

/// One table while it is read; what is asked of it reports what is wrong. [`Section::finish`] refuses what nobody asked for.
pub struct Section<'a> {
    reader: &'a Reader<'a>,
    path: String,
    offset: usize,
    table: Option<&'a DeTable<'a>>,
    known: RefCell<Vec<&'static str>>,
    lenient: Cell<bool>,
}

impl<'a> Section<'a> {
    fn root(reader: &'a Reader<'a>, table: &'a DeTable<'a>) -> Self {
        Self::at(reader, String::new(), 0, Some(table))
    }

    fn at(
        reader: &'a Reader<'a>,
        path: String,
        offset: usize,
        table: Option<&'a DeTable<'a>>,
    ) -> Self {
        Self {
            reader,
            path,
            offset,
            table,
            known: RefCell::new(Vec::new()),
            lenient: Cell::new(false),
        }
    }

    /// Something was reported of this key, named with its tables, or below it.
    #[must_use]
    pub fn blames(&self, key: &str) -> bool {
        self.reader.blames(key)
    }

    /// Its name with those above it; empty for the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its first byte in the text; that of the section above where it is not there.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// A key of it with its tables.
    #[must_use]
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Reports a problem of one of its keys: where, what is wrong (the key will stand before it), what to write instead.
    pub fn report(&self, offset: usize, key: &str, message: &str, fix: &str) {
        self.reader.report(offset, self.key(key), message, fix);
    }

    /// The key is there, whatever it holds.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.table
            .is_some_and(|table| table.iter().any(|(name, _)| name.get_ref().as_ref() == key))
    }

    /// Reports that the key is required, where it is not there.
    pub fn require(&self, key: &str, fix: &str) {
        if !self.has(key) {
            self.report(self.offset, key, "is required", fix);
        }
    }

    /// Unknown keys are not reported: too little is known to tell which they are.
    pub fn accept_all(&self) {
        self.lenient.set(true);
    }

    fn value(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.borrow_mut().push(key);
        let (_, value) = self
            .table?
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)?;
        Some(value)
    }

    fn wrong(&self, key: &str, span: &Range<usize>, found: &DeValue<'_>, fix: &str) {
        self.report(span.start, key, &kind(found), fix);
    }
}
