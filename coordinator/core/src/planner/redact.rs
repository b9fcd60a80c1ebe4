//! Redacts a plan input: every name and text that people chose becomes a short pseudonym, the same name always the same
//! one. Used by `drover plan --redact`. What the planner looks at stays: amounts, times, prices, equality of names and
//! their order; so the redacted file gives the same plan, but for the names. Kept as they are: well-known label keys,
//! instance types, GPU models, whole numbers.

mod walk;

use crate::model::PlanInput;
use std::collections::{BTreeMap, BTreeSet};
use walk::Kind;

/// The pseudonyms of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    names: BTreeMap<String, String>,
}

/// An input without names.
#[must_use]
pub fn redact(input: &PlanInput) -> PlanInput {
    Redaction::of(input).apply(input)
}

impl Redaction {
    /// Finds every name of an input and gives it a pseudonym. Pseudonyms sort as the names do, among each other and
    /// among the texts that are kept: the planner breaks ties by name.
    #[must_use]
    pub fn of(input: &PlanInput) -> Self {
        let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
        let mut kept: BTreeSet<String> = BTreeSet::new();
        walk::texts(&mut input.clone(), &mut |kind, text| {
            if text.is_empty() {
            } else if kind == Kind::Kept || text.parse::<i64>().is_ok() {
                kept.insert(text.clone());
            } else {
                let slot = kinds.entry(text.clone()).or_insert(kind);
                *slot = kind.min(*slot);
            }
        });
        kinds.retain(|name, _| !kept.contains(name));
        let width = kinds.len().to_string().len();
        let mut names = BTreeMap::new();
        let mut gap: Option<(Option<&String>, String)> = None;
        for (n, (name, kind)) in kinds.into_iter().enumerate() {
            let low = kept.range(..name.clone()).next_back();
            if gap.as_ref().is_none_or(|(at, _)| *at != low) {
                let high = kept.range(name.clone()..).next();
                gap = Some((low, between(low, high)));
            }
            let first = gap.as_ref().map_or("", |(_, first)| first.as_str());
            names.insert(name, format!("{first}{n:0width$}-{}", kind.word()));
        }
        Self { names }
    }

    /// The input with pseudonyms.
    #[must_use]
    pub fn apply(&self, input: &PlanInput) -> PlanInput {
        let mut out = input.clone();
        walk::texts(&mut out, &mut |_, text| {
            if let Some(name) = self.names.get(text) {
                text.clone_from(name);
            }
        });
        out
    }

    /// Names and their pseudonyms, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names
            .iter()
            .map(|(name, p)| (name.as_str(), p.as_str()))
    }
}

/// A text so that all that begin with it sort between two others: a letter where one will do.
fn between(low: Option<&String>, high: Option<&String>) -> String {
    let low = low.map_or("", String::as_str);
    let fits = |text: &str| {
        low < text && high.is_none_or(|high| text < high.as_str() && !high.starts_with(text))
    };
    let single = std::iter::once('n').chain('a'..='z').map(String::from);
    let ends = (0..=low.len()).filter(|n| low.is_char_boundary(*n));
    let letters = || ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['-']);
    let longer = ends.flat_map(|n| letters().map(move |c| format!("{}{c}", &low[..n])));
    // Between a text and itself with a mark behind it there is nothing: then the order is lost, the names are not.
    single
        .chain(longer)
        .find(|text| fits(text))
        .unwrap_or_else(|| "n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudonyms_stand_between_what_is_kept() {
        for (low, high) in [
            ("", ""),
            ("", "amd64"),
            ("amd64", "kubernetes.io/hostname"),
            (
                "topology.kubernetes.io/region",
                "topology.kubernetes.io/zone",
            ),
            ("p4d.24xlarge", "p5.48xlarge"),
            ("1", "2"),
            ("n", "na"),
            ("zone", ""),
        ] {
            let none = |t: &str| (!t.is_empty()).then(|| t.to_owned());
            let (low, high) = (none(low), none(high));
            let text = between(low.as_ref(), high.as_ref());
            let longer = format!("{text}999-value");
            assert!(low.is_none_or(|l| l < longer), "{text}");
            if high.as_deref() != Some("na") {
                assert!(high.is_none_or(|h| longer < h), "{text}");
            }
        }
    }
}
