//! Reads a TOML table key by key and collects every problem with its line, so that one run tells them all.
//!
//! Called by `config`. Knows TOML, not what the keys mean.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duration;

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
pub(super) struct Reader<'a> {
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            problems: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn report(
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

    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}

/// A value with where it stands.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) offset: usize,
}

/// One table while it is read. [`Section::finish`] refuses what nobody asked for.
pub(super) struct Section<'a> {
    reader: &'a Reader<'a>,
    path: String,
    offset: usize,
    table: Option<&'a DeTable<'a>>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    pub(super) fn root(reader: &'a Reader<'a>, table: &'a DeTable<'a>) -> Self {
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
        }
    }

    /// Where the section begins.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The key is there, whatever it holds.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table
            .is_some_and(|table| table.iter().any(|(name, _)| name.get_ref().as_ref() == key))
    }

    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(super) fn report(&self, offset: usize, key: &str, message: &str, fix: &str) {
        self.reader.report(offset, self.key(key), message, fix);
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

    /// A text.
    pub(super) fn text(&self, key: &'static str, fix: &str) -> Option<At<String>> {
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(key, &value.span(), value.get_ref(), fix);
            return None;
        };
        if text.trim().is_empty() {
            self.report(value.span().start, key, "is empty", fix);
            return None;
        }
        Some(At {
            value: text.to_owned(),
            offset: value.span().start,
        })
    }

    /// A duration within a range; numbers are refused for want of a unit.
    pub(super) fn duration(
        &self,
        key: &'static str,
        within: std::ops::RangeInclusive<Duration>,
        example: &str,
    ) -> Option<Duration> {
        let value = self.value(key)?;
        let fix = format!("write a duration, as in {key} = \"{example}\"");
        let start = value.span().start;
        match value.get_ref() {
            DeValue::Integer(number) => {
                let message = format!("has no unit: {}", number.as_str());
                let fix = format!("write \"{}s\" if seconds are meant", number.as_str());
                self.report(start, key, &message, &fix);
                None
            }
            DeValue::String(text) => match duration::parse(text) {
                Ok(found) if within.contains(&found) => Some(found),
                Ok(_) => {
                    let message = format!("{text:?} is out of range");
                    let fix = format!("stay between {:?} and {:?}", within.start(), within.end());
                    self.report(start, key, &message, &fix);
                    None
                }
                Err(error) => {
                    self.report(start, key, &error.to_string(), &fix);
                    None
                }
            },
            other => {
                self.wrong(key, &value.span(), other, &fix);
                None
            }
        }
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &'static str, fix: &str) -> Option<Vec<At<String>>> {
        let value = self.value(key)?;
        let Some(items) = value.get_ref().as_array() else {
            self.wrong(key, &value.span(), value.get_ref(), fix);
            return None;
        };
        let mut found = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item.get_ref().as_str() {
                Some(text) => found.push(At {
                    value: text.to_owned(),
                    offset: item.span().start,
                }),
                None => self.wrong(key, &item.span(), item.get_ref(), fix),
            }
        }
        Some(found)
    }

    /// A table, empty when it is not there.
    pub(super) fn section(&self, key: &'static str) -> Section<'a> {
        let path = self.key(key);
        let Some(value) = self.value(key) else {
            return Self::at(self.reader, path, self.offset, None);
        };
        let table = value.get_ref().as_table();
        if table.is_none() {
            let fix = format!("write a table: [{path}]");
            self.wrong(key, &value.span(), value.get_ref(), &fix);
        }
        Self::at(self.reader, path, value.span().start, table)
    }

    /// A list of tables.
    pub(super) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let path = self.key(key);
        let fix = format!("write tables: [[{path}]]");
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            self.wrong(key, &value.span(), value.get_ref(), &fix);
            return Vec::new();
        };
        let mut found = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.get_ref().as_table() {
                Some(table) => found.push(Self::at(
                    self.reader,
                    format!("{path}[{index}]"),
                    item.span().start,
                    Some(table),
                )),
                None => self.wrong(key, &item.span(), item.get_ref(), &fix),
            }
        }
        found
    }

    /// Refuses keys that were never asked for.
    pub(super) fn finish(self) {
        let known = self.known.borrow();
        for (name, _) in self.table.into_iter().flat_map(|table| table.iter()) {
            let text: &str = name.get_ref().as_ref();
            if !known.contains(&text) {
                let fix = match nearest(text, &known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("known keys: {}", known.join(", ")),
                };
                self.report(name.span().start, text, "is an unknown key", &fix);
            }
        }
    }
}

fn article(kind: &str) -> String {
    match kind.as_bytes().first() {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// The known key at an edit distance of at most 2.
fn nearest<'k>(text: &str, known: &[&'k str]) -> Option<&'k str> {
    let (distance, key) = known
        .iter()
        .map(|key| (edits(text.as_bytes(), key.as_bytes()), *key))
        .min()?;
    (distance <= 2).then_some(key)
}

/// Levenshtein's distance, one row at a time.
fn edits(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
