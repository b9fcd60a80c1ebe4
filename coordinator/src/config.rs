//! The coordinator's config file: TOML, unknown keys refused, every problem told in one run with line and fix.
//!
//! Read by `app` and by `drover check-config` (exit code 64 when it is refused). Reads the file and decides nothing
//! else: everybody gets the plain structs of here. `coordinator/drover.example.toml` is the contract for the keys.

mod aws;
mod budget;
pub mod disruption;
pub mod enrolment;
pub mod live;
mod notices;
mod policy;
mod pools;
pub(crate) mod reader;
mod regions;
pub mod values;

use drover_core::model::{Budget, Headroom, MicroUsd, Millis, PoolId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use aws::{Aws, Discover, Queue};
pub use budget::AwsBudget;
pub use disruption::{DisruptionBudget, Window};
pub use enrolment::Enrolment;
pub use notices::{NoticePolicy, OnMaintenance, OnRebalance, OnTerminating};
pub(crate) use pools::plain;
pub use pools::{
    AsgPool, Origin, PoolConfig, PoolSource, PoolTerms, PowerCommands, SimPool, StaticPool,
    youngest_reaped,
};
pub use reader::Problem;
use reader::Section;

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

/// The gRPC port, names, directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Address of the one gRPC port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the plain HTTP listener for metrics and health; port 0 takes a free one, absent: there is none.
    pub http: Option<SocketAddr>,
    /// Names and addresses in the server certificate beside coordinator.drover.internal.
    pub names: Vec<String>,
    /// CA key, store, plans.
    pub state_dir: PathBuf,
    /// Where the first start writes the admin context; absent: ~/.config/drover of the user.
    pub context_dir: Option<PathBuf>,
}

/// Cycle, limits, breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Longest time between two cycles.
    pub interval: Millis,
    /// After a start nothing shrinks before this, or before every node that was connected has returned.
    pub settle: Millis,
    /// An agent is unreachable after this silence.
    pub silence: Millis,
    /// Agents report this often.
    pub report_interval: Millis,
    /// And in full this often.
    pub full_interval: Millis,
    /// Where every plan is kept; absent: the last 1,000 in `state_dir`/plans.
    pub plans_dir: Option<PathBuf>,
    /// How long a gang may hold partial capacity.
    pub gang_hold: Millis,
    /// Percent of the fleet that may be terminated or evicted within an hour, at most 50.
    pub breaker_fleet_percent: u32,
    /// Nodes of one pool that may be terminated or evicted within 10 min.
    pub breaker_pool: u32,
    /// USD per hour of all that runs and comes; absent: no limit.
    pub max_cost: Option<MicroUsd>,
    /// GPUs of all that runs and comes; absent: no limit.
    pub max_gpus: Option<u32>,
    /// Move running work that says it can be moved, for cost.
    pub consolidate: bool,
    /// Room that is kept free, in units of demand.
    pub headroom: Vec<Headroom>,
    /// Budgets by team.
    pub teams: BTreeMap<String, Budget>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            interval: Millis::seconds(10),
            settle: Millis::seconds(60),
            silence: Millis::seconds(30),
            report_interval: Millis::seconds(5),
            full_interval: Millis::seconds(60),
            plans_dir: None,
            gang_hold: Millis::minutes(20),
            breaker_fleet_percent: 20,
            breaker_pool: 10,
            max_cost: None,
            max_gpus: None,
            consolidate: false,
            headroom: Vec::new(),
            teams: BTreeMap::new(),
        }
    }
}

/// The simulated cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sim {
    /// Address of `drover sim-cloud`, loopback.
    pub cloud: Option<String>,
    /// Or the file of the world that is embedded.
    pub world: Option<PathBuf>,
}

/// Why there is no config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says is wrong.
    #[error("{}", render(path, problems))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// All of it, by line.
        problems: Vec<Problem>,
    },
}

/// Problems as lines for people: file, line, key, what is wrong, the fix.
pub(crate) fn render(path: &Path, problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let gap = if problem.key.is_empty() { "" } else { " " };
            format!(
                "{}:{}: {}{gap}{}; {}",
                path.display(),
                problem.line,
                problem.key,
                problem.message,
                problem.fix
            )
        })
        .collect();
    lines.join("\n")
}

/// Reads and checks a config file.
///
/// # Errors
/// The file cannot be read, or all that is wrong with it.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problems| ConfigError::Wrong {
        path: path.to_owned(),
        problems,
    })
}

