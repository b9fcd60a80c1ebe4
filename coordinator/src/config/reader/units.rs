//! Values with a unit or a notation of their own: durations, money, CPUs, quotas, and what a caller reads out of a text or
//! under free names.
//!
//! Called by whoever reads a config, through [`Section`].

use super::Section;
use crate::config::values;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;

impl Section<'_> {
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
}
