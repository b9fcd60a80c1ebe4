//! The flags of `requests create` that say where units may go: labels, wishes, tolerations, spread. Pure; used by
//! `amount`.

use super::selector;
use clap::Args;
use drover_proto::v1;

/// Where units may go.
#[derive(Debug, Clone, Default, Args)]
pub struct Place {
    /// Rule about the labels of a node, like disk=ssd, disk=nvme|ssd, disk!=hdd, "zone in (a,b)", gen>4, fast or '!slow';
    /// all must hold (commas, or repeated).
    #[arg(short, long = "label", value_name = "SELECTOR", value_parser = rules)]
    pub labels: Vec<Rules>,
    /// Wish about the labels of a node, like disk=ssd or 50:disk=ssd with a weight from 1 to 100 (may be repeated): among
    /// places of equal cost those that fulfil more come first.
    #[arg(long = "preferred-label", value_name = "[WEIGHT:]SELECTOR", value_parser = wish)]
    pub preferred: Vec<Wish>,
    /// Taint that is accepted, like dedicated=ml, or dedicated with any value (may be repeated).
    #[arg(long = "toleration", value_name = "KEY[=VALUE]", value_parser = toleration)]
    pub tolerations: Vec<v1::Toleration>,
    /// Spread the units evenly over node, zone, site or the values of a label; zone:2 lets domains differ by 2, zone:soft is
    /// only a wish (may be repeated).
    #[arg(long = "spread", value_name = "TOPOLOGY[:SKEW][:soft]", value_parser = spread)]
    pub spread: Vec<v1::SpreadRule>,
}

/// Rules of one selector.
#[derive(Debug, Clone)]
pub struct Rules(Vec<v1::LabelRule>);

/// One wish.
#[derive(Debug, Clone)]
pub struct Wish(v1::PreferredLabels);

fn rules(text: &str) -> Result<Rules, String> {
    selector::parse(text).map(Rules)
}

fn wish(text: &str) -> Result<Wish, String> {
    let (weight, selector) = match text.split_once(':') {
        Some((weight, rest)) if weight.bytes().all(|byte| byte.is_ascii_digit()) => {
            let weight = weight
                .parse()
                .ok()
                .filter(|weight| (1..=100).contains(weight))
                .ok_or_else(|| format!("{weight:?} is no weight; write a number from 1 to 100"))?;
            (weight, rest)
        }
        _ => (1, text),
    };
    Ok(Wish(v1::PreferredLabels {
        weight,
        rules: selector::parse(selector)?,
    }))
}

fn toleration(text: &str) -> Result<v1::Toleration, String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(format!("{text:?} names no taint; write key=value or key"));
    }
    Ok(v1::Toleration {
        key: key.to_owned(),
        value,
    })
}

/// What people call a topology, and its label.
const TOPOLOGIES: [(&str, &str); 3] = [
    ("node", "kubernetes.io/hostname"),
    ("zone", "topology.kubernetes.io/zone"),
    ("site", "topology.kubernetes.io/region"),
];

fn spread(text: &str) -> Result<v1::SpreadRule, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!(
            "{text:?} names no topology; write node, zone, site or a label"
        ));
    }
    let label = TOPOLOGIES.iter().find(|(word, _)| *word == name);
    let mut rule = v1::SpreadRule {
        topology: label.map_or(name, |(_, label)| label).to_owned(),
        max_skew: 1,
        soft: false,
    };
    for part in parts {
        match part.parse() {
            Ok(skew) if skew > 0 => rule.max_skew = skew,
            _ if part == "soft" => rule.soft = true,
            _ => {
                return Err(format!(
                    "{part:?} is no skew; write a number from 1 on, or soft"
                ));
            }
        }
    }
    Ok(rule)
}

impl Place {
    /// Into the request.
    pub(super) fn put(&self, spec: &mut v1::RequestSpec) {
        for rule in self.labels.iter().flat_map(|rules| &rules.0) {
            // One value is a plain label, as ever.
            if let ("in", [value]) = (rule.op.as_str(), rule.values.as_slice())
                && !spec.labels.contains_key(&rule.key)
            {
                spec.labels.insert(rule.key.clone(), value.clone());
            } else {
                spec.label_rules.push(rule.clone());
            }
        }
        spec.preferred = self.preferred.iter().map(|wish| wish.0.clone()).collect();
        spec.tolerations = self.tolerations.clone();
        spec.spread = self.spread.clone();
    }
}

/// A wish as it is written.
#[must_use]
pub fn wish_shown(wish: &v1::PreferredLabels) -> String {
    let rules: Vec<String> = wish.rules.iter().map(selector::shown).collect();
    format!("{}:{}", wish.weight, rules.join(","))
}

/// A toleration as it is written.
#[must_use]
pub fn toleration_shown(one: &v1::Toleration) -> String {
    match &one.value {
        Some(value) => format!("{}={value}", one.key),
        None => one.key.clone(),
    }
}

/// A spread as it is written.
#[must_use]
pub fn spread_shown(rule: &v1::SpreadRule) -> String {
    let word = TOPOLOGIES.iter().find(|(_, label)| *label == rule.topology);
    let name = word.map_or(rule.topology.as_str(), |(word, _)| word);
    let skew = match rule.max_skew {
        0 | 1 => String::new(),
        skew => format!(":{skew}"),
    };
    let soft = if rule.soft { ":soft" } else { "" };
    format!("{name}{skew}{soft}")
}
