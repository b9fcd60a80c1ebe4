//! Where units may go, as Kubernetes and Slurm ask it: rules about labels of nodes, and about other units nearby.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How a rule compares.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// The value is one of those.
    #[default]
    In,
    /// The label is absent, or its value is none of those.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    Absent,
    /// The value is a whole number above the one value given.
    Above,
    /// The value is a whole number below the one value given.
    Below,
}

impl Operator {
    fn is_in(&self) -> bool {
        *self == Self::In
    }
}

/// One rule about a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Label.
    pub key: String,
    /// How.
    #[serde(default, skip_serializing_if = "Operator::is_in")]
    pub op: Operator,
    /// Values, as the operator wants them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub any_of: BTreeSet<String>,
}

impl Requirement {
    /// Does a label with this value (none: no such label) fulfil it? A value that is no whole number is never above
    /// or below.
    #[must_use]
    pub fn holds(&self, value: Option<&str>) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = || self.any_of.first().and_then(|text| number(text));
        match (self.op, value) {
            (Operator::In, Some(v)) => self.any_of.contains(v),
            (Operator::NotIn, Some(v)) => !self.any_of.contains(v),
            (Operator::Exists, v) => v.is_some(),
            (Operator::NotIn | Operator::Absent, None) => true,
            (Operator::Above, Some(v)) => number(v).zip(bound()).is_some_and(|(v, b)| v > b),
            (Operator::Below, Some(v)) => number(v).zip(bound()).is_some_and(|(v, b)| v < b),
            (Operator::In | Operator::Above | Operator::Below, None)
            | (Operator::Absent, Some(_)) => false,
        }
    }
}

/// A wish about the node's labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preferred {
    /// 1 to 100.
    pub weight: u32,
    /// All must hold.
    pub requirements: Vec<Requirement>,
}

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPort {
    /// Port.
    pub port: u16,
    /// TCP, UDP, SCTP.
    pub protocol: String,
    /// Address it binds to; empty: all, which conflicts with every address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// Other units, by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// All must hold; none: every unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<Requirement>,
    /// In these namespaces; empty: in the asking unit's own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub namespaces: BTreeSet<String>,
    /// In every namespace.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub everywhere: bool,
}

/// Units that a selector names, in the domain that a node label spans (`kubernetes.io/hostname`,
/// `topology.kubernetes.io/zone`). A node without the label is in no domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Near {
    /// Label of the node.
    pub topology: String,
    /// Which units.
    pub select: Selector,
}

/// A wish to be near, or with a negative weight away from, other units.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreferredNear {
    /// 1 to 100, or -100 to -1.
    pub weight: i32,
    /// Whom.
    pub near: Near,
}

/// Even distribution over domains: in no domain more than `max_skew` above the least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Label of the node.
    pub topology: String,
    /// Which units are counted.
    pub select: Selector,
    /// At least 1.
    pub max_skew: u32,
    /// With fewer domains than this the least counts as 0; 0 or 1: no such rule.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub min_domains: u32,
    /// Rather wait than break it (DoNotSchedule); else a wish (ScheduleAnyway).
    pub hard: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_compare_as_kubernetes_does() {
        use Operator::{Above, Absent, Below, Exists, In, NotIn};
        let table = [
            (In, "a b", Some("a"), true),
            (In, "a b", Some("c"), false),
            (In, "a b", None, false),
            (NotIn, "a", Some("b"), true),
            (NotIn, "a", Some("a"), false),
            (NotIn, "a", None, true),
            (Exists, "", Some(""), true),
            (Exists, "", None, false),
            (Absent, "", None, true),
            (Absent, "", Some("x"), false),
            (Above, "7", Some("8"), true),
            (Above, "7", Some("7"), false),
            (Above, "7", Some("many"), false),
            (Below, "7", Some("6"), true),
            (Below, "7", None, false),
        ];
        for (op, values, value, holds) in table {
            let rule = Requirement {
                key: "k".to_owned(),
                op,
                any_of: values.split_whitespace().map(str::to_owned).collect(),
            };
            assert_eq!(rule.holds(value), holds, "{op:?} {values:?} {value:?}");
        }
    }
}
