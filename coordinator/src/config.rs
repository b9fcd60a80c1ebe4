//! The coordinator's config file: TOML, unknown keys refused, every problem told in one run with line and fix.
//!
//! Read by `app` and by `drover check-config` (exit code 64 when it is refused). Reads the file and decides nothing
//! else: everybody gets the plain structs of here. `coordinator/drover.example.toml` is the contract for the keys.

mod aws;
mod budget;
mod control;
pub mod disruption;
pub mod enrolment;
pub mod live;
mod notices;
mod policy;
mod pools;
mod regions;
mod server;
mod sim;
mod values;

use drover_config::{FileError, Problem, Section};
use drover_core::model::Millis;
use std::path::Path;
use std::time::Duration;

pub use aws::{Aws, Discover, Queue};
pub use budget::AwsBudget;
pub use control::Control;
pub use disruption::{DisruptionBudget, Window};
pub use enrolment::Enrolment;
pub use notices::{NoticePolicy, OnMaintenance, OnRebalance, OnTerminating};
pub use pools::{
    AsgPool, Origin, PoolConfig, PoolSource, PoolTerms, PowerCommands, SimPool, StaticPool,
    youngest_reaped,
};
pub(crate) use pools::{Effect, plain, with_effect};
pub use server::Server;
pub use sim::Sim;

/// Everything that `drover serve` needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The gRPC port, names, directories.
    pub server: Server,
    /// Cycle, limits, breaker.
    pub control: Control,
    /// Pools in the order of the file, which is the preference among equal prices.
    pub pools: Vec<PoolConfig>,
    /// The AWS API.
    pub aws: Aws,
    /// The simulated cloud.
    pub sim: Sim,
    /// What hosts may prove themselves with beside join tokens.
    pub enrolment: Enrolment,
}

impl Config {
    /// The same with these pools behind those of the file.
    #[must_use]
    pub fn with_discovered(&self, found: impl IntoIterator<Item = PoolConfig>) -> Self {
        let mut all = self.clone();
        all.pools.extend(found);
        all
    }

    /// A pool by name.
    #[must_use]
    pub fn pool(&self, name: &drover_core::model::PoolId) -> Option<&PoolConfig> {
        self.pools.iter().find(|pool| pool.name == *name)
    }

    /// What is right but hardly meant; one line each, for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.pools.is_empty() && self.aws.discover.is_empty() {
            warnings.push("no pools: nothing will ever grow; write a [[pool]]".to_owned());
        }
        if let Some(http) = self.server.http.filter(|at| !at.ip().is_loopback()) {
            warnings.push(format!(
                "server.http = \"{http}\" is no loopback address: whoever reaches it reads names of pools, prices and counts \
                 without TLS and without a certificate; let only the monitoring reach it"
            ));
        }
        warnings
    }
}

/// Reads and checks a config file.
///
/// # Errors
/// The file cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<Config, FileError> {
    drover_config::load(path, parse)
}

/// Checks a config's text.
///
/// # Errors
/// All that is wrong with it, by line.
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    drover_config::read(text, |root| {
        let config = tables(root);
        pools::check_sim(root, &config);
        config
    })
}

/// The coordinator's tables of a file that may have others too (`drover simulate`).
pub(crate) fn tables(root: &Section<'_>) -> Config {
    let pools = pools::read(root.sections("pool"));
    let names = pools.iter().map(|pool| pool.name.clone()).collect();
    Config {
        server: server::read(&root.section("server")),
        control: control::read(&root.section("control"), &names),
        pools,
        aws: aws::read(&root.section("aws")),
        sim: sim::read(&root.section("sim")),
        enrolment: enrolment::read(&root.section("enrolment")),
    }
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn millis(span: Duration) -> Millis {
    Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

fn url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .unwrap_or_default();
    if rest.is_empty() {
        Err(format!("{text:?} is no http:// or https:// address"))
    } else {
        Ok(text.trim_end_matches('/').to_owned())
    }
}

#[cfg(test)]
mod tests;
