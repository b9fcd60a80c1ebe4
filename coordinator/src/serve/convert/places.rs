//! Where units of a request may go, both ways: rules about labels, wishes, tolerations, spread. Used by
//! `serve/convert/requests`. What comes from outside is bounded here, and the field that is wrong is named.

use super::requests::{BadField, NAMED, short};
use crate::records::{RequestSpec, SpreadWish};
use drover_core::model::{Operator, Preferred, Requirement};
use drover_proto::{limits, v1};
use std::collections::{BTreeMap, BTreeSet};

const OPERATORS: [(&str, Operator); 6] = [
    ("in", Operator::In),
    ("not_in", Operator::NotIn),
    ("exists", Operator::Exists),
    ("absent", Operator::Absent),
    ("above", Operator::Above),
    ("below", Operator::Below),
];

/// Largest weight of a wish.
const WEIGHT: u32 = 100;

fn few(field: &'static str, count: usize) -> Result<(), BadField> {
    if count > NAMED {
        return Err(BadField(field, format!("are more than {NAMED}")));
    }
    Ok(())
}

fn key(field: &'static str, key: &str) -> Result<String, BadField> {
    short(field, key, limits::NAME_BYTES)?;
    if key.is_empty() {
        return Err(BadField(field, "one has no key".to_owned()));
    }
    Ok(key.to_owned())
}

fn rule_from(field: &'static str, rule: v1::LabelRule) -> Result<Requirement, BadField> {
    let name = key(field, &rule.key)?;
    let bad = |why: String| BadField(field, format!("{name}: {why}"));
    let (_, op) = OPERATORS
        .into_iter()
        .find(|(word, _)| *word == rule.op)
        .ok_or_else(|| {
            let known = OPERATORS.map(|(word, _)| word).join(", ");
            bad(format!("{:?} is no operator; say one of {known}", rule.op))
        })?;
    few(field, rule.values.len())?;
    for value in &rule.values {
        short(field, value, limits::NAME_BYTES)?;
    }
    let fits = match op {
        Operator::In | Operator::NotIn => !rule.values.is_empty(),
        Operator::Exists | Operator::Absent => rule.values.is_empty(),
        Operator::Above | Operator::Below => {
            rule.values.len() == 1 && rule.values.iter().all(|value| value.parse::<i64>().is_ok())
        }
    };
    if !fits {
        return Err(bad(match op {
            Operator::In | Operator::NotIn => "needs at least one value".to_owned(),
            Operator::Exists | Operator::Absent => "takes no value".to_owned(),
            Operator::Above | Operator::Below => "needs one whole number".to_owned(),
        }));
    }
    Ok(Requirement {
        key: name,
        op,
        any_of: rule.values.into_iter().collect(),
    })
}

fn rule(rule: &Requirement) -> v1::LabelRule {
    let word = OPERATORS.iter().find(|(_, op)| *op == rule.op);
    v1::LabelRule {
        key: rule.key.clone(),
        op: word.map(|(word, _)| (*word).to_owned()).unwrap_or_default(),
        values: rule.any_of.iter().cloned().collect(),
    }
}

fn rules_from(
    field: &'static str,
    rules: Vec<v1::LabelRule>,
) -> Result<Vec<Requirement>, BadField> {
    few(field, rules.len())?;
    rules.into_iter().map(|one| rule_from(field, one)).collect()
}

fn preferred_from(wishes: Vec<v1::PreferredLabels>) -> Result<Vec<Preferred>, BadField> {
    let field = "preferred";
    few(field, wishes.len())?;
    wishes
        .into_iter()
        .map(|wish| {
            if !(1..=WEIGHT).contains(&wish.weight) {
                let why = format!("a weight must be from 1 to {WEIGHT}");
                return Err(BadField(field, why));
            }
            let requirements = rules_from(field, wish.rules)?;
            if requirements.is_empty() {
                return Err(BadField(field, "one names no label".to_owned()));
            }
            Ok(Preferred {
                weight: wish.weight,
                requirements,
            })
        })
        .collect()
}

fn tolerations_from(
    all: Vec<v1::Toleration>,
) -> Result<BTreeMap<String, BTreeSet<String>>, BadField> {
    let field = "tolerations";
    few(field, all.len())?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut any = BTreeSet::new();
    for one in all {
        let name = key(field, &one.key)?;
        let values = found.entry(name.clone()).or_default();
        match one.value {
            Some(value) => {
                short(field, &value, limits::NAME_BYTES)?;
                values.insert(value);
            }
            None => drop(any.insert(name)),
        }
    }
    // Who accepts every value accepts these too.
    for name in any {
        found.insert(name, BTreeSet::new());
    }
    Ok(found)
}

