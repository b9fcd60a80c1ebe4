//! Values that stand for themselves: texts, paths, words, whole numbers, flags. A part of `section`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{At, Section};

impl Section<'_> {
    /// A text.
    pub fn text(&self, key: &'static str, fix: &str) -> Option<At<String>> {
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

    /// A text that must be there.
    pub fn required(&self, key: &'static str, fix: &str) -> Option<At<String>> {
        self.require(key, fix);
        self.text(key, fix)
    }

    /// An absolute path. One that is not is reported and given all the same.
    pub fn absolute(&self, key: &'static str) -> Option<PathBuf> {
        let fix = "write an absolute path";
        let at = self.text(key, fix)?;
        let path = PathBuf::from(&at.value);
        if !path.is_absolute() {
            self.report(at.offset, key, "is a relative path", fix);
        }
        Some(path)
    }

    /// A text that may be empty.
    pub fn loose_text(&self, key: &'static str, fix: &str) -> Option<String> {
        let value = self.value(key)?;
        let found = value.get_ref().as_str().map(str::to_owned);
        if found.is_none() {
            self.wrong(key, &value.span(), value.get_ref(), fix);
        }
        found
    }

    /// A list of texts; an empty one among them is reported and given all the same.
    pub fn texts(&self, key: &'static str, fix: &str) -> Option<Vec<At<String>>> {
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
    pub fn count(&self, key: &'static str, within: RangeInclusive<u32>) -> Option<At<u32>> {
        let at = self.number(key, (*within.start()).into()..=(*within.end()).into())?;
        // Within the range, so it fits.
        let value = u32::try_from(at.value).ok()?;
        Some(At {
            value,
            offset: at.offset,
        })
    }

    /// A whole number within a wide range.
    pub fn number(&self, key: &'static str, within: RangeInclusive<u64>) -> Option<At<u64>> {
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
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let found = value.get_ref().as_bool();
        if found.is_none() {
            let fix = format!("write {key} = true or {key} = false");
            self.wrong(key, &value.span(), value.get_ref(), &fix);
        }
        found
    }

    /// One of some words.
    pub fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Option<At<T>> {
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
