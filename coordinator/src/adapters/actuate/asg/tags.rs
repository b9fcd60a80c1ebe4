//! What a group's tags say of the nodes that it launches: labels, taints, resources.
//!
//! Called by `reading`. Pure. Our own tags are `drover:label/KEY` and `drover:taint/KEY` (value `VALUE:EFFECT`); those of
//! the Cluster Autoscaler are read too, so that a group that it drove needs no others. Ours win over them, the config
//! over both.

use std::collections::BTreeMap;

use crate::config::{Effect, with_effect};
use drover_core::model::{Bytes, MilliCpu, Resources};

const LABELS: [&str; 2] = [
    "k8s.io/cluster-autoscaler/node-template/label/",
    "drover:label/",
];
const TAINTS: [&str; 2] = [
    "k8s.io/cluster-autoscaler/node-template/taint/",
    "drover:taint/",
];
const RESOURCES: &str = "k8s.io/cluster-autoscaler/node-template/resources/";
/// As Kubernetes calls the GPUs that Drover counts by itself.
const GPUS: &str = "nvidia.com/gpu";

/// What the tags say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) labels: BTreeMap<String, String>,
    /// Key to value.
    pub(super) taints: BTreeMap<String, String>,
    /// What nodes offer beside or instead of what their type does, in the resource's own unit.
    resources: BTreeMap<String, u64>,
    /// CPU in thousandths, where a tag says it.
    cpu: Option<MilliCpu>,
    /// Tags that say nothing that is understood.
    pub(super) doubts: Vec<String>,
}

/// Reads the tags of a group.
pub(super) fn marks(tags: &BTreeMap<String, String>) -> Marks {
    let mut marks = Marks::default();
    for prefix in LABELS {
        for (key, value) in below(tags, prefix) {
            marks.labels.insert(key.to_owned(), value.to_owned());
        }
    }
    for prefix in TAINTS {
        for (key, value) in below(tags, prefix) {
            match with_effect(value) {
                Some((value, Effect::KeepsAway)) => {
                    marks.taints.insert(key.to_owned(), value.to_owned());
                }
                Some((_, Effect::Wish)) => {}
                None => marks.doubts.push(format!(
                    "the tag {prefix}{key}={value} is no taint: write VALUE:NoSchedule or VALUE:NoExecute"
                )),
            }
        }
    }
    for (name, value) in below(tags, RESOURCES) {
        let found = match name {
            // What runs and what is planned must agree on GPUs: the type's count and the agent's do.
            GPUS => continue,
            "cpu" => milli(value).map(|cpu| marks.cpu = Some(MilliCpu(cpu))),
            _ => milli(value).map(|amount| {
                marks.resources.insert(name.to_owned(), amount / 1_000);
            }),
        };
        if found.is_none() {
            marks.doubts.push(format!(
                "the tag {RESOURCES}{name}={value} is no amount: write it as Kubernetes does, like 4, 500m or 100Gi"
            ));
        }
    }
    marks
}

impl Marks {
    /// What a node offers, with what the tags say instead.
    pub(super) fn over(&self, mut offered: Resources) -> Resources {
        if let Some(cpu) = self.cpu {
            offered.cpu = cpu;
        }
        for (name, amount) in &self.resources {
            if name == "memory" {
                offered.memory = Bytes(*amount);
            } else {
                offered.extended.insert(name.clone(), *amount);
            }
        }
        offered
    }
}

/// Tags below a prefix: what follows it, and the value. A key that is nothing but the prefix says nothing.
fn below<'t>(
    tags: &'t BTreeMap<String, String>,
    prefix: &'t str,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    let all = tags.range(prefix.to_owned()..);
    all.map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.trim())))
        .filter(|(key, _)| !key.is_empty())
}

/// A quantity of Kubernetes in thousandths, rounded down; no exponents.
fn milli(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, suffix) = text.split_at(at.unwrap_or(text.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let unit: u128 = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        _ => return None,
    };
    let whole: u128 = whole.parse().ok()?;
    let nano: u128 = format!("{part:0<9}").parse().ok()?;
    let all = whole
        .checked_mul(1_000_000_000)?
        .checked_add(nano)?
        .checked_mul(unit)?;
    u64::try_from(all / 1_000_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn sc_91_labels_and_taints_come_from_tags_of_both_kinds_and_ours_win() {
        let found = marks(&tags(&[
            ("k8s.io/cluster-autoscaler/node-template/label/team", "nlp"),
            ("k8s.io/cluster-autoscaler/node-template/label/disk", "fast"),
            (
                "k8s.io/cluster-autoscaler/node-template/taint/team",
                "nlp:NoSchedule",
            ),
            (
                "k8s.io/cluster-autoscaler/node-template/taint/soft",
                "x:PreferNoSchedule",
            ),
            (
                "k8s.io/cluster-autoscaler/node-template/taint/odd",
                "NoSchedule",
            ),
            ("k8s.io/cluster-autoscaler/enabled", "true"),
            ("drover:label/team", "vision"),
            ("drover:taint/team", "vision:NoExecute"),
            ("drover:taint/gpu", ":NoSchedule"),
            ("drover:label/", "nothing"),
            ("Name", "p4"),
        ]));
        assert_eq!(found.labels, tags(&[("team", "vision"), ("disk", "fast")]));
        assert_eq!(found.taints, tags(&[("team", "vision"), ("gpu", "")]));
        assert_eq!(found.doubts.len(), 1, "{:?}", found.doubts);
        assert!(found.doubts[0].contains("taint/odd=NoSchedule is no taint"));
    }

    #[test]
    fn resources_of_tags_stand_beside_or_instead_of_the_types_but_for_gpus() {
        let of = |name: &str, value: &str| (format!("{RESOURCES}{name}"), value.to_owned());
        let found = marks(&BTreeMap::from([
            of("cpu", "3500m"),
            of("memory", "14Gi"),
            of("ephemeral-storage", "100G"),
            of("nvidia.com/gpu", "8"),
            of("vpc.amazonaws.com/efa", "4"),
            of("bad", "many"),
        ]));
        let offered = found.over(Resources {
            cpu: MilliCpu(4_000),
            memory: Bytes(16 << 30),
            gpus: 1,
            ..Resources::default()
        });
        assert_eq!(
            (offered.cpu, offered.memory),
            (MilliCpu(3_500), Bytes(14 << 30))
        );
        assert_eq!(offered.gpus, 1, "GPUs are the type's");
        assert_eq!(offered.extended["ephemeral-storage"], 100_000_000_000);
        assert_eq!(offered.extended["vpc.amazonaws.com/efa"], 4);
        assert_eq!(found.doubts.len(), 1);
    }

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for (text, expect) in [
            ("4", Some(4_000)),
            ("500m", Some(500)),
            ("1.5", Some(1_500)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("0.0001", Some(0)),
            ("", None),
            (".5", None),
            ("1e3", None),
            ("4 Gi", None),
            ("1.2.3", None),
            ("99999999999999999999Ti", None),
        ] {
            assert_eq!(milli(text), expect, "{text:?}");
        }
    }
}
