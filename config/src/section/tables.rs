//! Tables below a table: one, a list, under free names; and what nobody asked for in one. A part of `section`.

use super::Section;
use crate::nearest::nearest;

impl<'a> Section<'a> {
    /// A table, empty when it is not there.
    pub fn section(&self, key: &'static str) -> Section<'a> {
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

    /// Tables under free names, as in [control.team.vision]; each with its name.
    pub fn named_sections(&self, key: &'static str) -> Vec<(String, Section<'a>)> {
        let path = self.key(key);
        let fix = format!("write tables: [{path}.NAME]");
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(key, &value.span(), value.get_ref(), &fix);
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, item) in table.iter() {
            let name = name.get_ref().to_string();
            match item.get_ref().as_table() {
                Some(table) => {
                    let path = format!("{path}.{name}");
                    let start = item.span().start;
                    found.push((name, Self::at(self.reader, path, start, Some(table))));
                }
                None => {
                    let key = format!("{key}.{name}");
                    self.wrong(&key, &item.span(), item.get_ref(), &fix);
                }
            }
        }
        found
    }

    /// A list of tables.
    pub fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
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
    pub fn finish(&self) {
        if self.lenient.get() {
            return;
        }
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
