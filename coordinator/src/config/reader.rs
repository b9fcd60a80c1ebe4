//! Reads a TOML table key by key and collects every problem with its line, so that one run tells them all.
//!
//! Called by `config`, and by `adapters::cloud` for its own file. Knows TOML, not what the keys mean.

mod nearest;
mod tables;

pub(super) use nearest::nearest;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::values;

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

    /// A text.
    pub(crate) fn text(&self, key: &'static str, fix: &str) -> Option<At<String>> {
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

    /// A text that may be empty.
    pub(crate) fn loose_text(&self, key: &'static str, fix: &str) -> Option<String> {
        let value = self.value(key)?;
        let found = value.get_ref().as_str().map(str::to_owned);
        if found.is_none() {
            self.wrong(key, &value.span(), value.get_ref(), fix);
        }
        found
    }

    /// A duration within a range; numbers are refused for want of a unit.
    pub(crate) fn duration(
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
            DeValue::String(text) => match values::duration(text) {
                Ok(found) if within.contains(&found) => Some(found),
                Ok(_) => {
                    let message = format!("{text:?} is out of range");
                    let fix = format!("stay between {:?} and {:?}", within.start(), within.end());
                    self.report(start, key, &message, &fix);
                    None
                }
                Err(message) => {
                    self.report(start, key, &message, &fix);
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
    pub(crate) fn texts(&self, key: &'static str, fix: &str) -> Option<Vec<At<String>>> {
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
        for at in &found {
            if at.value.trim().is_empty() {
                self.report(at.offset, key, "holds an empty text", fix);
            }
        }
        Some(found)
    }

    /// A whole number within a range.
    pub(crate) fn count(
        &self,
        key: &'static str,
        within: std::ops::RangeInclusive<u32>,
    ) -> Option<At<u32>> {
        let at = self.number(key, (*within.start()).into()..=(*within.end()).into())?;
        // Within the range, so it fits.
        let value = u32::try_from(at.value).ok()?;
        Some(At {
            value,
            offset: at.offset,
        })
    }

    /// A whole number within a wide range.
    pub(crate) fn number(
        &self,
        key: &'static str,
        within: std::ops::RangeInclusive<u64>,
    ) -> Option<At<u64>> {
        let value = self.value(key)?;
        let start = value.span().start;
        let fix = format!(
            "write a whole number from {} to {}",
            within.start(),
            within.end()
        );
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong(key, &value.span(), value.get_ref(), &fix);
            return None;
        };
        match u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
            Ok(found) if within.contains(&found) => Some(At {
                value: found,
                offset: start,
            }),
            _ => {
                self.report(start, key, "is out of range", &fix);
                None
            }
        }
    }

    /// True or false.
    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            let fix = format!("write {key} = true or {key} = false");
            self.wrong(key, &value.span(), value.get_ref(), &fix);
        }
        found
    }

    /// An amount of money, as a number of USD; micro-USD.
    pub(crate) fn usd(&self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        let found = values::usd(value.get_ref());
        if let Err(message) = &found {
            let fix = format!("write USD, as in {key} = 14.4");
            self.report(value.span().start, key, message, &fix);
        }
        found.ok()
    }

    /// A number of CPUs; thousandths.
    pub(crate) fn cpus(&self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        let found = values::milli_cpus(value.get_ref());
        if let Err(message) = &found {
            let fix = format!("write a number, as in {key} = 4 or {key} = 0.5");
            self.report(value.span().start, key, message, &fix);
        }
        found.ok()
    }

    /// A text that `read` understands.
    pub(crate) fn parsed<T>(
        &self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let fix = format!("write {key} = \"{example}\"");
        let at = self.text(key, &fix)?;
        match read(&at.value) {
            Ok(found) => Some(found),
            Err(message) => {
                self.report(at.offset, key, &message, &fix);
                None
            }
        }
    }

    /// A number or a text in percent.
    pub(crate) fn quota(&self, key: &'static str) -> Option<drover_core::model::Quota> {
        let value = self.value(key)?;
        let found = values::quota(value.get_ref());
        if let Err(message) = &found {
            let fix = format!("write {key} = \"10%\" or a number of nodes");
            self.report(value.span().start, key, message, &fix);
        }
        found.ok()
    }

    /// Free names to values, such as labels or prices; `read` says why a value is none.
    pub(crate) fn map<T>(
        &self,
        key: &'static str,
        fix: &str,
        read: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> BTreeMap<String, T> {
        let mut found = BTreeMap::new();
        let Some(value) = self.value(key) else {
            return found;
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(key, &value.span(), value.get_ref(), fix);
            return found;
        };
        for (name, value) in table.iter() {
            match read(value.get_ref()) {
                Ok(read) => {
                    found.insert(name.get_ref().to_string(), read);
                }
                Err(message) => {
                    let path = format!("{key}.{}", name.get_ref());
                    self.report(value.span().start, &path, &message, fix);
                }
            }
        }
        found
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<At<T>> {
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        let fix = format!("write {}", names.join(" or "));
        let at = self.text(key, &fix)?;
        match choices.iter().find(|(name, _)| *name == at.value) {
            Some((_, value)) => Some(At {
                value: *value,
                offset: at.offset,
            }),
            None => {
                let message = format!("{:?} is none of the choices", at.value);
                self.report(at.offset, key, &message, &fix);
                None
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
