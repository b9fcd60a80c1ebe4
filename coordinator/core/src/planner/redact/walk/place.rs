//! The texts of rules about places: labels, taints, selectors, ports. Used by `walk` for pools, nodes and demand.

use super::{Kind, See};
use crate::model::{
    Constraints, HostPort, Near, Preferred, PreferredNear, Requirement, Selector, Spread,
};
use std::collections::{BTreeMap, BTreeSet};

/// Domains whose label keys and resources nobody here chose.
const WELL_KNOWN: [&str; 7] = [
    "kubernetes.io",
    "k8s.io",
    "k8s.aws",
    "karpenter.sh",
    "nvidia.com",
    "amd.com",
    "drover.dev",
];

/// Label keys whose values are made by machines and say nothing about people.
const PLAIN_VALUES: [&str; 6] = [
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
];

fn known_key(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| {
        WELL_KNOWN.iter().any(|known| {
            domain
                .strip_suffix(known)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    })
}

/// Resources that Kubernetes and Slurm know by themselves.
pub(super) fn known_resource(name: &str) -> bool {
    matches!(name, "pods" | "ephemeral-storage" | "shard" | "mps")
        || name.starts_with("hugepages-")
        || known_key(name)
}

fn key_kind(key: &str) -> Kind {
    if known_key(key) {
        Kind::Kept
    } else {
        Kind::Key
    }
}

fn value_kind(key: &str) -> Kind {
    if PLAIN_VALUES.contains(&key) {
        Kind::Kept
    } else {
        Kind::Value
    }
}

/// Changes the keys of a map in place.
pub(super) fn rebuilt<V>(
    map: &mut BTreeMap<String, V>,
    mut change: impl FnMut(&mut String, &mut V),
) {
    *map = std::mem::take(map)
        .into_iter()
        .map(|(mut key, mut value)| {
            change(&mut key, &mut value);
            (key, value)
        })
        .collect();
}

fn each(set: &mut BTreeSet<String>, mut change: impl FnMut(&mut String)) {
    *set = std::mem::take(set)
        .into_iter()
        .map(|mut text| {
            change(&mut text);
            text
        })
        .collect();
}

pub(super) fn labels(map: &mut BTreeMap<String, String>, see: See<'_>) {
    rebuilt(map, |key, value| {
        see(value_kind(key), value);
        see(key_kind(key), key);
    });
}

pub(super) fn taints(map: &mut BTreeMap<String, String>, see: See<'_>) {
    labels(map, see);
}

pub(super) fn constraints(constraints: &mut Constraints, see: See<'_>) {
    let Constraints {
        gpu_model,
        pools,
        requirements,
        tolerations,
        any_of,
        preferred,
        host_ports,
        affinity,
        anti_affinity,
        preferred_near,
        spread,
        max_per_node: _,
        unsupported,
    } = constraints;
    see(Kind::Kept, gpu_model);
    *pools = std::mem::take(pools)
        .into_iter()
        .map(|mut pool| {
            see(Kind::Pool, &mut pool.0);
            pool
        })
        .collect();
    all(requirements, see);
    rebuilt(tolerations, |key, values| {
        each(values, |value| see(value_kind(key), value));
        see(key_kind(key), key);
    });
    any_of.iter_mut().for_each(|rules| all(rules, see));
    for wish in preferred {
        let Preferred {
            weight: _,
            requirements,
        } = wish;
        all(requirements, see);
    }
    ports(host_ports, see);
    affinity.iter_mut().for_each(|n| near(n, see));
    anti_affinity.iter_mut().for_each(|n| near(n, see));
    for wish in preferred_near {
        let PreferredNear { weight: _, near: n } = wish;
        near(n, see);
    }
    for rule in spread {
        let Spread {
            topology,
            select,
            max_skew: _,
            min_domains: _,
            hard: _,
        } = rule;
        see(key_kind(topology), topology);
        selector(select, see);
    }
    unsupported
        .iter_mut()
        .for_each(|rule| see(Kind::Text, rule));
}

fn all(requirements: &mut [Requirement], see: See<'_>) {
    for requirement in requirements {
        let Requirement { key, op: _, any_of } = requirement;
        each(any_of, |value| see(value_kind(key), value));
        see(key_kind(key), key);
    }
}

pub(super) fn near(near: &mut Near, see: See<'_>) {
    let Near { topology, select } = near;
    see(key_kind(topology), topology);
    selector(select, see);
}

fn selector(select: &mut Selector, see: See<'_>) {
    let Selector {
        requirements,
        namespaces,
        everywhere: _,
    } = select;
    all(requirements, see);
    each(namespaces, |name| see(Kind::Namespace, name));
}

pub(super) fn ports(ports: &mut BTreeSet<HostPort>, see: See<'_>) {
    *ports = std::mem::take(ports)
        .into_iter()
        .map(|mut found| {
            let HostPort {
                port: _,
                protocol: _,
                address,
            } = &mut found;
            // These mean every address of the host.
            if !matches!(address.as_str(), "0.0.0.0" | "::") {
                see(Kind::Address, address);
            }
            found
        })
        .collect();
}
