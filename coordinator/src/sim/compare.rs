//! Two or more policies side by side: which settings differ, and all scores as one object.
//!
//! Called by `drover simulate --compare` and the report. Reads the configs' text only to name what differs.

use super::score::{Score, differences, object};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A setting that is not the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Path: `pool.gpu.idle_after`.
    pub key: String,
    /// As written in each config; absent where it is not.
    pub values: Vec<Option<String>>,
}

/// The settings that differ between configs, by path. A table in a list is named by its `name`, or its place.
///
/// # Errors
/// A text that is no TOML; what is wrong with it.
pub fn settings(configs: &[&str]) -> Result<Vec<Setting>, toml::de::Error> {
    let mut all: Vec<BTreeMap<String, String>> = Vec::new();
    for text in configs {
        let mut flat = BTreeMap::new();
        flatten("", &toml::Value::Table(toml::from_str(text)?), &mut flat);
        all.push(flat);
    }
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    Ok(keys
        .into_iter()
        .map(|key| Setting {
            key: key.clone(),
            values: all.iter().map(|flat| flat.get(key).cloned()).collect(),
        })
        .filter(|setting| {
            setting
                .values
                .iter()
                .any(|value| *value != setting.values[0])
        })
        .collect())
}

fn flatten(path: &str, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                flatten(&below(name), value, into);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&below(&called(item, at)), item, into);
            }
        }
        plain => {
            into.insert(path.to_owned(), plain.to_string());
        }
    }
}

/// What a table of a list is called.
fn called(item: &toml::Value, at: usize) -> String {
    let text = |key: &str| item.get(key).and_then(toml::Value::as_str);
    match (text("name"), text("instance_type"), text("zone")) {
        (Some(name), ..) => name.to_owned(),
        (None, Some(kind), Some(zone)) => format!("{kind}/{zone}"),
        (None, Some(kind), None) => kind.to_owned(),
        (None, None, _) => (at + 1).to_string(),
    }
}

/// All scores, and what differs from the first.
#[must_use]
pub fn comparison(scores: &[Score], settings: &[Setting]) -> Value {
    let differs = scores.iter().skip(1).map(|other| {
        json!({
            "policy": other.policy,
            "against": scores[0].policy,
            "differences": differences(&scores[0], other),
        })
    });
    let settings: Vec<Value> = settings
        .iter()
        .map(|setting| json!({ "key": setting.key, "values": setting.values }))
        .collect();
    json!({
        "policies": scores.iter().map(object).collect::<Vec<_>>(),
        "differences": differs.collect::<Vec<_>>(),
        "settings": settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_by_their_tables() {
        let one = "[simulate]\nseed = 1\n[[pool]]\nname = \"gpu\"\nidle_after = \"0s\"\n[[pool]]\nname = \"cpu\"\nmax = 4\n";
        let two = "[simulate]\nseed = 1\n[[pool]]\nname = \"cpu\"\nmax = 4\nspare = 1\n[[pool]]\nname = \"gpu\"\nidle_after = \"10m\"\n";
        let found = settings(&[one, two]).expect("TOML");
        let shown: Vec<(String, String)> = found
            .iter()
            .map(|setting| {
                let value = |at: usize| setting.values[at].clone().unwrap_or_default();
                (setting.key.clone(), format!("{} {}", value(0), value(1)))
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("pool.cpu.spare".to_owned(), " 1".to_owned()),
                (
                    "pool.gpu.idle_after".to_owned(),
                    "\"0s\" \"10m\"".to_owned()
                ),
            ]
        );
        assert!(settings(&[one, one]).expect("TOML").is_empty());
        assert!(settings(&["= 1"]).is_err());
    }
}
