//! The `[[pool]]` tables and what must hold among them.
//!
//! Called by `config::parse`. Reports problems and never stops at the first.

use super::disruption::DisruptionBudget;
use super::notices::NoticePolicy;
use super::reader::{At, Section};
use super::{Config, aws, regions};
use drover_core::model::{
    InstanceId, MicroUsd, Millis, Mode, PoolId, PoolKind, Quota, Resources, SiteId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

mod fixed;
mod terms;

use fixed::fixed;
pub use terms::PoolTerms;
pub(super) use terms::terms;

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Unique name.
    pub name: PoolId,
    /// Network fate.
    pub site: SiteId,
    /// Where it came from.
    pub origin: Origin,
    /// What may be done unless changed at run time.
    pub mode: Mode,
    /// Fewest nodes.
    pub min: u32,
    /// Most nodes; a static pool's hosts.
    pub max: u32,
    /// Idle nodes as a standing target.
    pub spare: u32,
    /// Idle time before a node may go.
    pub idle_after: Millis,
    /// Keep idle nodes, and ask for one, where demand is likely.
    pub anticipate: bool,
    /// GPU use in percent below which a GPU counts as unused; absent: GPU use is no witness.
    pub idle_gpu_below: Option<u32>,
    /// Nodes of this age are replaced once empty; absent: never for their age.
    pub expire_after: Option<Millis>,
    /// From asked to joined, at most; absent: by the type, see [`PoolConfig::deadline_of`].
    pub provision_deadline: Option<Millis>,
    /// From draining to leaving at once.
    pub quota: Quota,
    /// Further limits on that, some only at times.
    pub disruption: Vec<DisruptionBudget>,
    /// Between TERM and KILL where a drain evicts.
    pub grace: Millis,
    /// What is done when its cloud tells something of a node.
    pub notices: NoticePolicy,
    /// Labels of its nodes.
    pub labels: BTreeMap<String, String>,
    /// Taints of its nodes.
    pub taints: BTreeMap<String, String>,
    /// USD per hour by instance type, instead of the catalogue's or the cloud's.
    pub prices: BTreeMap<String, MicroUsd>,
    /// What drives it.
    pub source: PoolSource,
}

/// From asked to joined unless the config says otherwise; whole machines boot slowly.
const DEADLINE: Millis = Millis::minutes(15);
/// The same of a whole machine.
const METAL_DEADLINE: Millis = Millis::minutes(45);

impl PoolConfig {
    /// From asked to joined, at most, for nodes of this type.
    #[must_use]
    pub fn deadline_of(&self, instance_type: &str) -> Millis {
        let by_type = if is_metal(instance_type) {
            METAL_DEADLINE
        } else {
            DEADLINE
        };
        self.provision_deadline.unwrap_or(by_type)
    }
}

/// How old an instance of this type is at least when it is ended for never having joined, whatever its pool's deadline: a
/// whole machine may well be booting still.
#[must_use]
pub fn youngest_reaped(instance_type: &str) -> Millis {
    if is_metal(instance_type) {
        METAL_DEADLINE
    } else {
        Millis::ZERO
    }
}

fn is_metal(instance_type: &str) -> bool {
    instance_type
        .split_once('.')
        .is_some_and(|(_, size)| size.starts_with("metal"))
}

/// Where a pool came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// A `[[pool]]` of the config file.
    #[default]
    File,
    /// A group with the ownership tag, found where `[[aws.discover]]` looks.
    Discovered {
        /// Its region.
        region: String,
        /// Role that was assumed to find it; absent: none.
        role_arn: Option<String>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("config file"),
            Self::Discovered {
                region,
                role_arn: None,
            } => write!(f, "discovered in {region}"),
            Self::Discovered {
                region,
                role_arn: Some(role),
            } => match role.split(':').nth(4).filter(|id| !id.is_empty()) {
                Some(account) => write!(f, "discovered in {region} of account {account}"),
                None => write!(f, "discovered in {region} as {role}"),
            },
        }
    }
}

/// What drives a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolSource {
    /// Named physical hosts.
    Static(StaticPool),
    /// An EC2 Auto Scaling group.
    Asg(AsgPool),
    /// A group of the simulated cloud.
    Sim(SimPool),
}

