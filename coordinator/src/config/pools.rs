//! The `[[pool]]` tables and what must hold among them.
//!
//! Called by `config::parse`. Reports problems and never stops at the first.

use super::disruption::{self, DisruptionBudget};
use super::reader::{At, Section};
use super::{Config, DAY, SECOND, millis, values};
use drover_core::model::{
    Bytes, InstanceId, MicroUsd, MilliCpu, Millis, Mode, PoolId, PoolKind, Quota, Resources, SiteId,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Unique name.
    pub name: PoolId,
    /// Network fate.
    pub site: SiteId,
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
}

/// A group of the simulated cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimPool {
    /// Group name.
    pub group: String,
}

const NAME: &str = "write letters, digits, dots and dashes, at most 63";

pub(super) fn plain(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Letters, digits, dots, dashes (and underscores, which some give); at most 253.
fn host_name(name: &str) -> bool {
    name.len() <= 253
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
    groups: BTreeMap<(String, String), String>,
    hosts: BTreeMap<String, String>,
}

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
    let site = required(section, "site", "write site = \"REGION OR ROOM\"");
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
        Some(PoolKind::Asg) => {
            let region = required(section, "region", "write region = \"us-west-2\"");
            let group = group(section, region.as_ref(), &owner, seen);
            group.zip(region).map(|(group, region)| {
                PoolSource::Asg(AsgPool {
                    group,
                    region: region.value,
                })
            })
        }
        Some(PoolKind::Sim) => {
            group(section, None, &owner, seen).map(|group| PoolSource::Sim(SimPool { group }))
        }
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
    let (min, max) = bounds(section, hosts, kind.is_some());
    let modes = [
        ("observe", Mode::Observe),
        ("grow", Mode::Grow),
        ("full", Mode::Full),
    ];
    let span = |key: &'static str, least: Duration, or: Millis, example: &str| {
        section
            .duration(key, least..=DAY * 30, example)
            .map_or(or, millis)
    };
    let texts = "write { key = \"value\" }";
    // Every key is read before anything is given up, so that none counts as unknown.
    let mode = section.choice("mode", &modes);
    let spare = section.count("spare", 0..=100_000);
    if let Some(at) = spare.as_ref().filter(|at| max > 0 && at.value > max) {
        let message = format!("is {}, above max {max}", at.value);
        section.report(at.offset, "spare", &message, "set spare to at most max");
    }
    let idle_after = span("idle_after", Duration::ZERO, Millis::minutes(10), "10m");
    let anticipate = section.flag("anticipate");
    let provision_deadline = section
        .duration("provision_deadline", SECOND..=DAY * 30, "15m")
        .map(millis);
    let idle_gpu_below = section.parsed("idle_gpu_below", "5%", |text| {
        let percent = values::percent(text)?;
        if percent == 0 {
            return Err(format!("{text:?} is never undershot"));
        }
        Ok(percent)
    });
    let expire_after = section
        .duration("expire_after", SECOND * 60..=DAY * 366, "30d")
        .map(millis);
    let quota = section.quota("removal_quota");
    let disruption = disruption::read(section.sections("disruption"));
    let grace = span("grace", Duration::ZERO, Millis::seconds(30), "30s");
    let labels = section.map("labels", texts, values::any_text);
    let taints = section.map("taints", texts, values::any_text);
    let prices = section.map("prices", "write { \"p2.16xlarge\" = 14.4 }", values::usd);
    Some(PoolConfig {
        name: PoolId(name?.value),
        site: SiteId(site?.value),
        mode: mode.map_or(Mode::Observe, |at| at.value),
        min,
        max,
        spare: spare.map_or(0, |at| at.value),
        idle_after,
        anticipate: anticipate.unwrap_or(false),
        idle_gpu_below,
        expire_after,
        provision_deadline,
        quota: quota.unwrap_or(Quota::Percent(10)),
        disruption,
        grace,
        labels,
        taints,
        prices: prices
            .into_iter()
            .map(|(kind, price)| (kind, MicroUsd(price)))
            .collect(),
        source: source?,
    })
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
    region: Option<&At<String>>,
    owner: &str,
    seen: &mut Seen,
) -> Option<String> {
    let at = required(section, "group", "write group = \"NAME OF THE GROUP\"")?;
    let place = region.map_or_else(String::new, |region| region.value.clone());
    if let Some(other) = seen
        .groups
        .insert((place, at.value.clone()), owner.to_owned())
    {
        let message = format!("{:?} is already owned by pool {other}", at.value);
        section.report(at.offset, "group", &message, "one pool owns one group");
    }
    Some(at.value)
}

fn fixed(section: &Section<'_>, owner: &str, seen: &mut Seen) -> StaticPool {
    let fix = "write hosts = [\"titan-01\", \"titan-02\"]";
    if !section.has("hosts") {
        section.report(section.offset(), "hosts", "is required", fix);
    }
    let hosts = section.texts("hosts", fix);
    let mut ids = Vec::new();
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        section.report(section.offset(), "hosts", "is an empty list", fix);
    }
    for at in hosts.into_iter().flatten() {
        if !host_name(&at.value) {
            let message = format!("{:?} is no host name", at.value);
            let fix = "write the name as `hostname` says it on the host: letters, digits, dots and dashes";
            section.report(at.offset, "hosts", &message, fix);
        }
        if let Some(other) = seen.hosts.insert(at.value.clone(), owner.to_owned()) {
            let message = format!("names {} again (it is in pool {other})", at.value);
            section.report(at.offset, "hosts", &message, "name each host once");
        } else {
            ids.push(InstanceId(at.value));
        }
    }
    let gpus = section.count("gpus", 0..=64).map_or(0, |at| at.value);
    let model = section.text("gpu_model", "write gpu_model = \"titan-x\" or leave it out");
    let cpus = section.count("cpus", 0..=4_096).map_or(0, |at| at.value);
    let memory = section
        .parsed("memory", "64GiB", values::size)
        .unwrap_or(Bytes::ZERO);
    let command = |key: &'static str| {
        let fix = format!("write {key} = [\"/path/of/program\", \"argument\"]");
        let texts = section.texts(key, &fix)?;
        if texts.is_empty() {
            section.report(section.offset(), key, "is an empty list", &fix);
        }
        Some(texts.into_iter().map(|at| at.value).collect())
    };
    StaticPool {
        hosts: ids,
        allocatable: Resources {
            gpu_milli: 0,
            cpu: MilliCpu(u64::from(cpus) * 1_000),
            memory,
            gpus,
            extended: BTreeMap::new(),
        },
        gpu_model: model.map(|at| at.value).unwrap_or_default(),
        power: PowerCommands {
            on: command("power_on"),
            off: command("power_off"),
            timeout: section
                .duration("power_timeout", SECOND..=DAY, "5m")
                .map_or(Millis::minutes(5), millis),
        },
    }
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
