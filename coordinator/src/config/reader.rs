//! Reads a TOML table key by key and collects every problem with its line, so that one run tells them all.
//!
//! Called by `config`, and by `adapters::cloud` for its own file. Knows TOML, not what the keys mean.

mod nearest;
mod plain;
mod tables;
mod units;

pub(super) use nearest::nearest;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing wrong with a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// The key with its tables ("drain.executors").
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
}

/// Problems found so far, with the text that lines are counted in.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
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

    pub(crate) fn report(
        &self,
        at: usize,
        key: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let upto = &self.text.as_bytes()[..at.min(self.text.len())];
        self.problems.borrow_mut().push(Problem {
            line: 1 + upto.iter().filter(|byte| **byte == b'\n').count(),
            key: key.into(),
            message: message.into(),
            fix: fix.into(),
        });
    }

    /// Something was found at this key or below it.
    pub(crate) fn blames(&self, key: &str) -> bool {
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
pub(crate) fn read<T>(text: &str, read: impl FnOnce(&Section<'_>) -> T) -> Result<T, Vec<Problem>> {
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
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) offset: usize,
}

/// One table while it is read. [`Section::finish`] refuses what nobody asked for.
pub(crate) struct Section<'a> {
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

    /// What is wrong was reported already, here or below.
    pub(crate) fn blames(&self, key: &str) -> bool {
        self.reader.blames(key)
    }

    /// Its name with those above it; empty for the root.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Where the section begins.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(crate) fn report(&self, offset: usize, key: &str, message: &str, fix: &str) {
        self.reader.report(offset, self.key(key), message, fix);
    }

    /// The key is there, whatever it holds.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table
            .is_some_and(|table| table.iter().any(|(name, _)| name.get_ref().as_ref() == key))
    }

    /// Unknown keys are not reported: too little is known to tell which they are.
    pub(crate) fn accept_all(&self) {
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
        let message = format!("is {}", article(found.type_str()));
        self.report(span.start, key, &message, fix);
    }
}

fn article(kind: &str) -> String {
    match kind.as_bytes().first() {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}
