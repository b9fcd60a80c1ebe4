//! Pages for people: names with values, tables and lines below headings. Pure; used through `output`.

use super::table::{Tabled, table};
use crate::cli::exit::printable;
use std::fmt::Write as _;

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
            self.pending
                .push((name.to_owned(), printable(&value.to_string())));
        }
    }
    /// A line as it is, but printable.
    pub fn text(&mut self, line: &str) {
        self.flush();
        let _ = writeln!(self.text, "{}", printable(line));
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
            let _ = writeln!(self.text, "  {}", printable(line));
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
