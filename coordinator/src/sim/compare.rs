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

/// The settings that differ between configs, by path. A table in a list is named by its `name`, or its place; one that
/// is not in every config is one difference, whatever it sets.
///
/// # Errors
/// A text that is no TOML; what is wrong with it.
pub fn settings(configs: &[&str]) -> Result<Vec<Setting>, toml::de::Error> {
    let mut all: Vec<Flat> = Vec::new();
    for text in configs {
        let mut flat = Flat::default();
        flatten("", &toml::Value::Table(toml::from_str(text)?), &mut flat);
        all.push(flat);
    }
    let everywhere = |path: &str| all.iter().all(|flat| flat.items.contains(path));
    let items: BTreeSet<&String> = all.iter().flat_map(|flat| &flat.items).collect();
    let mut missing: Vec<&str> = items.into_iter().map(String::as_str).collect();
    missing.retain(|path| !everywhere(path));
    let below = |path: &str| {
        let mut inside = missing.iter();
        inside.any(|item| {
            path.strip_prefix(item)
                .is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let mut found: Vec<Setting> = missing
        .iter()
        .filter(|path| !below(path))
        .map(|path| Setting {
            key: (*path).to_owned(),
            values: all
                .iter()
                .map(|flat| flat.items.contains(*path).then(|| "is there".to_owned()))
                .collect(),
        })
        .collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(|flat| flat.values.keys()).collect();
    for key in keys.into_iter().filter(|key| !below(key)) {
        let values: Vec<Option<String>> = all
            .iter()
            .map(|flat| flat.values.get(key).cloned())
            .collect();
        if values.iter().any(|value| *value != values[0]) {
            found.push(Setting {
                key: key.clone(),
                values,
            });
        }
    }
    Ok(found)
}

/// A config without its structure.
#[derive(Default)]
struct Flat {
    values: BTreeMap<String, String>,
    /// Tables of lists.
    items: BTreeSet<String>,
}

fn flatten(path: &str, value: &toml::Value, into: &mut Flat) {
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
                let path = below(&called(item, at));
                flatten(&path, item, into);
                into.items.insert(path);
            }
        }
        plain => {
            into.values.insert(path.to_owned(), plain.to_string());
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

/// The same in words, to stand below the table; empty for one score.
#[must_use]
pub fn words(scores: &[Score], settings: &[Setting]) -> String {
    let mut lines = Vec::new();
    for other in scores.iter().skip(1) {
        let found = differences(&scores[0], other);
        if found.is_empty() {
            let (one, other) = (&scores[0].policy, &other.policy);
            lines.push(format!("{one} and {other}: no figure differs\n"));
        }
        lines.extend(found.into_iter().map(|line| format!("{line}\n")));
    }
    for setting in settings {
        let values: Vec<&str> = setting
            .values
            .iter()
            .map(|value| value.as_deref().unwrap_or("not set"))
            .collect();
        lines.push(format!("setting {}: {}\n", setting.key, values.join(" | ")));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}", lines.concat())
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
        let three = "[simulate]\nseed = 1\n[[pool]]\nname = \"gpu\"\nidle_after = \"0s\"\n";
        let found = settings(&[one, three]).expect("TOML");
        assert_eq!(
            found,
            [Setting {
                key: "pool.cpu".to_owned(),
                values: vec![Some("is there".to_owned()), None],
            }]
        );
        assert!(settings(&["= 1"]).is_err());
    }
}