/// Checks a config's text.
///
/// # Errors
/// All that is wrong with it, by line.
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    reader::read(text, |root| {
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
        server: server(&root.section("server")),
        control: control(&root.section("control"), &names),
        pools,
        aws: aws::read(&root.section("aws")),
        sim: sim(&root.section("sim")),
        enrolment: enrolment::read(&root.section("enrolment")),
    }
}

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn millis(span: Duration) -> Millis {
    Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

fn server(section: &Section<'_>) -> Server {
    let address = |text: &str| -> Result<SocketAddr, String> {
        text.parse()
            .map_err(|_| format!("{text:?} is no address with a port"))
    };
    let listen = section.parsed("listen", "0.0.0.0:7443", address);
    let http = section.parsed("http", "127.0.0.1:9464", address);
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 7443)));
    if http.is_some_and(|http| collide(http, listen)) {
        section.report(
            section.offset(),
            "http",
            "has the port of listen, which speaks gRPC over TLS and nothing else",
            "write http = \"127.0.0.1:9464\"",
        );
    }
    let names = section.texts("names", "write names = [\"localhost\"]");
    let found = Server {
        listen,
        http,
        names: names.into_iter().flatten().map(|at| at.value).collect(),
        state_dir: absolute(section, "state_dir").unwrap_or_else(|| "/var/lib/drover".into()),
        context_dir: absolute(section, "context_dir"),
    };
    section.finish();
    found
}

/// Both cannot be had on one host.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip(), other.ip());
    one.port() != 0
        && one.port() == other.port()
        && (a == b || a.is_unspecified() || b.is_unspecified())
}

fn control(section: &Section<'_>, pools: &BTreeSet<PoolId>) -> Control {
    let default = Control::default();
    let span = |key: &'static str, least: Duration, most: Duration, or: Millis, example: &str| {
        section
            .duration(key, least..=most, example)
            .map_or(or, millis)
    };
    let tenth = SECOND / 10;
    let found = Control {
        interval: span("interval", tenth, DAY / 24, default.interval, "10s"),
        settle: span("settle", Duration::ZERO, DAY, default.settle, "60s"),
        silence: span("silence", SECOND, DAY, default.silence, "30s"),
        report_interval: span("report_interval", tenth, DAY, default.report_interval, "5s"),
        full_interval: span("full_interval", tenth, DAY, default.full_interval, "60s"),
        plans_dir: absolute(section, "plans_dir"),
        gang_hold: span("gang_hold", SECOND, DAY * 7, default.gang_hold, "20m"),
        breaker_fleet_percent: section
            .count("breaker_fleet_percent", 1..=50)
            .map_or(default.breaker_fleet_percent, |at| at.value),
        breaker_pool: section
            .count("breaker_pool", 1..=100)
            .map_or(default.breaker_pool, |at| at.value),
        max_cost: section.usd("max_cost_usd_per_hour").map(MicroUsd),
        max_gpus: section.count("max_gpus", 0..=10_000_000).map(|at| at.value),
        consolidate: section.flag("consolidate").unwrap_or(false),
        headroom: policy::headroom(section.sections("headroom"), pools),
        teams: policy::teams(section.named_sections("team")),
    };
    if found.silence.0 < found.report_interval.0.saturating_mul(2) {
        section.report(
            section.offset(),
            "silence",
            "is less than two report intervals: healthy agents would count as unreachable",
            "set silence to at least twice report_interval",
        );
    }
    if found.full_interval < found.report_interval {
        section.report(
            section.offset(),
            "full_interval",
            "is less than report_interval: a full report cannot come more often than a report",
            "set full_interval to at least report_interval",
        );
    }
    section.finish();
    found
}

fn sim(section: &Section<'_>) -> Sim {
    let cloud = section.parsed("cloud", "http://127.0.0.1:7900", |text| {
        let url = url(text)?;
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
        let loopback = host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if loopback {
            Ok(url)
        } else {
            Err(format!(
                "{text:?} is no loopback address: the simulated cloud speaks without TLS"
            ))
        }
    });
    let world = section.text("world", "write the path of a world file");
    if let (Some(_), Some(world)) = (&cloud, &world) {
        section.report(
            world.offset,
            "world",
            "stands beside cloud",
            "keep one of the two",
        );
    }
    section.finish();
    Sim {
        cloud,
        world: world.map(|at| at.value.into()),
    }
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

fn absolute(section: &Section<'_>, key: &'static str) -> Option<PathBuf> {
    let fix = "write an absolute path";
    let at = section.text(key, fix)?;
    let path = PathBuf::from(&at.value);
    if !path.is_absolute() {
        section.report(at.offset, key, "is a relative path", fix);
    }
    Some(path)
}

#[cfg(test)]
mod tests;
