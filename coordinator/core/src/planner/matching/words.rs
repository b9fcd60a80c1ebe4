//! What keeps a unit away from a place, and rules about labels, in words for people. Called where reasons are made;
//! matches nothing.

use crate::model::{Operator, PoolId, Requirement};
use std::collections::BTreeSet;
use std::fmt;

/// What differs, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::planner) enum Differs<'c> {
    Pool(&'c BTreeSet<PoolId>),
    Model(&'c str),
    Label(&'c Requirement, Option<String>),
    AnyOf(&'c [Vec<Requirement>]),
    Taint(String, String),
}

impl fmt::Display for Differs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pools) => {
                let names: Vec<&str> = pools.iter().map(PoolId::as_str).collect();
                write!(f, "only {} allowed", names.join(", "))
            }
            Self::Model(model) => write!(f, "no GPU like \"{model}\""),
            Self::Label(wanted, have) => {
                write!(f, "wants {}", words(wanted))?;
                match have {
                    Some(value) if value.is_empty() => f.write_str(", has it empty"),
                    Some(value) => write!(f, ", has {value}"),
                    None => f.write_str(", has no such label"),
                }
            }
            Self::AnyOf(terms) => write!(f, "wants {}", words_of_any(terms)),
            Self::Taint(key, value) => write!(f, "taint {key}={value} is not tolerated"),
        }
    }
}

/// A rule about a label in words: `disk=nvme|ssd`, `gen>4`.
pub(in crate::planner) fn words(rule: &Requirement) -> String {
    let any: Vec<&str> = rule.any_of.iter().map(String::as_str).collect();
    let (key, any) = (&rule.key, any.join("|"));
    match rule.op {
        Operator::In => format!("{key}={any}"),
        Operator::NotIn => format!("{key} not {any}"),
        Operator::Exists => format!("a label {key}"),
        Operator::Absent => format!("no label {key}"),
        Operator::Above => format!("{key}>{any}"),
        Operator::Below => format!("{key}<{any}"),
    }
}

/// The same for alternatives.
pub(in crate::planner) fn words_of_any(terms: &[Vec<Requirement>]) -> String {
    let each = terms.iter().map(|term| {
        let all: Vec<String> = term.iter().map(words).collect();
        all.join(" and ")
    });
    each.collect::<Vec<_>>().join(", or ")
}