impl PoolConfig {
    /// Kind.
    #[must_use]
    pub const fn kind(&self) -> PoolKind {
        match self.source {
            PoolSource::Static(_) => PoolKind::Static,
            PoolSource::Asg(_) => PoolKind::Asg,
            PoolSource::Sim(_) => PoolKind::Sim,
        }
    }
}

/// Named physical hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticPool {
    /// Host names; also their instance ids.
    pub hosts: Vec<InstanceId>,
    /// What one host offers while no agent has told.
    pub allocatable: Resources,
    /// GPU model; empty without GPUs.
    pub gpu_model: String,
    /// Power control.
    pub power: PowerCommands,
}

/// Commands run with DROVER_HOST in the environment; exit 0 is success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerCommands {
    /// Program and arguments; absent: hosts are never powered on.
    pub on: Option<Vec<String>>,
    /// Program and arguments; absent: hosts stay on and are never drained for idleness.
    pub off: Option<Vec<String>>,
    /// How long one may run.
    pub timeout: Millis,
}

/// An EC2 Auto Scaling group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsgPool {
    /// Group name.
    pub group: String,
    /// Region.
    pub region: String,
    /// Role that is assumed to reach it; absent: the credentials' own account.
    pub role_arn: Option<String>,
    /// The only zones that are asked, the most liked first; empty: all of the group's.
    pub zones: Vec<String>,
    /// The types of the group that are planned with; empty: all of them.
    pub instance_types: Vec<String>,
}

/// A group of the simulated cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimPool {
    /// Group name.
    pub group: String,
}

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

fn required(section: &Section<'_>, key: &'static str, fix: &str) -> Option<At<String>> {
    // An empty or wrong value is reported by `text` itself.
    let had = section.has(key);
    let found = section.text(key, fix);
    if !had {
        section.report(section.offset(), key, "is required", fix);
    }
    found
}

fn pool(section: &Section<'_>, seen: &mut Seen) -> Option<PoolConfig> {
    let name = required(section, "name", NAME);
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
    if !section.has("kind") {
        let fix = "write kind = \"static\", \"asg\" or \"sim\"";
        section.report(section.offset(), "kind", "is required", fix);
    }
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
    if site.is_none() && !section.has("site") && !matches!(kind, None | Some(PoolKind::Asg)) {
        section.report(section.offset(), "site", "is required", SITE);
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

fn asg(section: &Section<'_>, owner: &str, seen: &mut Seen) -> Option<AsgPool> {
    let fix = "write region = \"us-west-2\"";
    let region = required(section, "region", fix).and_then(|at| match regions::region(&at.value) {
        Ok(region) => Some(region),
        Err(message) => {
            section.report(at.offset, "region", &message, fix);
            None
        }
    });
    let role_arn = aws::role(section);
    let place = (region.clone().unwrap_or_default(), role_arn.clone());
    let group = group(section, place, owner, seen);
    let zones = wishes(section, "zones", "us-west-2a", |zone| {
        region
            .as_deref()
            .map_or(Ok(()), |region| regions::zone(zone, region))
    });
    let instance_types = wishes(
        section,
        "instance_types",
        "p4d.24xlarge",
        regions::instance_type,
    );
    Some(AsgPool {
        group: group?,
        region: region?,
        role_arn,
        zones,
        instance_types,
    })
}

/// A list in the order of preference.
fn wishes(
    section: &Section<'_>,
    key: &'static str,
    example: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Vec<String> {
    let fix = format!("write {key} = [\"{example}\"] or leave it out");
    let Some(texts) = section.texts(key, &fix) else {
        return Vec::new();
    };
    if texts.is_empty() {
        section.report(section.offset(), key, "is an empty list", &fix);
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for at in texts {
        if let Err(message) = check(&at.value) {
            section.report(at.offset, key, &message, &fix);
        } else if seen.insert(at.value.clone()) {
            found.push(at.value);
        } else {
            let message = format!("names {} again", at.value);
            section.report(at.offset, key, &message, "name each once");
        }
    }
    found
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
            if known_kind && !section.has("max") {
                let fix = "write the most nodes that it may have, as in max = 20";
                section.report(section.offset(), "max", "is required", fix);
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
    let at = required(section, "group", "write group = \"NAME OF THE GROUP\"")?;
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
