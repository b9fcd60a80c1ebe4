//! The `[[pool]]` tables and what must hold among them.
//!
//! Called by `config::parse`. Reports problems and never stops at the first. `pool` has what comes out of it.

mod asg;
mod fixed;
mod pool;
mod taint;
mod terms;

use super::Config;
use asg::asg;
use drover_config::Section;
use drover_core::model::{PoolId, PoolKind, SiteId};
use fixed::fixed;
pub use pool::{
    AsgPool, Origin, PoolConfig, PoolSource, PowerCommands, SimPool, StaticPool, youngest_reaped,
};
use std::collections::BTreeMap;
pub(crate) use taint::{Effect, with_effect};
pub use terms::PoolTerms;
pub(super) use terms::terms;

const SITE: &str = "write site = \"REGION OR ROOM\"";
const NAME: &str = "write letters, digits, dots and dashes, at most 63";

pub(crate) fn plain(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

pub(super) fn read(sections: Vec<Section<'_>>) -> Vec<PoolConfig> {
    let mut seen = Seen::default();
    sections
        .into_iter()
        .filter_map(|section| {
            let pool = pool(&section, &mut seen);
            section.finish();
            pool
        })
        .collect()
}

/// What must be unique over all pools: name, group, host; each with the pool that has it.
#[derive(Default)]
struct Seen {
    names: BTreeMap<String, ()>,
    groups: BTreeMap<GroupKey, String>,
    hosts: BTreeMap<String, String>,
}

/// Region, role, group name.
type GroupKey = (String, Option<String>, String);

fn pool(section: &Section<'_>, seen: &mut Seen) -> Option<PoolConfig> {
    let name = section.required("name", NAME);
    if let Some(at) = &name {
        if !plain(&at.value) {
            let message = format!("{:?} is no plain name", at.value);
            section.report(at.offset, "name", &message, NAME);
        }
        if seen.names.insert(at.value.clone(), ()).is_some() {
            let message = format!("{:?} is the name of an earlier pool", at.value);
            section.report(at.offset, "name", &message, "give each pool its own name");
        }
    }
    let owner = name
        .as_ref()
        .map_or_else(|| "another pool".to_owned(), |at| at.value.clone());
    let site = section.text("site", SITE).map(|at| at.value);
    let kinds = [
        ("static", PoolKind::Static),
        ("asg", PoolKind::Asg),
        ("sim", PoolKind::Sim),
    ];
    section.require("kind", "write kind = \"static\", \"asg\" or \"sim\"");
    let kind = section.choice("kind", &kinds).map(|at| at.value);
    let source = match kind {
        Some(PoolKind::Static) => Some(PoolSource::Static(fixed(section, &owner, seen))),
        Some(PoolKind::Asg) => asg(section, &owner, seen).map(PoolSource::Asg),
        Some(PoolKind::Sim) => group(section, (String::new(), None), &owner, seen)
            .map(|group| PoolSource::Sim(SimPool { group })),
        None => {
            // Whatever stands there cannot be judged without the kind.
            section.accept_all();
            None
        }
    };
    let hosts = match &source {
        Some(PoolSource::Static(found)) => u32::try_from(found.hosts.len()).ok(),
        _ => None,
    };
    // What shares an Auto Scaling group's fate is its region, unless somebody knows better.
    let site = site.or_else(|| match &source {
        Some(PoolSource::Asg(found)) => Some(found.region.clone()),
        _ => None,
    });
    if site.is_none() && !matches!(kind, None | Some(PoolKind::Asg)) {
        section.require("site", SITE);
    }
    let (min, max) = bounds(section, hosts, kind.is_some());
    // Every key is read before anything is given up, so that none counts as unknown.
    let terms = terms(section, min, Some(max));
    Some(terms.pool(
        PoolId(name?.value),
        SiteId(site?),
        max,
        Origin::File,
        source?,
    ))
}

fn bounds(section: &Section<'_>, hosts: Option<u32>, known_kind: bool) -> (u32, u32) {
    let min = section.count("min", 0..=100_000);
    let max = section.count("max", 0..=100_000);
    let most = match (&max, hosts) {
        (Some(at), Some(hosts)) if at.value > hosts => {
            let message = format!("is {} with {hosts} hosts", at.value);
            section.report(
                at.offset,
                "max",
                &message,
                "leave max out or list the hosts",
            );
            hosts
        }
        (Some(at), _) => at.value,
        (None, Some(hosts)) => hosts,
        (None, None) => {
            if known_kind {
                let fix = "write the most nodes that it may have, as in max = 20";
                section.require("max", fix);
            }
            return (0, 0);
        }
    };
    let least = min.as_ref().map_or(0, |at| at.value);
    if let Some(at) = min.filter(|at| at.value > most) {
        let message = format!("is {}, above max {most}", at.value);
        section.report(at.offset, "min", &message, "set min to at most max");
    }
    (least, most)
}

fn group(
    section: &Section<'_>,
    (region, role): (String, Option<String>),
    owner: &str,
    seen: &mut Seen,
) -> Option<String> {
    let at = section.required("group", "write group = \"NAME OF THE GROUP\"")?;
    let key = (region, role, at.value.clone());
    if let Some(other) = seen.groups.insert(key, owner.to_owned()) {
        let message = format!("{:?} is already owned by pool {other}", at.value);
        section.report(at.offset, "group", &message, "one pool owns one group");
    }
    Some(at.value)
}

/// Sim pools need a cloud.
pub(super) fn check_sim(root: &Section<'_>, config: &Config) {
    let first = config
        .pools
        .iter()
        .find(|pool| pool.kind() == PoolKind::Sim);
    if let Some(pool) = first
        && config.sim.cloud.is_none()
        && config.sim.world.is_none()
    {
        root.report(
            root.offset(),
            "sim",
            &format!("is missing, but pool {} is of kind sim", pool.name),
            "write [sim] with cloud = \"http://127.0.0.1:7900\" or world = \"world.toml\"",
        );
    }
}
