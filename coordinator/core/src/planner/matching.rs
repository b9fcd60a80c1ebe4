//! May a unit go to a place? Labels, taints, GPU model, pool. Used by every part of the planner and by the check.
//! Looks at no amounts and at no counts. In words: `words`.

mod words;

pub(super) use words::{Differs, words, words_of_any};

use crate::model::{
    Constraints, HostPort, NodeInput, Offering, PlanInput, PoolId, PoolInput, PoolKind, Preferred,
    Requirement, Selector, SiteId, Steering,
};
use std::collections::{BTreeMap, BTreeSet};

/// What constraints look at, of a node or of a node to come. Equal places match alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    /// Pool; none for foreign nodes.
    pub pool: Option<&'a PoolId>,
    /// Site, if known.
    pub site: Option<&'a SiteId>,
    /// Zone; empty when unknown.
    pub zone: &'a str,
    /// The node will be in one of several zones.
    pub zone_open: bool,
    /// GPU model, normalised; empty when nobody asks.
    pub model: String,
    /// Labels, only those that some class asks about.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Taints.
    pub taints: &'a BTreeMap<String, String>,
}

/// Kubernetes' label for the zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// Kubernetes' label for the node itself: each node is a domain of its own, whatever the label says.
pub(super) const HOST: &str = "kubernetes.io/hostname";

/// Kubernetes' label for the instance type.
const TYPE: &str = "node.kubernetes.io/instance-type";

/// What somebody asks of places: the rest is left out of them.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    /// Labels: those of rules, and topologies.
    labels: BTreeSet<&'a str>,
    /// GPU models.
    model: bool,
}

/// What some class, or some work that runs, asks about.
pub(super) fn keys(input: &PlanInput) -> Keys<'_> {
    let kept = input.policy.headroom.iter().map(|h| &h.constraints);
    let asked = input.learnt.asked.kinds.iter().map(|k| &k.constraints);
    let waiting = input.classes.iter().map(|c| &c.constraints);
    let mut keys = Keys::default();
    for wants in waiting.chain(kept).chain(asked) {
        keys.add(wants);
    }
    let running = input.nodes.iter().flat_map(|n| &n.workloads);
    let away = running.flat_map(|w| &w.anti_affinity);
    let axes = away.map(|n| n.topology.as_str());
    keys.labels.extend(axes.filter(|key| *key != HOST));
    keys
}

/// May a unit with these constraints go to a node of this pool? Looks at the node alone: at no rule between units.
#[must_use]
pub fn suits(node: &NodeInput, pool: Option<&PoolInput>, wants: &Constraints) -> bool {
    let mut keys = Keys::default();
    keys.add(wants);
    Place::of_node(node, pool, &keys).allows(wants)
}

impl<'a> Keys<'a> {
    fn add(&mut self, wants: &'a Constraints) {
        self.model |= !wants.gpu_model.is_empty();
        let rules = wants.requirements.iter();
        let rules = rules.chain(wants.any_of.iter().flatten());
        let wishes = wants.preferred.iter().flat_map(|p| &p.requirements);
        let named = rules.chain(wishes).map(|r| r.key.as_str());
        self.labels.extend(named);
        let near = wants.affinity.iter().chain(&wants.anti_affinity);
        let near = near.chain(wants.preferred_near.iter().map(|p| &p.near));
        let axes = near.map(|n| n.topology.as_str());
        let axes = axes.chain(wants.spread.iter().map(|s| s.topology.as_str()));
        self.labels.extend(axes.filter(|key| *key != HOST));
    }

    fn model(&self, name: &str) -> String {
        if self.model {
            normal_model(name)
        } else {
            String::new()
        }
    }
}

/// What of constraints looks at the node alone. Equal ones match alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeRules<'a> {
    model: &'a str,
    pools: &'a BTreeSet<PoolId>,
    requirements: &'a [Requirement],
    any_of: &'a [Vec<Requirement>],
    tolerations: &'a BTreeMap<String, BTreeSet<String>>,
}

impl<'a> NodeRules<'a> {
    /// Of one class.
    pub fn of(wants: &'a Constraints) -> Self {
        Self {
            model: &wants.gpu_model,
            pools: &wants.pools,
            requirements: &wants.requirements,
            any_of: &wants.any_of,
            tolerations: &wants.tolerations,
        }
    }
}

/// Does a selector, asked from a namespace, name units with these labels in that namespace?
pub(super) fn selects(
    select: &Selector,
    asked_from: &str,
    labels: &BTreeMap<String, String>,
    namespace: &str,
) -> bool {
    let here = if select.everywhere {
        true
    } else if select.namespaces.is_empty() {
        asked_from == namespace
    } else {
        select.namespaces.contains(namespace)
    };
    let value = |r: &Requirement| labels.get(&r.key).map(String::as_str);
    here && select.requirements.iter().all(|r| r.holds(value(r)))
}

/// Do two ports of a host conflict? Without an address, or with the one that means all, a unit takes all.
pub(super) fn ports_conflict(one: &HostPort, other: &HostPort) -> bool {
    let all = |port: &HostPort| matches!(port.address.as_str(), "" | "0.0.0.0" | "::");
    one.port == other.port
        && one.protocol.eq_ignore_ascii_case(&other.protocol)
        && (one.address == other.address || all(one) || all(other))
}

