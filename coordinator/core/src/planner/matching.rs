//! May a unit go to a place? Labels, taints, GPU model, pool. Used by every part of the planner and by the check.
//! Looks at no amounts and at no counts.

use crate::model::{
    Constraints, NodeInput, Offering, PoolId, PoolInput, PoolKind, Requirement, SiteId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What constraints look at, of a node or of a node to come. Equal places match alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    /// Pool; none for foreign nodes.
    pub pool: Option<&'a PoolId>,
    /// Site, if known.
    pub site: Option<&'a SiteId>,
    /// Zone; empty when unknown.
    pub zone: &'a str,
    /// GPU model, normalised.
    pub model: String,
    /// Labels, only those that some class asks about.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Taints.
    pub taints: &'a BTreeMap<String, String>,
}

/// What differs, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Differs<'c> {
    Pool(&'c BTreeSet<PoolId>),
    Model(&'c str),
    Label(&'c Requirement, Option<String>),
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
                let any: Vec<&str> = wanted.any_of.iter().map(String::as_str).collect();
                write!(f, "wants {}={}", wanted.key, any.join("|"))?;
                match have {
                    Some(value) => write!(f, ", has {value}"),
                    None => f.write_str(", has no such label"),
                }
            }
            Self::Taint(key, value) => write!(f, "taint {key}={value} is not tolerated"),
        }
    }
}

/// A GPU model's name without case, dashes, underscores and blanks.
pub(super) fn normal_model(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

impl<'a> Place<'a> {
    /// The place of a node that exists. `keys` are the labels that classes ask about.
    pub fn of_node(
        node: &'a NodeInput,
        pool: Option<&'a PoolInput>,
        keys: &BTreeSet<&'a str>,
    ) -> Self {
        let site = node.site.as_ref().or(pool.map(|p| &p.site));
        let itype = node.offering.as_ref().and_then(|id| {
            pool.and_then(|p| p.offerings.iter().find(|o| o.id == *id))
                .map(|o| o.instance_type.as_str())
        });
        let zone = zone_or_site(&node.zone, pool);
        Self {
            pool: pool.map(|p| &p.id),
            site,
            zone,
            model: normal_model(&node.gpu_model),
            labels: pick(
                keys,
                &node.labels,
                &node.zone,
                site,
                itype,
                Some(&node.name),
            ),
            taints: &node.taints,
        }
    }

    /// The place of a node that an offering would give.
    pub fn of_offering(
        pool: &'a PoolInput,
        zone: &'a str,
        instance_type: &'a str,
        gpu_model: &str,
        keys: &BTreeSet<&'a str>,
    ) -> Self {
        Self {
            pool: Some(&pool.id),
            site: Some(&pool.site),
            zone: zone_or_site(zone, Some(pool)),
            model: normal_model(gpu_model),
            labels: pick(
                keys,
                &pool.labels,
                zone,
                Some(&pool.site),
                Some(instance_type),
                None,
            ),
            taints: &pool.taints,
        }
    }

    /// The same for one offering as it stands.
    pub fn of(pool: &'a PoolInput, offering: &'a Offering, keys: &BTreeSet<&'a str>) -> Self {
        Self::of_offering(
            pool,
            &offering.zone,
            &offering.instance_type,
            &offering.gpu_model,
            keys,
        )
    }

    /// The first thing that keeps a unit with these constraints away; `None` when it may go there.
    pub fn differs<'c>(&self, wants: &'c Constraints) -> Option<Differs<'c>> {
        if !wants.pools.is_empty() && !self.pool.is_some_and(|p| wants.pools.contains(p)) {
            return Some(Differs::Pool(&wants.pools));
        }
        if !wants.gpu_model.is_empty() && !self.model.contains(&normal_model(&wants.gpu_model)) {
            return Some(Differs::Model(&wants.gpu_model));
        }
        for requirement in &wants.requirements {
            let have = self
                .labels
                .iter()
                .find(|(k, _)| *k == requirement.key)
                .map(|(_, v)| *v);
            if !requirement.holds(have) {
                return Some(Differs::Label(requirement, have.map(str::to_owned)));
            }
        }
        for (key, value) in self.taints {
            let tolerated = wants
                .tolerations
                .get(key)
                .is_some_and(|values| values.is_empty() || values.contains(value));
            if !tolerated {
                return Some(Differs::Taint(key.clone(), value.clone()));
            }
        }
        None
    }

    /// True when a unit may go there.
    pub fn allows(&self, wants: &Constraints) -> bool {
        self.differs(wants).is_none()
    }
}

/// A server room without zones is one zone.
fn zone_or_site<'a>(zone: &'a str, pool: Option<&'a PoolInput>) -> &'a str {
    match pool {
        Some(p) if zone.is_empty() && p.kind == PoolKind::Static => p.site.as_str(),
        _ => zone,
    }
}

/// The asked labels, with the well-known ones of Kubernetes filled in where a node does not carry them.
fn pick<'a>(
    keys: &BTreeSet<&'a str>,
    labels: &'a BTreeMap<String, String>,
    zone: &'a str,
    site: Option<&'a SiteId>,
    instance_type: Option<&'a str>,
    host: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    keys.iter()
        .filter_map(|key| {
            let value = labels.get(*key).map(String::as_str).or(match *key {
                "topology.kubernetes.io/zone" => (!zone.is_empty()).then_some(zone),
                "topology.kubernetes.io/region" => site.map(SiteId::as_str),
                "node.kubernetes.io/instance-type" => instance_type.filter(|t| !t.is_empty()),
                "kubernetes.io/hostname" => host,
                _ => None,
            })?;
            Some((*key, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_compare_without_case_and_separators() {
        for (name, wanted, same) in [
            ("NVIDIA TITAN X (Pascal)", "titan-x", true),
            ("NVIDIA TITAN X (Pascal)", "Titan_X", true),
            ("Tesla K80", "titan-x", false),
            ("", "k80", false),
        ] {
            assert_eq!(
                normal_model(name).contains(&normal_model(wanted)),
                same,
                "{name} {wanted}"
            );
        }
    }
}
