//! Values with a notation of their own: durations, and what the caller reads out of a text, a value or a table of free names.
//! A part of `section`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use super::Section;
use crate::units;

impl Section<'_> {
    /// A duration within a range; numbers are refused for want of a unit.
    pub fn duration(
        &self,
        key: &'static str,
        within: RangeInclusive<Duration>,
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
            DeValue::String(text) => match units::duration(text) {
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

    /// A text that `read` understands.
    pub fn parsed<T, E: Display>(
        &self,
        key: &'static str,
        example: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let fix = format!("write {key} = \"{example}\"");
        let at = self.text(key, &fix)?;
        match read(&at.value) {
            Ok(found) => Some(found),
            Err(error) => {
                self.report(at.offset, key, &error.to_string(), &fix);
                None
            }
        }
    }

    /// Any value that `read` understands; it says why one is none.
    pub fn valued<T>(
        &self,
        key: &'static str,
        fix: &str,
        read: impl Fn(&DeValue<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.value(key)?;
        match read(value.get_ref()) {
            Ok(found) => Some(found),
            Err(message) => {
                self.report(value.span().start, key, &message, fix);
                None
            }
        }
    }

    /// Free names to values, such as labels or prices; `read` says why a value is none.
    pub fn map<T>(
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
}

/// Any text.
///
/// # Errors
/// What the value is instead.
pub fn any_text(value: &DeValue<'_>) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| kind(value))
}

/// What a value is that should be something else: "is an integer".
#[must_use]
pub fn kind(value: &DeValue<'_>) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("is {article} {name}")
}
