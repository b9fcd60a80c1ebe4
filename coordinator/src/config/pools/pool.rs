//! What the config says of a pool: where it came from, what may be done with it, what drives it.
//!
//! Made by `config::pools` and by discovery; read by everybody. Plain structs.

use crate::config::disruption::DisruptionBudget;
use crate::config::notices::NoticePolicy;
use drover_core::model::{
    InstanceId, MicroUsd, Millis, Mode, PoolId, PoolKind, Quota, Resources, SiteId,
};
use std::collections::BTreeMap;
use std::fmt;

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