/// Does a GPU's name, as a driver or an offering says it, mean the model that is asked for? "NVIDIA A10G" is "a10g".
#[must_use]
pub fn is_model(name: &str, wanted: &str) -> bool {
    normal_model(name).contains(&normal_model(wanted))
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
    pub fn of_node(node: &'a NodeInput, pool: Option<&'a PoolInput>, keys: &Keys<'a>) -> Self {
        let site = node.site.as_ref().or(pool.map(|p| &p.site));
        let typed = keys.labels.contains(TYPE);
        let itype = node.offering.as_ref().filter(|_| typed).and_then(|id| {
            pool.and_then(|p| p.offerings.iter().find(|o| o.id == *id))
                .map(|o| o.instance_type.as_str())
        });
        let zone = zone_or_site(&node.zone, pool);
        Self {
            pool: pool.map(|p| &p.id),
            site,
            zone,
            zone_open: false,
            model: keys.model(&node.gpu_model),
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

    /// The place of a node that an offering would give. A group that only takes a count may give any of its types, in any
    /// of its zones: where they differ, it is not known which.
    pub fn of(pool: &'a PoolInput, offering: &'a Offering, keys: &Keys<'a>) -> Self {
        let mixed = pool.steering == Steering::Group;
        let differ = |get: fn(&Offering) -> &str| {
            mixed && pool.offerings.iter().any(|o| get(o) != get(offering))
        };
        let zone_open = differ(|o| &o.zone);
        let zone = if zone_open { "" } else { &offering.zone };
        let model = if differ(|o| &o.gpu_model) {
            ""
        } else {
            &offering.gpu_model
        };
        Self {
            pool: Some(&pool.id),
            site: Some(&pool.site),
            zone: zone_or_site(zone, Some(pool)),
            zone_open,
            model: keys.model(model),
            labels: pick(
                keys,
                &pool.labels,
                zone,
                Some(&pool.site),
                Some(&offering.instance_type),
                None,
            ),
            taints: &pool.taints,
        }
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
            let have = self.label(&requirement.key);
            if !requirement.holds(have) {
                return Some(Differs::Label(requirement, have.map(str::to_owned)));
            }
        }
        // An alternative without rules matches nothing, as in Kubernetes.
        let term = |term: &Vec<Requirement>| !term.is_empty() && self.all_hold(term);
        if !wants.any_of.is_empty() && !wants.any_of.iter().any(term) {
            return Some(Differs::AnyOf(&wants.any_of));
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

    /// Value of a label that somebody asks about.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        let at = self.labels.binary_search_by(|(k, _)| (*k).cmp(key));
        at.ok().map(|at| self.labels[at].1)
    }

    /// All rules hold.
    pub fn all_hold(&self, rules: &[Requirement]) -> bool {
        rules.iter().all(|r| r.holds(self.label(&r.key)))
    }

    /// True when only a taint keeps a unit away, or nothing.
    pub fn allows_but_for_taints(&self, wants: &Constraints) -> bool {
        matches!(self.differs(wants), None | Some(Differs::Taint(..)))
    }

    /// Weight of the wishes about labels that the place fulfils.
    pub fn weight(&self, wishes: &[Preferred]) -> u32 {
        let fulfilled = wishes.iter().filter(|w| self.all_hold(&w.requirements));
        fulfilled.fold(0, |sum, w| sum.saturating_add(w.weight))
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
    keys: &Keys<'a>,
    labels: &'a BTreeMap<String, String>,
    zone: &'a str,
    site: Option<&'a SiteId>,
    instance_type: Option<&'a str>,
    host: Option<&'a str>,
) -> Vec<(&'a str, &'a str)> {
    keys.labels
        .iter()
        .filter_map(|key| {
            let value = labels.get(*key).map(String::as_str).or(match *key {
                ZONE => (!zone.is_empty()).then_some(zone),
                "topology.kubernetes.io/region" => site.map(SiteId::as_str),
                TYPE => instance_type.filter(|t| !t.is_empty()),
                HOST => host,
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
    fn a_node_suits_by_its_pool_model_labels_and_taints() {
        let node: NodeInput = serde_json::from_value(serde_json::json!({
            "id": "n", "name": "host", "pool": "a", "lifecycle": "ready",
            "allocatable": {"cpu": 1, "memory": 1, "gpus": 1},
            "used": {"cpu": 0, "memory": 0, "gpus": 0},
            "gpu_model": "Tesla K80",
            "labels": {"disk": "ssd"}, "taints": {"gpu": "only"},
            "busy": {"state": "idle", "since": 0}, "price": 1,
        }))
        .expect("a node");
        let tolerant = Constraints {
            tolerations: [("gpu".to_owned(), BTreeSet::new())].into(),
            ..Constraints::default()
        };
        assert!(suits(&node, None, &tolerant));
        assert!(!suits(&node, None, &Constraints::default()), "its taint");
        for (model, disk, well) in [
            ("k80", "ssd", true),
            ("p100", "ssd", false),
            ("k80", "hdd", false),
        ] {
            let wants = Constraints {
                gpu_model: model.to_owned(),
                requirements: vec![Requirement {
                    key: "disk".to_owned(),
                    op: crate::model::Operator::In,
                    any_of: [disk.to_owned()].into(),
                }],
                ..tolerant.clone()
            };
            assert_eq!(suits(&node, None, &wants), well, "{model} {disk}");
        }
        let elsewhere = Constraints {
            pools: ["b".into()].into(),
            ..tolerant
        };
        assert!(!suits(&node, None, &elsewhere), "of no pool that is known");
    }

    #[test]
    fn models_compare_without_case_and_separators() {
        for (name, wanted, same) in [
            ("NVIDIA TITAN X (Pascal)", "titan-x", true),
            ("NVIDIA TITAN X (Pascal)", "Titan_X", true),
            ("Tesla K80", "titan-x", false),
            ("", "k80", false),
        ] {
            assert_eq!(is_model(name, wanted), same, "{name} {wanted}");
        }
    }
}