fn spread_from(rules: Vec<v1::SpreadRule>) -> Result<Vec<SpreadWish>, BadField> {
    let field = "spread";
    few(field, rules.len())?;
    rules
        .into_iter()
        .map(|rule| {
            Ok(SpreadWish {
                topology: key(field, &rule.topology)?,
                max_skew: rule.max_skew.max(1),
                hard: !rule.soft,
            })
        })
        .collect()
}

/// Takes these fields out of a wish.
///
/// # Errors
/// The first field that is wrong.
pub(super) fn take(wish: &mut v1::RequestSpec, spec: &mut RequestSpec) -> Result<(), BadField> {
    spec.rules = rules_from("label_rules", std::mem::take(&mut wish.label_rules))?;
    spec.preferred = preferred_from(std::mem::take(&mut wish.preferred))?;
    spec.tolerations = tolerations_from(std::mem::take(&mut wish.tolerations))?;
    spec.spread = spread_from(std::mem::take(&mut wish.spread))?;
    Ok(())
}

/// Puts them into an answer.
pub(super) fn put(spec: &RequestSpec, told: &mut v1::RequestSpec) {
    told.label_rules = spec.rules.iter().map(rule).collect();
    let wishes = spec.preferred.iter().map(|wish| v1::PreferredLabels {
        weight: wish.weight,
        rules: wish.requirements.iter().map(rule).collect(),
    });
    told.preferred = wishes.collect();
    for (name, values) in &spec.tolerations {
        let one = |value: Option<&String>| v1::Toleration {
            key: name.clone(),
            value: value.cloned(),
        };
        if values.is_empty() {
            told.tolerations.push(one(None));
        }
        told.tolerations
            .extend(values.iter().map(|value| one(Some(value))));
    }
    let spread = spec.spread.iter().map(|wish| v1::SpreadRule {
        topology: wish.topology.clone(),
        max_skew: wish.max_skew,
        soft: !wish.hard,
    });
    told.spread = spread.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &str, op: &str, values: &[&str]) -> v1::LabelRule {
        v1::LabelRule {
            key: key.to_owned(),
            op: op.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    #[test]
    fn places_come_back_as_they_were_asked() {
        let wish = v1::RequestSpec {
            label_rules: vec![
                label("disk", "in", &["nvme", "ssd"]),
                label("slow", "absent", &[]),
                label("gen", "above", &["4"]),
            ],
            preferred: vec![v1::PreferredLabels {
                weight: 50,
                rules: vec![label("rack", "not_in", &["r1"])],
            }],
            tolerations: vec![
                v1::Toleration {
                    key: "dedicated".to_owned(),
                    value: Some("ml".to_owned()),
                },
                v1::Toleration {
                    key: "gpu".to_owned(),
                    value: None,
                },
            ],
            spread: vec![v1::SpreadRule {
                topology: "topology.kubernetes.io/zone".to_owned(),
                max_skew: 2,
                soft: true,
            }],
            ..v1::RequestSpec::default()
        };
        let mut spec = RequestSpec::default();
        take(&mut wish.clone(), &mut spec).expect("right");
        let mut told = v1::RequestSpec::default();
        put(&spec, &mut told);
        assert_eq!(told, wish);
    }

    #[test]
    fn wrong_places_are_named() {
        let rules = |rule: v1::LabelRule| v1::RequestSpec {
            label_rules: vec![rule],
            ..v1::RequestSpec::default()
        };
        let prefers = |weight: u32, rules: Vec<v1::LabelRule>| v1::RequestSpec {
            preferred: vec![v1::PreferredLabels { weight, rules }],
            ..v1::RequestSpec::default()
        };
        for (field, needle, mut wish) in [
            ("label_rules", "no key", rules(label("", "exists", &[]))),
            (
                "label_rules",
                "gen: \"like\" is no operator",
                rules(label("gen", "like", &["4"])),
            ),
            (
                "label_rules",
                "at least one value",
                rules(label("gen", "in", &[])),
            ),
            (
                "label_rules",
                "takes no value",
                rules(label("gen", "absent", &["4"])),
            ),
            (
                "label_rules",
                "one whole number",
                rules(label("gen", "above", &["four"])),
            ),
            (
                "label_rules",
                "one whole number",
                rules(label("gen", "below", &["4", "5"])),
            ),
            (
                "preferred",
                "from 1 to 100",
                prefers(0, vec![label("a", "exists", &[])]),
            ),
            ("preferred", "names no label", prefers(1, Vec::new())),
            (
                "tolerations",
                "no key",
                v1::RequestSpec {
                    tolerations: vec![v1::Toleration::default()],
                    ..v1::RequestSpec::default()
                },
            ),
            (
                "spread",
                "no key",
                v1::RequestSpec {
                    spread: vec![v1::SpreadRule::default()],
                    ..v1::RequestSpec::default()
                },
            ),
        ] {
            let error = take(&mut wish, &mut RequestSpec::default()).expect_err(needle);
            assert_eq!(error.0, field, "{needle}");
            assert!(error.1.contains(needle), "{}", error.1);
        }
    }
}
